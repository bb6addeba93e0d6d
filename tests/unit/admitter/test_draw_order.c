/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "admitter/draw_order.h"

enum { VISITORS = 5000 };

static struct tl_draw_opening opening(void)
{
    const struct tl_draw_secret secret = {.bytes = {3}};
    struct tl_draw_opening made;
    tl_draw_opening(&secret, "sale", 1000, &made);
    return made;
}

/* All visitors, from this one on, in portions of this size. */
static struct tl_draw_order *filled(size_t from, size_t portion)
{
    const struct tl_draw_opening made = opening();
    struct tl_draw_order *order = tl_draw_order_new(&made);
    assert_non_null(order);
    for (size_t i = 0; i < VISITORS; i++) {
        char visitor[32];
        int length = snprintf(visitor, sizeof(visitor), "visitor-%zu", (from + i * 7) % VISITORS);
        assert_true(tl_draw_order_add(order, visitor, (size_t)length));
        if (i % portion == portion - 1)
            assert_true(tl_draw_order_cut(order));
    }
    assert_true(tl_draw_order_cut(order));
    assert_true(tl_draw_order_cut(order)); /* an empty portion is none */
    return order;
}

static void visitors_come_out_by_their_keys(void **state)
{
    (void)state;
    const struct tl_draw_opening made = opening();
    struct tl_draw_order *order = filled(0, 64);
    unsigned char before[TL_DRAW_KEY_BYTES] = {0}, key[TL_DRAW_KEY_BYTES], id[TL_DRAW_ID_BYTES];
    struct tl_drawn drawn;
    size_t n = 0;
    for (; tl_draw_order_next(order, &drawn); n++) {
        tl_draw_id(made.salt, drawn.visitor, drawn.length, id);
        assert_memory_equal(drawn.id, id, sizeof(id));
        tl_draw_key(made.seed, id, key);
        assert_true(memcmp(before, key, sizeof(key)) < 0);
        memcpy(before, key, sizeof(key));
    }
    assert_int_equal(n, VISITORS);
    assert_false(tl_draw_order_next(order, &drawn));
    tl_draw_order_free(&order);
    assert_null(order);
}

static void arrival_and_portions_do_not_matter(void **state)
{
    (void)state;
    static const size_t portions[] = {1, 63, VISITORS, 5};
    struct tl_draw_order *first = filled(0, 64);
    struct tl_draw_order *others[4];
    struct tl_drawn one, other;
    for (size_t i = 0; i < 4; i++)
        others[i] = filled(1000 * i + 1, portions[i]);
    while (tl_draw_order_next(first, &one)) {
        for (size_t i = 0; i < 4; i++) {
            assert_true(tl_draw_order_next(others[i], &other));
            assert_int_equal(one.length, other.length);
            assert_memory_equal(one.visitor, other.visitor, one.length);
        }
    }
    for (size_t i = 0; i < 4; i++)
        tl_draw_order_free(&others[i]);
    tl_draw_order_free(&first);
}

static void nobody_is_an_order_too(void **state)
{
    (void)state;
    const struct tl_draw_opening made = opening();
    struct tl_draw_order *order = tl_draw_order_new(&made);
    struct tl_drawn drawn;
    assert_true(tl_draw_order_cut(order));
    assert_false(tl_draw_order_next(order, &drawn));
    tl_draw_order_free(&order);
    tl_draw_order_free(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(visitors_come_out_by_their_keys),
        cmocka_unit_test(arrival_and_portions_do_not_matter),
        cmocka_unit_test(nobody_is_an_order_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
