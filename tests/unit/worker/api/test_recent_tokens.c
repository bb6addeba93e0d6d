/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that came here: each once, until it is forgotten, in a bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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
    struct tl_recent_tokens *tokens = tl_recent_tokens_new();
    const int64_t life_ms = (int64_t)TL_TOKENS_LIFE_S * 1000;
    char id[TL_PUZZLE_ID_LENGTH + 1];
    assert_non_null(tokens);
    tl_token_id("token", id);
    assert_true(tl_recent_tokens_add(tokens, id, 1000));
    assert_false(tl_recent_tokens_add(tokens, id, 1000));
    assert_false(tl_recent_tokens_add(tokens, id, 999 + life_ms));
    assert_true(tl_recent_tokens_add(tokens, id, 1000 + life_ms));
    tl_recent_tokens_forget(tokens, id);
    tl_recent_tokens_forget(tokens, id);
    assert_true(tl_recent_tokens_add(tokens, id, 1001 + life_ms));
    tl_recent_tokens_free(&tokens);
    assert_null(tokens);
    tl_recent_tokens_free(&tokens);
}

/* However many come: the newest are known. */
static void the_oldest_give_way(void **state)
{
    (void)state;
    enum { MANY = 500000, NEWEST = 1000 };
    struct tl_recent_tokens *tokens = tl_recent_tokens_new();
    char text[32], id[TL_PUZZLE_ID_LENGTH + 1];
    assert_non_null(tokens);
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof(text), "token-%d", i);
        tl_token_id(text, id);
        assert_true(tl_recent_tokens_add(tokens, id, 1000 + i / 1000));
    }
    for (int i = MANY - NEWEST; i < MANY; i++) {
        snprintf(text, sizeof(text), "token-%d", i);
        tl_token_id(text, id);
        assert_false(tl_recent_tokens_add(tokens, id, 1000 + MANY / 1000));
    }
    tl_recent_tokens_free(&tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_has_one_id),
        cmocka_unit_test(a_token_comes_once),
        cmocka_unit_test(the_oldest_give_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
