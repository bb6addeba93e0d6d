/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/calls/calls.h"

enum { DRAWN = 200 };

struct drawn {
    unsigned char id[TL_DRAW_ID_BYTES], key[TL_DRAW_KEY_BYTES];
};

static struct tl_draw_opening opening;
static struct drawn drawn[DRAWN];

static int by_key(const void *a, const void *b)
{
    return memcmp(((const struct drawn *)a)->key, ((const struct drawn *)b)->key,
                  TL_DRAW_KEY_BYTES);
}

static int make(void **state)
{
    (void)state;
    const struct tl_draw_secret secret = {.bytes = {7}};
    tl_draw_opening(&secret, "sale", 1764586800000, &opening);
    for (int i = 0; i < DRAWN; i++) {
        char visitor[16];
        int length = snprintf(visitor, sizeof(visitor), "visitor-%d", i);
        tl_draw_id(opening.salt, visitor, (size_t)length, drawn[i].id);
        tl_draw_key(opening.seed, drawn[i].id, drawn[i].key);
    }
    qsort(drawn, DRAWN, sizeof(drawn[0]), by_key);
    return 0;
}

/* The list, with `n` ids and the lines of two of them exchanged. */
static FILE *list(size_t n, size_t a, size_t b)
{
    struct tl_draw_head head = {.queue = "sale", .opens_at_ms = 1764586800000, .drawn = DRAWN};
    FILE *file = tmpfile();
    assert_non_null(file);
    memcpy(head.seed, opening.seed, sizeof(head.seed));
    memcpy(head.hash, opening.hash, sizeof(head.hash));
    tl_draw_list_write_head(file, &head);
    for (size_t i = 0; i < n; i++)
        tl_draw_list_write_id(file, drawn[i == a ? b : i == b ? a : i].id);
    rewind(file);
    return file;
}

static bool verify(FILE *file, struct tl_draw_check *check, struct tl_error *err)
{
    bool ok = tl_draw_verify(file, check, err);
    fclose(file);
    return ok;
}

static void a_true_list_verifies(void **state)
{
    (void)state;
    struct tl_error err;
    struct tl_draw_check check = {.hash = opening.hash, .id = drawn[41].id};
    assert_true(verify(list(DRAWN, 0, 0), &check, &err));
    assert_int_equal(check.rank, 42);
    assert_int_equal(check.head.drawn, DRAWN);
    assert_string_equal(check.head.queue, "sale");
    assert_int_equal(check.head.opens_at_ms, 1764586800000);
    const unsigned char other[TL_DRAW_ID_BYTES] = {0};
    check.id = other;
    assert_true(verify(list(DRAWN, 0, 0), &check, &err));
    assert_int_equal(check.rank, 0);
}

/* Wherever the two stand. */
static void one_swapped_pair_is_found(void **state)
{
    (void)state;
    struct tl_error err;
    for (size_t a = 0; a + 1 < DRAWN; a++) {
        struct tl_draw_check check = {0};
        assert_false(verify(list(DRAWN, a, a + 1), &check, &err));
        assert_non_null(strstr(err.text, "the order is wrong"));
        assert_false(verify(list(DRAWN, a, DRAWN - 1), &check, &err));
    }
}

static void a_missing_or_repeated_line_is_found(void **state)
{
    (void)state;
    struct tl_error err;
    struct tl_draw_check check = {0};
    assert_false(verify(list(DRAWN - 1, 0, 0), &check, &err));
    assert_non_null(strstr(err.text, "names 200 drawn visitors, but has 199"));
    FILE *file = list(DRAWN, 0, 0);
    fseek(file, 0, SEEK_END);
    tl_draw_list_write_id(file, drawn[DRAWN - 1].id);
    rewind(file);
    assert_false(verify(file, &check, &err));
}

static void another_seed_is_found(void **state)
{
    (void)state;
    struct tl_error err;
    const unsigned char published[TL_DRAW_KEY_BYTES] = {1};
    struct tl_draw_check check = {.hash = published};
    assert_false(verify(list(DRAWN, 0, 0), &check, &err));
    assert_non_null(strstr(err.text, "whose hash was published"));
    opening.seed[0] ^= 1;
    check.hash = NULL;
    assert_false(verify(list(DRAWN, 0, 0), &check, &err));
    assert_non_null(strstr(err.text, "does not have the hash"));
    opening.seed[0] ^= 1;
}

static void damaged_text_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "tellerline-draw 2\n",
        "tellerline-draw 1\nqueue q\n",
        "tellerline-draw 1\nqueue q\nopens_at never\n",
        "tellerline-draw 1\nqueue q\nopens_at 2026-12-01T11:00:00Z\nseed_hash 12\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tl_error err;
        struct tl_draw_check check = {0};
        FILE *file = tmpfile();
        fputs(texts[i], file);
        rewind(file);
        assert_false(verify(file, &check, &err));
        assert_int_not_equal(err.kind, TL_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_true_list_verifies),
        cmocka_unit_test(one_swapped_pair_is_found),
        cmocka_unit_test(a_missing_or_repeated_line_is_found),
        cmocka_unit_test(another_seed_is_found),
        cmocka_unit_test(damaged_text_is_refused),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
