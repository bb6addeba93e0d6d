/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "common/auth/base64.h"

enum { BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING, MOST = 60 };

/* libsodium's, for texts and bytes of each length. */
static void test_same_as_libsodium(void **state)
{
    (void)state;
    for (size_t n = 0; n <= MOST; n++) {
        for (int round = 0; round < 50; round++) {
            unsigned char bytes[MOST], read[MOST];
            char text[TL_BASE64_LENGTH(MOST) + 1], expected[TL_BASE64_LENGTH(MOST) + 1];
            size_t length = 0;
            randombytes_buf(bytes, sizeof(bytes));
            tl_base64_encode(bytes, n, text);
            sodium_bin2base64(expected, sizeof(expected), bytes, n, BASE64);
            assert_string_equal(text, expected);
            assert_int_equal(strlen(text), TL_BASE64_LENGTH(n));
            assert_true(tl_base64_decode(text, strlen(text), read, n, &length));
            assert_int_equal(length, n);
            assert_memory_equal(read, bytes, n);
            assert_true(n == 0 || !tl_base64_decode(text, strlen(text), read, n - 1, &length));
        }
    }
}

/* Each character at each place of texts of all four lengths modulo 4: what is taken is the text of
 * the bytes, and libsodium takes it, too. */
static void test_only_one_text(void **state)
{
    (void)state;
    for (size_t length = 1; length <= 8; length++) {
        for (size_t at = 0; at < length; at++) {
            for (unsigned c = 0; c < 256; c++) {
                char text[9] = "AAAAAAAA", again[9];
                unsigned char bytes[8], expected[8];
                size_t n = 0, m = 0;
                text[length] = '\0';
                text[at] = (char)c;
                bool taken = tl_base64_decode(text, length, bytes, sizeof(bytes), &n);
                bool wanted = c < 0x80 && sodium_base642bin(expected, sizeof(expected), text,
                                                            length, NULL, &m, NULL, BASE64) == 0;
                assert_int_equal(taken, wanted);
                if (!taken)
                    continue;
                assert_int_equal(n, m);
                assert_memory_equal(bytes, expected, n);
                tl_base64_encode(bytes, n, again);
                assert_string_equal(again, text);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_libsodium),
        cmocka_unit_test(test_only_one_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
