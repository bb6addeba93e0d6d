/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tokens whose signature was found right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/genuine.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/pass.h"
#include "tests/unit/auth/jwt_forge.h"

static void test_has_what_was_added(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    struct tl_genuine *table = tl_genuine_new();
    char text[32];
    assert_non_null(table);
    for (unsigned i = 0; i < MANY; i++) {
        int n = snprintf(text, sizeof(text), "token %u", i);
        assert_false(tl_genuine_has(table, text, (size_t)n));
        tl_genuine_add(table, text, (size_t)n);
        assert_true(tl_genuine_has(table, text, (size_t)n));
        assert_true(i >= 10 || !tl_genuine_has(table, text, (size_t)n - 1));
    }
    tl_genuine_free(&table);
    assert_null(table);
    tl_genuine_free(&table);
}

/* A pass that was verified once is still read in full the next time; one of another signature is
 * not the same token. */
static void test_a_known_pass_is_checked_again(void **state)
{
    (void)state;
    enum { NOW = 1795000000 };
    struct tl_jwt_keys *keys = forge_keys("e ES256\n" FORGE_EC_PRIVATE, TL_JWT_SIGN);
    const struct tl_pass given = {.visitor = "anna",
                                  .id = "a1",
                                  .issued = NOW,
                                  .expires = NOW + 60,
                                  .generation = 1,
                                  .place = 2,
                                  .event = 3};
    struct tl_pass pass;
    char text[TL_PASS_MAX];
    struct tl_error err = {0};
    assert_non_null(keys);
    assert_true(tl_jwt_keys_choose_signer(keys, TL_JWT_ES256));
    assert_true(tl_pass_sign(keys, "https://wait.example", "q", &given, text, &err));
    for (int i = 0; i < 2; i++) {
        assert_true(tl_pass_verify(keys, "https://wait.example", "q", text, strlen(text), NOW,
                                   &pass, &err));
        assert_string_equal(pass.visitor, "anna");
        assert_false(tl_pass_verify(keys, "https://wait.example", "other", text, strlen(text), NOW,
                                    &pass, &err));
        assert_false(tl_pass_verify(keys, "https://wait.example", "q", text, strlen(text),
                                    NOW + 600, &pass, &err));
    }
    char *signature = strrchr(text, '.') + 1;
    signature[5] = signature[5] == 'A' ? 'B' : 'A';
    assert_false(
        tl_pass_verify(keys, "https://wait.example", "q", text, strlen(text), NOW, &pass, &err));
    tl_jwt_keys_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_has_what_was_added),
        cmocka_unit_test(test_a_known_pass_is_checked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
