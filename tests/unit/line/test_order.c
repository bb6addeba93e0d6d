/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/line/order.h"
#include "tests/unit/random.h"

#define REGION (UINT64_C(1) << 26)

/* ---- the naive model: a sorted array, searched from the front ---- */

enum { MODEL_MAX = 400 };

struct model {
    uint64_t seqs[MODEL_MAX];
    size_t count;
};

static size_t model_rank(const struct model *model, uint64_t seq)
{
    size_t rank = 0;
    while (rank < model->count && model->seqs[rank] < seq)
        rank++;
    return rank;
}

static bool model_contains(const struct model *model, uint64_t seq)
{
    size_t rank = model_rank(model, seq);
    return rank < model->count && model->seqs[rank] == seq;
}

static int64_t model_insert(struct model *model, uint64_t first, uint64_t count)
{
    int64_t added = 0;
    for (uint64_t seq = first; seq < first + count; seq++) {
        if (model_contains(model, seq))
            continue;
        assert_true(model->count < MODEL_MAX);
        size_t at = model_rank(model, seq);
        memmove(&model->seqs[at + 1], &model->seqs[at], (model->count - at) * sizeof(uint64_t));
        model->seqs[at] = seq;
        model->count++;
        added++;
    }
    return added;
}

static uint64_t model_remove(struct model *model, uint64_t first, uint64_t count)
{
    size_t from = model_rank(model, first);
    size_t to = model_rank(model, first + count);
    memmove(&model->seqs[from], &model->seqs[to], (model->count - to) * sizeof(uint64_t));
    model->count -= to - from;
    return to - from;
}

static void compare_at(const struct tl_order *order, const struct model *model, uint64_t seq)
{
    uint64_t found = 0;
    size_t rank = model_rank(model, seq);
    assert_int_equal(order->count, model->count);
    assert_int_equal(tl_order_contains(order, seq), model_contains(model, seq));
    assert_int_equal(tl_order_rank(order, seq), rank);
    assert_int_equal(tl_order_next(order, seq, &found), rank < model->count);
    if (rank < model->count)
        assert_int_equal(found, model->seqs[rank]);
}

/* Everything held, once by iterating and once by selecting. */
static void compare_all(const struct tl_order *order, const struct model *model)
{
    uint64_t found = 0;
    uint64_t from = 0;
    for (size_t i = 0; i < model->count; i++) {
        assert_true(tl_order_next(order, from, &found));
        assert_int_equal(found, model->seqs[i]);
        from = found + 1;
        assert_true(tl_order_select(order, i, &found));
        assert_int_equal(found, model->seqs[i]);
    }
    assert_false(tl_order_next(order, from, &found));
    assert_false(tl_order_select(order, model->count, &found));
}

/* ---- properties ---- */

/* A million operations on 300 places, which lie across the border of two blocks. */
static void test_dense_model(void **state)
{
    (void)state;
    enum { PLACES = 300, OPERATIONS = 1000000 };
    uint64_t random = random_seed("dense");
    struct tl_order order = {0};
    struct model model = {.count = 0};
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t first = 4096 - PLACES / 2 + random_below(&random, PLACES);
        uint64_t count = random_below(&random, 9);
        if (random_below(&random, 2) == 0)
            assert_int_equal(tl_order_insert(&order, first, count),
                             count == 0 ? 0 : model_insert(&model, first, count));
        else
            assert_int_equal(tl_order_remove(&order, first, count),
                             model_remove(&model, first, count));
        if (i % 4 == 0)
            compare_at(&order, &model, 4096 - PLACES + random_below(&random, UINT64_C(2) * PLACES));
        if (i % 5000 == 0)
            compare_all(&order, &model);
    }
    compare_all(&order, &model);
    tl_order_clear(&order);
}

/* Few places over a wide and moving range: windows grow both ways, slide and shrink, and regions
 * come and go. */
