/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of browsers: what a cookie must be to open something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/admin/sessions.h"

static const char long_name[] = "abcdefghijklmnopqrstuvwxyz0123456789:1f:AAAAAAAAAAAAAAAAAAAAAA:"
                                "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

enum { NOW = 1000000, ENDS = 2000000 };

static const struct tl_token_key key = {.bytes = {1, 2, 3}};
static const struct tl_token_hash hash = {.bytes = {4, 5, 6}};

static int start(void **state)
{
    *state = tl_admin_sessions_new(NULL);
    return *state != NULL ? 0 : -1;
}

static int stop(void **state)
{
    struct tl_admin_sessions *sessions = *state;
    tl_admin_sessions_free(&sessions);
    return 0;
}

static struct tl_admin_session make(const char *name)
{
    char text[TL_ADMIN_SESSION_TEXT_MAX + 1];
    struct tl_admin_session session;
    tl_admin_session_make(&key, name, &hash, ENDS, text);
    assert_true(tl_admin_session_parse(text, &session));
    assert_string_equal(session.name, name);
    assert_int_equal(session.ends_ms, ENDS);
    return session;
}

static void a_session_is_good_until_it_ends(void **state)
{
    const struct tl_admin_session session = make("jane.doe-2");
    assert_true(tl_admin_sessions_check(*state, &session, &key, &hash, NOW));
    assert_true(tl_admin_sessions_check(*state, &session, &key, &hash, ENDS - 1));
    assert_false(tl_admin_sessions_check(*state, &session, &key, &hash, ENDS));
    assert_true(strlen(session.id) == TL_ADMIN_SESSION_ID_MAX);
}

static void it_is_bound_to_its_token(void **state)
{
    const struct tl_admin_session session = make("jane");
    struct tl_token_hash other = hash;
    struct tl_token_key other_key = key;
    other.bytes[31] ^= 1;
    other_key.bytes[31] ^= 1;
    assert_false(tl_admin_sessions_check(*state, &session, &key, &other, NOW));
    assert_false(tl_admin_sessions_check(*state, &session, &other_key, &hash, NOW));
}

static void nothing_in_it_can_be_changed(void **state)
{
    char text[TL_ADMIN_SESSION_TEXT_MAX + 1];
    tl_admin_session_make(&key, "jane", &hash, ENDS, text);
    for (size_t i = 0; text[i] != '\0'; i++) {
        char changed[sizeof(text)];
        struct tl_admin_session session;
        memcpy(changed, text, sizeof(text));
        changed[i] = changed[i] == 'a' ? 'b' : 'a';
        assert_false(tl_admin_session_parse(changed, &session) &&
                     tl_admin_sessions_check(*state, &session, &key, &hash, NOW));
    }
}

static void other_texts_are_no_sessions(void **state)
{
    static const char *const texts[] = {
        "",
        ":",
        "jane",
        "jane:",
        "jane:1f",
        "jane:1f:",
        ":1f:x:y",
        "JANE:1f:x:y",
        "a:1234567890123:AAAAAAAAAAAAAAAAAAAAAA:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "a:1f:AAAAAAAAAAAAAAAAAAAAAA:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "a:1f:AAAAAAAAAAAAAAAAAAAAA:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        long_name,
    };
    struct tl_admin_session session;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(tl_admin_session_parse(texts[i], &session));
}

static void signed_out_is_signed_out(void **state)
{
    const struct tl_admin_session first = make("jane"), second = make("jane");
    tl_admin_sessions_end(*state, &first, NOW);
    assert_false(tl_admin_sessions_check(*state, &first, &key, &hash, NOW));
    assert_true(tl_admin_sessions_check(*state, &second, &key, &hash, NOW));
    for (int i = 0; i < 4000; i++) { /* they need no memory beyond the table */
        const struct tl_admin_session more = make("joe");
        tl_admin_sessions_end(*state, &more, NOW);
        assert_false(tl_admin_sessions_check(*state, &more, &key, &hash, NOW));
    }
    assert_false(tl_admin_sessions_check(*state, &first, &key, &hash, NOW));
}

