/* SPDX-License-Identifier: Apache-2.0 */
/* The modules that allocate, compiled once more on top of an allocator that fails when told to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static long allocations_left; /* negative: never fails */
static long allocations;      /* made so far */

static bool is_granted(void)
{
    if (allocations_left == 0)
        return false;
    if (allocations_left > 0)
        allocations_left--;
    allocations++;
    return true;
}

static void *scarce_calloc(size_t n, size_t size)
{
    return is_granted() ? calloc(n, size) : NULL;
}

static void *scarce_reallocarray(void *list, size_t n, size_t size)
{
    return is_granted() ? reallocarray(list, n, size) : NULL;
}

#define calloc       scarce_calloc
#define reallocarray scarce_reallocarray
#include "common/line/order.c"    /* NOLINT(bugprone-suspicious-include) */
#include "common/line/placemap.c" /* NOLINT(bugprone-suspicious-include) */
#include "common/line/region.c"   /* NOLINT(bugprone-suspicious-include) */
#undef calloc
#undef reallocarray

static int setup(void **state)
{
    (void)state;
    allocations_left = -1;
    return 0;
}

/* Adds [first, first + count) with ever more allocations granted until it succeeds. Every failure
 * before that must have left the index as it was. Returns how many failed. */
static int insert_at_last(struct tl_order *order, uint64_t first, uint64_t count)
{
    uint64_t held = order->count;
    uint64_t last_rank = tl_order_rank(order, UINT64_MAX);
    for (int granted = 0;; granted++) {
        allocations_left = granted;
        int64_t added = tl_order_insert(order, first, count);
        allocations_left = -1;
        if (added >= 0) {
            assert_int_equal(added, count);
            assert_int_equal(order->count, held + count);
            return granted;
        }
        assert_int_equal(order->count, held);
        assert_int_equal(tl_order_rank(order, UINT64_MAX), last_rank);
        assert_false(tl_order_contains(order, first));
        assert_false(tl_order_contains(order, first + count - 1));
    }
}

static void test_order_insert(void **state)
{
    (void)state;
    struct tl_order order = {0};
    /* The list of regions, the region, the three arrays of its window, and the block. */
    assert_int_equal(insert_at_last(&order, 8000, 10), 6);
    size_t bytes = tl_order_bytes(&order);
    /* A range that fails at its last block gives back the others, but not the one that holds 8,000.
     */
    allocations_left = 2;
    assert_int_equal(tl_order_insert(&order, 100, 16384), -1);
    allocations_left = -1;
    assert_int_equal(tl_order_bytes(&order), bytes);
    assert_int_equal(tl_order_rank(&order, 8005), 5);
    /* Three grants lay out the window again, which then stays; three blocks are the fourth try. */
    assert_int_equal(insert_at_last(&order, 100000, 10000), 4);
    assert_int_equal(tl_order_rank(&order, 100001), 11);
    /* Across two regions: what the first one got is given back when the second one gets none. */
    const uint64_t border = UINT64_C(1) << 26;
    assert_int_equal(insert_at_last(&order, 2 * border - 10, 20), 12);
    bytes = tl_order_bytes(&order);
    for (allocations_left = 0; allocations_left < 6; allocations_left++) {
        long granted = allocations_left;
        assert_int_equal(tl_order_insert(&order, 4 * border - 10, 20), -1);
        assert_int_equal(tl_order_bytes(&order), bytes);
        allocations_left = granted;
    }
    tl_order_clear(&order);
}

/* How often the window was reallocated (three arrays each time) while n_blocks blocks came into
 * use. */
static long window_moves(long allocations_before, long n_blocks)
{
    return (allocations - allocations_before - n_blocks) / 3;
}

/* Reallocating the window costs its whole length, so it must be rare: about once per doubling while
 * the line grows, forward or backward, and once per several blocks while a line of constant length
 * moves forward. */
static void test_order_window_moves_rarely(void **state)
{
    (void)state;
    enum { BLOCK = 4096, BLOCKS = 2000, LINE = 15 };
    const uint64_t middle = UINT64_C(1) << 40;
    struct tl_order order = {0};
    long before = allocations;
    for (uint64_t i = 0; i < BLOCKS; i++)
        assert_int_equal(tl_order_insert(&order, middle + i * BLOCK, 1), 1);
    assert_in_range(window_moves(before, BLOCKS), 1, 25);
    before = allocations;
    for (uint64_t i = 1; i <= BLOCKS; i++)
        assert_int_equal(tl_order_insert(&order, middle - i * BLOCK, 1), 1);
    assert_in_range(window_moves(before, BLOCKS), 1, 25);
    tl_order_clear(&order);
    before = allocations;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(tl_order_insert(&order, middle + i * BLOCK, 1), 1);
        tl_order_remove(&order, middle + (i - LINE) * BLOCK, 1);
    }
    assert_int_equal(order.count, LINE);
    assert_in_range(window_moves(before, BLOCKS), 1, BLOCKS / 4);
    tl_order_clear(&order);
}

static void test_placemap(void **state)
{
    (void)state;
    uint64_t value = 0;
    allocations_left = 0;
    struct tl_placemap map = {0};
    assert_false(tl_placemap_put(&map, 1, 10));
    assert_false(tl_placemap_get(&map, 1, &value));
    allocations_left = 1;
    for (tl_place place = 1; place <= 12; place++)
        assert_true(tl_placemap_put(&map, place, place * 10));
    /* The thirteenth needs a larger table. */
    assert_false(tl_placemap_put(&map, 13, 130));
    assert_int_equal(map.count, 12);
    assert_false(tl_placemap_get(&map, 13, &value));
    assert_true(tl_placemap_put(&map, 12, 121)); /* overwriting needs no memory */
    for (tl_place place = 1; place <= 12; place++) {
        assert_true(tl_placemap_get(&map, place, &value));
        assert_int_equal(value, place == 12 ? 121 : place * 10);
    }
    allocations_left = -1;
    for (tl_place place = 13; place <= 1000; place++)
        assert_true(tl_placemap_put(&map, place, place * 10));
    /* Removal works without memory to shrink into. */
    size_t bytes = tl_placemap_bytes(&map);
    allocations_left = 0;
    for (tl_place place = 1000; place > 1; place--)
        assert_true(tl_placemap_remove(&map, place, NULL));
    assert_int_equal(tl_placemap_bytes(&map), bytes);
    assert_true(tl_placemap_get(&map, 1, &value));
    assert_int_equal(value, 10);
    tl_placemap_clear(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_order_insert, setup),
        cmocka_unit_test_setup(test_order_window_moves_rarely, setup),
        cmocka_unit_test_setup(test_placemap, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