static void test_sparse_model(void **state)
{
    (void)state;
    enum { OPERATIONS = 60000, KEPT = 40 };
    uint64_t random = random_seed("sparse");
    struct tl_order order = {0};
    struct model model = {.count = 0};
    uint64_t middle = UINT64_C(1) << 47;
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t reach = UINT64_C(1) << random_below(&random, i % 2000 < 200 ? 44 : 28);
        uint64_t seq = middle - reach + random_below(&random, 2 * reach);
        assert_int_equal(tl_order_insert(&order, seq, 3), model_insert(&model, seq, 3));
        compare_at(&order, &model, seq + random_below(&random, 8));
        while (model.count > KEPT) {
            /* Mostly from the front, as a line does; sometimes from the back. */
            size_t at = random_below(&random, 8) == 0 ? model.count - 1 : 0;
            uint64_t gone = model.seqs[at];
            assert_int_equal(tl_order_remove(&order, gone, 1), 1);
            assert_int_equal(model_remove(&model, gone, 1), 1);
        }
        if (i % 100 == 0)
            compare_all(&order, &model);
        middle += (i / 3000) % 2 == 0 ? reach / 8 : -(reach / 8);
    }
    assert_true(tl_order_bytes(&order) < 64 * 1024 * KEPT);
    tl_order_clear(&order);
}

/* Long ranges over a dozen blocks, against one byte per place. */
static void test_ranges_model(void **state)
{
    (void)state;
    enum { PLACES = 50000, OPERATIONS = 1500 };
    static unsigned char held[PLACES];
    uint64_t random = random_seed("ranges");
    struct tl_order order = {0};
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t first = random_below(&random, PLACES);
        uint64_t count = random_below(&random, random_below(&random, 2) == 0 ? PLACES : 200);
        count = first + count > PLACES ? PLACES - first : count;
        unsigned char wanted = random_below(&random, 2) == 0;
        uint64_t changed = 0;
        for (uint64_t seq = first; seq < first + count; seq++) {
            changed += held[seq] != wanted;
            held[seq] = wanted;
        }
        if (wanted)
            assert_int_equal(tl_order_insert(&order, first, count), changed);
        else
            assert_int_equal(tl_order_remove(&order, first, count), changed);
        uint64_t probe = random_below(&random, PLACES);
        uint64_t rank = 0;
        for (uint64_t seq = 0; seq < probe; seq++)
            rank += held[seq];
        assert_int_equal(tl_order_rank(&order, probe), rank);
        assert_int_equal(tl_order_contains(&order, probe), held[probe]);
        uint64_t found = 0;
        if (held[probe]) {
            assert_true(tl_order_select(&order, rank, &found));
            assert_int_equal(found, probe);
        }
    }
    tl_order_clear(&order);
}

/* A line of 10,000 that two million pass through: memory follows the line, not its history. */
static void test_window_slides(void **state)
{
    (void)state;
    enum { LINE = 10000, STEP = 100 };
    struct tl_order order = {0};
    for (uint64_t seq = 1; seq <= 2000000; seq += STEP) {
        assert_int_equal(tl_order_insert(&order, seq, STEP), STEP);
        if (seq > LINE)
            assert_int_equal(tl_order_remove(&order, seq - LINE, STEP), STEP);
        assert_int_equal(tl_order_rank(&order, seq), seq > LINE ? LINE - STEP : seq - 1);
        assert_true(tl_order_bytes(&order) < 4096);
    }
    tl_order_clear(&order);
}

/* ---- edges ---- */

static void test_empty(void **state)
{
    (void)state;
    uint64_t found = 7;
    struct tl_order order = {0};
    assert_int_equal(order.count, 0);
    assert_false(tl_order_contains(&order, 0));
    assert_int_equal(tl_order_rank(&order, UINT64_MAX), 0);
    assert_false(tl_order_next(&order, 0, &found));
    assert_false(tl_order_select(&order, 0, &found));
    assert_int_equal(tl_order_remove(&order, 0, UINT64_MAX), 0);
    assert_int_equal(tl_order_insert(&order, 5, 0), 0);
    assert_int_equal(order.count, 0);
    assert_int_equal(found, 7);
    tl_order_clear(&order);
    tl_order_clear(&order);
}