static void the_proof_of_a_page_is_of_one_session(void **state)
{
    const struct tl_admin_session first = make("jane"), second = make("jane");
    char csrf[TL_ADMIN_SESSION_SEAL_MAX + 1];
    (void)state;
    tl_admin_session_csrf(&key, &first, csrf);
    assert_string_not_equal(csrf, first.seal);
    tl_admin_session_csrf(&key, &second, csrf);
    char again[TL_ADMIN_SESSION_SEAL_MAX + 1];
    tl_admin_session_csrf(&key, &first, again);
    assert_string_not_equal(csrf, again);
}

static void the_admin_token_has_sessions_too(void **state)
{
    const struct tl_admin_session session = make(TL_ADMIN_NAME);
    assert_true(tl_admin_sessions_check(*state, &session, &key, &hash, NOW));
}

/* ---- links ---- */

static struct tl_admin_session link_of(const struct tl_admin_sessions *sessions)
{
    char text[TL_ADMIN_SESSION_TEXT_MAX + 1];
    struct tl_admin_session link;
    tl_admin_sessions_make_link(sessions, "jane", &hash, ENDS, text);
    assert_true(tl_admin_session_parse(text, &link));
    return link;
}

static void a_link_is_good_once(void **state)
{
    const struct tl_admin_session first = link_of(*state), second = link_of(*state);
    assert_true(tl_admin_sessions_use_link(*state, &first, &hash, NOW));
    assert_false(tl_admin_sessions_use_link(*state, &first, &hash, NOW));
    assert_true(tl_admin_sessions_use_link(*state, &second, &hash, ENDS - 1));
}

static void a_link_is_over_when_it_ends(void **state)
{
    const struct tl_admin_session link = link_of(*state);
    assert_false(tl_admin_sessions_use_link(*state, &link, &hash, ENDS));
}

static void a_link_is_of_its_token_and_its_process(void **state)
{
    const struct tl_admin_session link = link_of(*state);
    struct tl_token_hash other = hash;
    struct tl_admin_sessions *elsewhere = tl_admin_sessions_new(NULL);
    assert_non_null(elsewhere);
    other.bytes[31] ^= 1;
    assert_false(tl_admin_sessions_use_link(*state, &link, &other, NOW));
    assert_false(tl_admin_sessions_use_link(elsewhere, &link, &hash, NOW));
    assert_true(tl_admin_sessions_use_link(*state, &link, &hash, NOW));
    tl_admin_sessions_free(&elsewhere);
}

static void a_link_is_no_session_and_a_session_no_link(void **state)
{
    const struct tl_admin_session link = link_of(*state), session = make("jane");
    assert_false(tl_admin_sessions_check(*state, &link, &key, &hash, NOW));
    assert_false(tl_admin_sessions_use_link(*state, &session, &hash, NOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_session_is_good_until_it_ends, start, stop),
        cmocka_unit_test_setup_teardown(it_is_bound_to_its_token, start, stop),
        cmocka_unit_test_setup_teardown(nothing_in_it_can_be_changed, start, stop),
        cmocka_unit_test(other_texts_are_no_sessions),
        cmocka_unit_test_setup_teardown(signed_out_is_signed_out, start, stop),
        cmocka_unit_test(the_proof_of_a_page_is_of_one_session),
        cmocka_unit_test_setup_teardown(the_admin_token_has_sessions_too, start, stop),
        cmocka_unit_test_setup_teardown(a_link_is_good_once, start, stop),
        cmocka_unit_test_setup_teardown(a_link_is_over_when_it_ends, start, stop),
        cmocka_unit_test_setup_teardown(a_link_is_of_its_token_and_its_process, start, stop),
        cmocka_unit_test_setup_teardown(a_link_is_no_session_and_a_session_no_link, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
