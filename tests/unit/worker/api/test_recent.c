/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that came here: each once, until it is forgotten, in a bounded memory. And the passes
 * that were given: found while they are of the same session and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/pass.h"
#include "worker/visit/recent.h"

static void a_token_has_one_id(void **state)
{
    (void)state;
    char a[TL_PUZZLE_ID_LENGTH + 1], same[TL_PUZZLE_ID_LENGTH + 1], b[TL_PUZZLE_ID_LENGTH + 1];
    tl_token_id("token", a);
    tl_token_id("token", same);
    tl_token_id("token2", b);
    assert_string_equal(a, same);
    assert_string_not_equal(a, b);
    assert_int_equal(strlen(a), TL_PUZZLE_ID_LENGTH);
    assert_int_equal(a[0], '~');
}

static void a_token_comes_once(void **state)
{
    (void)state;
    struct tl_recent *tokens = tl_recent_new(TL_RECENT_TOKENS);
    const int64_t life_ms = (int64_t)TL_TOKENS_LIFE_S * 1000;
    char id[TL_PUZZLE_ID_LENGTH + 1];
    assert_non_null(tokens);
    tl_token_id("token", id);
    assert_true(tl_recent_token(tokens, id, 1000));
    assert_false(tl_recent_token(tokens, id, 1000));
    assert_false(tl_recent_token(tokens, id, 999 + life_ms));
    assert_true(tl_recent_token(tokens, id, 1000 + life_ms));
    tl_recent_forget(tokens, id);
    tl_recent_forget(tokens, id);
    assert_true(tl_recent_token(tokens, id, 1001 + life_ms));
    tl_recent_free(&tokens);
    assert_null(tokens);
    tl_recent_free(&tokens);
}

/* However many come: the newest are known. */
static void the_oldest_give_way(void **state)
{
    (void)state;
    enum { MANY = 500000, NEWEST = 1000 };
    struct tl_recent *tokens = tl_recent_new(TL_RECENT_TOKENS);
    char text[32], id[TL_PUZZLE_ID_LENGTH + 1];
    assert_non_null(tokens);
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof(text), "token-%d", i);
        tl_token_id(text, id);
        assert_true(tl_recent_token(tokens, id, 1000 + i / 1000));
    }
    for (int i = MANY - NEWEST; i < MANY; i++) {
        snprintf(text, sizeof(text), "token-%d", i);
        tl_token_id(text, id);
        assert_false(tl_recent_token(tokens, id, 1000 + MANY / 1000));
    }
    tl_recent_free(&tokens);
}

static struct tl_pass pass_of(unsigned number)
{
    struct tl_pass pass = {.generation = 7, .expires = 1795000600};
    tl_pass_id("concert", 7, number, pass.id);
    return pass;
}

/* As it is done for a view. */
static const char *find(struct tl_recent *passes, const struct tl_pass *pass)
{
    const struct tl_recent_entry *kept = tl_recent_find(passes, pass->id);
    bool same =
        kept != NULL && kept->until == pass->expires && kept->generation == pass->generation;
    return same ? kept->text : NULL;
}

static void keep(struct tl_recent *passes, const struct tl_pass *pass, char *text)
{
    tl_recent_keep(passes, pass->id,
                   &(struct tl_recent_entry){
                       .until = pass->expires, .generation = pass->generation, .text = text});
}

static void test_kept_until_something_changes(void **state)
{
    (void)state;
    struct tl_recent *passes = tl_recent_new(TL_RECENT_PASSES);
    assert_non_null(passes);
    const struct tl_pass pass = pass_of(1);
    assert_null(find(passes, &pass));
    keep(passes, &pass, (char[]){"one"});
    assert_string_equal(find(passes, &pass), "one");
    struct tl_pass other = pass_of(2);
    assert_null(find(passes, &other));
    other = pass;
    other.expires++; /* the session was extended */
    assert_null(find(passes, &other));
    other = pass;
    other.generation++; /* it came back after a loss */
    assert_null(find(passes, &other));
    keep(passes, &other, (char[]){"another"});
    assert_string_equal(find(passes, &other), "another");
    tl_recent_clear(passes);
    assert_null(find(passes, &other));
    tl_recent_free(&passes);
    assert_null(passes);
    tl_recent_free(&passes);
}

/* Far more sessions than places in the table: what is found is always one's own. */
static void test_bounded(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    struct tl_recent *passes = tl_recent_new(TL_RECENT_PASSES);
    char text[32];
    unsigned found = 0;
    assert_non_null(passes);
    for (unsigned i = 0; i < MANY; i++) {
        const struct tl_pass pass = pass_of(i);
        snprintf(text, sizeof(text), "pass %u", i);
        keep(passes, &pass, text);
        assert_string_equal(find(passes, &pass), text);
    }
    for (unsigned i = 0; i < MANY; i++) {
        const struct tl_pass pass = pass_of(i);
        const char *kept = find(passes, &pass);
        snprintf(text, sizeof(text), "pass %u", i);
        if (kept != NULL)
            assert_string_equal(kept, text);
        found += kept != NULL;
    }
    assert_in_range(found, MANY / 10, MANY / 2);
    tl_recent_free(&passes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_has_one_id),  cmocka_unit_test(a_token_comes_once),
        cmocka_unit_test(the_oldest_give_way), cmocka_unit_test(test_kept_until_something_changes),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