/* After each restart of the store the seqs go on far above. */
static void test_jumps(void **state)
{
    (void)state;
    enum { JUMPS = 100, LINE = 1000 };
    const uint64_t jump = UINT64_C(1) << 41;
    struct tl_order order = {0};
    uint64_t found = 0;
    for (uint64_t i = 1; i <= JUMPS; i++)
        assert_int_equal(tl_order_insert(&order, i * jump - 1, LINE), LINE);
    assert_int_equal(order.count, JUMPS * LINE);
    assert_true(tl_order_bytes(&order) < 4096 * JUMPS); /* two blocks for each piece of the line */
    for (uint64_t i = 1; i <= JUMPS; i++) {
        assert_int_equal(tl_order_rank(&order, i * jump - 1), (i - 1) * LINE);
        assert_int_equal(tl_order_rank(&order, i * jump + jump / 2), i * LINE);
        assert_true(tl_order_select(&order, i * LINE - 1, &found));
        assert_int_equal(found, i * jump + LINE - 2);
        assert_int_equal(tl_order_next(&order, found + 1, &found), i < JUMPS);
        assert_int_equal(found, i < JUMPS ? (i + 1) * jump - 1 : i * jump + LINE - 2);
    }
    /* The front empties, and its memory returns. */
    assert_int_equal(tl_order_remove(&order, 0, JUMPS * jump - 1), (JUMPS - 1) * LINE);
    assert_int_equal(tl_order_rank(&order, JUMPS * jump), 1);
    assert_true(tl_order_bytes(&order) < 8192);
    tl_order_clear(&order);
}

/* A range across regions, over one that holds something and one that does not. */
static void test_ranges_across_regions(void **state)
{
    (void)state;
    const uint64_t first = 5 * REGION - 10;
    struct tl_order order = {0};
    uint64_t found = 0;
    assert_int_equal(tl_order_insert(&order, 6 * REGION - 5, 10), 10);
    assert_int_equal(tl_order_insert(&order, first, REGION + 20), REGION + 10);
    assert_int_equal(order.count, REGION + 20);
    assert_int_equal(tl_order_rank(&order, 5 * REGION), 10);
    assert_int_equal(tl_order_rank(&order, 6 * REGION + 5), REGION + 15);
    assert_true(tl_order_select(&order, REGION + 19, &found));
    assert_int_equal(found, 6 * REGION + 9);
    assert_int_equal(tl_order_remove(&order, 5 * REGION - 5, REGION + 10), REGION + 10);
    assert_true(tl_order_next(&order, 5 * REGION - 5, &found));
    assert_int_equal(found, 6 * REGION + 5);
    assert_int_equal(tl_order_insert(&order, 0, (UINT64_C(1) << 32) + 1), -1);
    assert_int_equal(order.count, 10);
    tl_order_clear(&order);
}

static void test_extreme_seqs(void **state)
{
    (void)state;
    const uint64_t last = (UINT64_C(1) << 63) - 1;
    struct tl_order order = {0};
    uint64_t found = 0;
    assert_int_equal(tl_order_insert(&order, last + 1, 1), -1);
    assert_int_equal(tl_order_insert(&order, last, 2), -1);
    assert_int_equal(tl_order_insert(&order, UINT64_MAX, 1), -1);
    assert_int_equal(tl_order_insert(&order, UINT64_MAX, UINT64_MAX), -1);
    assert_int_equal(tl_order_insert(&order, last - 1, 2), 2);
    assert_int_equal(tl_order_rank(&order, last), 1);
    assert_int_equal(tl_order_rank(&order, UINT64_MAX), 2);
    assert_true(tl_order_next(&order, last, &found));
    assert_int_equal(found, last);
    assert_false(tl_order_next(&order, last + 1, &found));
    assert_int_equal(tl_order_remove(&order, 0, UINT64_MAX), 2);
    assert_int_equal(tl_order_insert(&order, 0, 1), 1);
    assert_true(tl_order_contains(&order, 0));
    assert_int_equal(tl_order_remove(&order, 0, 1), 1);
    tl_order_clear(&order);
}

