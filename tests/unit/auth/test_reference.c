/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth/reference.h"

static struct tl_keyring *keyring_of(const char *text)
{
    char path[] = "/tmp/reference-XXXXXX";
    struct tl_error err = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
    struct tl_keyring *keyring = tl_keyring_load(path, false, &err);
    assert_int_equal(unlink(path), 0);
    assert_non_null(keyring);
    return keyring;
}

#define KEY_1 "00000001 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define KEY_2 "00000002 ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100\n"

static void a_code_is_recognized(void **state)
{
    (void)state;
    struct tl_keyring *keyring = keyring_of(KEY_1);
    for (unsigned i = 0; i < 5000; i++) {
        char text[TL_REFERENCE_MAX], visitor[24], other[24];
        uint64_t number;
        snprintf(visitor, sizeof(visitor), "visitor-%u", i);
        snprintf(other, sizeof(other), "visitor-%u", i + 1);
        tl_reference_write(keyring, "concert", visitor, text);
        assert_int_equal(strlen(text), 9);
        assert_int_equal(text[4], '-');
        assert_int_equal(strspn(text, "0123456789ABCDEFGHJKMNPQRSTVWXYZ-"), 9);
        assert_true(tl_reference_read(text, &number));
        assert_true(tl_reference_is_of(keyring, "concert", visitor, number));
        assert_false(tl_reference_is_of(keyring, "concert", other, number));
        assert_false(tl_reference_is_of(keyring, "concert2", visitor, number));
    }
    tl_keyring_free(&keyring);
}

/* Neighbours, other queues and other keys have other codes, about half of whose bits differ. */
static void a_code_tells_nothing(void **state)
{
    (void)state;
    enum { N = 4000 };
    struct tl_keyring *keyring = keyring_of(KEY_1), *other = keyring_of(KEY_2);
    char a[TL_REFERENCE_MAX], b[TL_REFERENCE_MAX], visitor[24];
    unsigned same = 0, rising = 0;
    tl_reference_write(keyring, "concert", "anna", a);
    tl_reference_write(keyring, "concert2", "anna", b);
    assert_string_not_equal(a, b);
    tl_reference_write(other, "concert", "anna", b);
    assert_string_not_equal(a, b);
    for (unsigned i = 0; i < N; i++) {
        snprintf(visitor, sizeof(visitor), "%u", i);
        tl_reference_write(keyring, "concert", visitor, b);
        assert_string_not_equal(a, b);
        rising += strcmp(a, b) < 0;
        for (size_t at = 0; at < 9; at++)
            same += at != 4 && a[at] == b[at];
        memcpy(a, b, sizeof(a));
    }
    /* Of 8 N digits every 32nd is the same by chance, and half of the codes are higher. */
    assert_in_range(same, 8 * N / 32 * 3 / 4, 8 * N / 32 * 5 / 4);
    assert_in_range(rising, N * 9 / 20, N * 11 / 20);
    tl_keyring_free(&keyring);
    tl_keyring_free(&other);
}

static void it_may_be_written_in_many_ways(void **state)
{
    (void)state;
    uint64_t expected, number;
    static const char *const same[] = {"0123-01XY", "ol23-oixy", " o123 0LXy ",
                                       "-0-1-2-3-0-1-X-Y-"};
    static const char *const none[] = {"",          "-",         "0123-01X",         "0123-01XYZ",
                                       "0123-01XU", "0123_01XY", "0123-01X\xc3\xa9", "0123-01XY\n"};
    assert_true(tl_reference_read("012301XY", &expected));
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        assert_true(tl_reference_read(same[i], &number));
        assert_true(number == expected);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(tl_reference_read(none[i], &number));
}

/* After a rotation the new key writes, and the old one still recognizes what it wrote. */
static void every_key_of_the_ring_counts(void **state)
{
    (void)state;
    struct tl_keyring *before = keyring_of(KEY_1), *after = keyring_of(KEY_2 KEY_1);
    char old[TL_REFERENCE_MAX], new[TL_REFERENCE_MAX];
    uint64_t of_old = 0, of_new = 0;
    tl_reference_write(before, "q", "anna", old);
    tl_reference_write(after, "q", "anna", new);
    assert_string_not_equal(old, new);
    assert_true(tl_reference_read(old, &of_old) && tl_reference_read(new, &of_new));
    assert_true(tl_reference_is_of(after, "q", "anna", of_old));
    assert_true(tl_reference_is_of(after, "q", "anna", of_new));
    assert_false(tl_reference_is_of(before, "q", "anna", of_new));
    tl_keyring_free(&before);
    tl_keyring_free(&after);
}

/* Codes that visitors have written down must outlive a new release. */
static void the_code_stays_what_it_is(void **state)
{
    (void)state;
    struct tl_keyring *keyring = keyring_of(KEY_1);
    char text[TL_REFERENCE_MAX];
    tl_reference_write(keyring, "concert-2026", "anna", text);
    assert_string_equal(text, "EAKG-BBSN");
    tl_keyring_free(&keyring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_is_recognized),
        cmocka_unit_test(a_code_tells_nothing),
        cmocka_unit_test(it_may_be_written_in_many_ways),
        cmocka_unit_test(every_key_of_the_ring_counts),
        cmocka_unit_test(the_code_stays_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