static void test_memory_returns(void **state)
{
    (void)state;
    struct tl_order order = {0};
    size_t empty = tl_order_bytes(&order);
    assert_int_equal(tl_order_insert(&order, 1, 1000000), 1000000);
    assert_true(tl_order_bytes(&order) >= 1000000 / 8);
    assert_true(tl_order_bytes(&order) < 1000000 / 7);
    /* Removing all but one place leaves one block. */
    size_t full = tl_order_bytes(&order);
    assert_int_equal(tl_order_remove(&order, 2, 1000000), 999999);
    assert_true(tl_order_bytes(&order) < full / 10);
    assert_int_equal(tl_order_remove(&order, 1, 1), 1);
    assert_int_equal(tl_order_bytes(&order), empty);
    assert_int_equal(tl_order_insert(&order, 77, 3), 3);
    tl_order_clear(&order);
    assert_int_equal(order.count, 0);
    assert_int_equal(tl_order_bytes(&order), empty);
    assert_false(tl_order_contains(&order, 77));
    assert_int_equal(tl_order_insert(&order, 77, 3), 3);
    tl_order_clear(&order);
}

/* ---- ten million waiting ---- */

enum { MANY = 10000000 };

/* Compares the whole line with one byte per place, and random ranks and selections with counts by
 * prefix. */
static void compare_many(const struct tl_order *order, const unsigned char *held, uint32_t *prefix,
                         uint64_t *random)
{
    uint32_t count = 0;
    uint64_t next = 0;
    bool more = tl_order_next(order, 0, &next);
    for (uint64_t seq = 0; seq <= MANY; seq++) {
        prefix[seq] = count;
        if (!held[seq])
            continue;
        if (!more || next != seq)
            fail_msg("next: expected %" PRIu64 ", got %" PRIu64, seq, next);
        more = tl_order_next(order, seq + 1, &next);
        count++;
    }
    assert_false(more);
    assert_int_equal(order->count, count);
    for (int i = 0; i < 500000; i++) {
        uint64_t seq = random_below(random, MANY + 1);
        assert_int_equal(tl_order_rank(order, seq), prefix[seq]);
        assert_int_equal(tl_order_contains(order, seq), held[seq]);
        uint64_t rank = random_below(random, count);
        uint64_t found = 0;
        assert_true(tl_order_select(order, rank, &found));
        assert_true(found <= MANY && held[found]);
        assert_int_equal(prefix[found], rank);
    }
}

static void test_ten_million(void **state)
{
    (void)state;
    uint64_t random = random_seed("ten million");
    unsigned char *held = calloc(MANY + 1, 1);
    uint32_t *prefix = calloc(MANY + 1, sizeof(*prefix));
    assert_non_null(held);
    assert_non_null(prefix);
    struct tl_order order = {0};
    for (uint64_t first = 1; first <= MANY; first += 500)
        assert_int_equal(tl_order_insert(&order, first, 500), 500);
    memset(held + 1, 1, MANY);
    assert_true(tl_order_bytes(&order) < 1400000);
    compare_many(&order, held, prefix, &random);

    /* The front is admitted, some leave from anywhere, a stretch in the middle was never there. */
    assert_int_equal(tl_order_remove(&order, 1, 1234567), 1234567);
    memset(held + 1, 0, 1234567);
    assert_int_equal(tl_order_remove(&order, 6000001, 1000000), 1000000);
    memset(held + 6000001, 0, 1000000);
    for (int i = 0; i < 1000000; i++) {
        uint64_t seq = 1 + random_below(&random, MANY);
        assert_int_equal(tl_order_remove(&order, seq, 1), held[seq]);
        held[seq] = 0;
    }
    compare_many(&order, held, prefix, &random);

    tl_order_clear(&order);
    free(held);
    free(prefix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_ranges_across_regions),
        cmocka_unit_test(test_extreme_seqs),
        cmocka_unit_test(test_memory_returns),
        cmocka_unit_test(test_window_slides),
        cmocka_unit_test(test_dense_model),
        cmocka_unit_test(test_sparse_model),
        cmocka_unit_test(test_ranges_model),
        cmocka_unit_test(test_ten_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
