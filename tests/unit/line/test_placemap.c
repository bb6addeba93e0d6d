/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/line/placemap.h"
#include "tests/unit/random.h"

/* ---- the naive model: one cell per place of a small universe ---- */

enum { LANES = 4, SEQS = 500, PLACES = LANES * SEQS };

struct model {
    bool held[PLACES];
    uint64_t values[PLACES];
    size_t count;
};

static tl_place place_of(size_t i)
{
    return tl_place_make((unsigned)(i / SEQS), 1 + i % SEQS);
}

static void model_put(struct tl_placemap *map, struct model *model, size_t i, uint64_t value)
{
    assert_true(tl_placemap_put(map, place_of(i), value));
    model->count += model->held[i] ? 0 : 1;
    model->held[i] = true;
    model->values[i] = value;
}

static void model_remove(struct tl_placemap *map, struct model *model, size_t i)
{
    uint64_t value = 0;
    assert_int_equal(tl_placemap_remove(map, place_of(i), &value), model->held[i]);
    if (!model->held[i])
        return;
    assert_int_equal(value, model->values[i]);
    model->held[i] = false;
    model->count--;
}

static void compare_one(const struct tl_placemap *map, const struct model *model, size_t i)
{
    uint64_t value = 0;
    assert_int_equal(map->count, model->count);
    assert_int_equal(tl_placemap_get(map, place_of(i), &value), model->held[i]);
    if (model->held[i])
        assert_int_equal(value, model->values[i]);
}

static void compare_all(const struct tl_placemap *map, const struct model *model)
{
    for (size_t i = 0; i < PLACES; i++)
        compare_one(map, model, i);
}

/* ---- tests ---- */

/* A million operations. The universe in play is now small, so that runs of entries collide and wrap
 * around the end of a table of 16, now large, so that the table grows and shrinks. */
static void test_model(void **state)
{
    (void)state;
    uint64_t random = random_seed("placemap");
    struct tl_placemap map = {0};
    struct model model = {.count = 0};
    for (int i = 0; i < 1000000; i++) {
        size_t universe = (i / 10000) % 2 == 0 ? 24 : PLACES;
        uint64_t puts = (i / 5000) % 2 == 0 ? 6 : 3; /* of 8: mostly fill, then mostly empty */
        size_t at = random_below(&random, universe);
        if (random_below(&random, 8) < puts)
            model_put(&map, &model, at, random_next(&random));
        else
            model_remove(&map, &model, at);
        compare_one(&map, &model, random_below(&random, universe));
        if (i % 2000 == 0)
            compare_all(&map, &model);
    }
    compare_all(&map, &model);
    tl_placemap_clear(&map);
}

static void test_empty(void **state)
{
    (void)state;
    struct tl_placemap map = {0};
    uint64_t value = 7;
    assert_int_equal(map.count, 0);
    assert_false(tl_placemap_get(&map, 1, &value));
    assert_false(tl_placemap_remove(&map, 1, &value));
    assert_int_equal(value, 7);
    tl_placemap_clear(&map);
    tl_placemap_clear(&map);
}

/* Place 0 is no place: refused, and never found, not even in a full run of free entries. */
static void test_no_place(void **state)
{
    (void)state;
    struct tl_placemap map = {0};
    uint64_t value = 7;
    assert_false(tl_placemap_put(&map, 0, 1));
    assert_true(tl_placemap_put(&map, 5, 1));
    assert_false(tl_placemap_put(&map, 0, 1));
    assert_false(tl_placemap_get(&map, 0, &value));
    assert_false(tl_placemap_remove(&map, 0, &value));
    assert_int_equal(map.count, 1);
    assert_int_equal(value, 7);
    tl_placemap_clear(&map);
}

static void test_overwrite(void **state)
{
    (void)state;
    struct tl_placemap map = {0};
    uint64_t value = 0;
    assert_true(tl_placemap_put(&map, 5, 1));
    assert_true(tl_placemap_put(&map, 5, UINT64_MAX));
    assert_int_equal(map.count, 1);
    assert_true(tl_placemap_get(&map, 5, &value));
    assert_true(value == UINT64_MAX);
    assert_true(tl_placemap_remove(&map, 5, NULL));
    assert_int_equal(map.count, 0);
    tl_placemap_clear(&map);
    assert_true(tl_placemap_put(&map, 5, 2));
    tl_placemap_clear(&map);
    assert_false(tl_placemap_get(&map, 5, &value));
    assert_int_equal(map.count, 0);
    tl_placemap_clear(&map);
}

/* A million consecutive places: at most 3/4 full, never less than 3/8 while growing, and small
 * again when they have gone. */
static void test_grows_and_shrinks(void **state)
{
    (void)state;
    enum { MANY = 1000000 };
    struct tl_placemap map = {0};
    uint64_t value = 0;
    for (uint64_t seq = 1; seq <= MANY; seq++)
        assert_true(tl_placemap_put(&map, tl_place_make(1, seq), seq * 3));
    assert_int_equal(map.count, MANY);
    assert_true(tl_placemap_bytes(&map) > (size_t)MANY * 16 * 4 / 3);
    assert_true(tl_placemap_bytes(&map) < (size_t)MANY * 16 * 8 / 3);
    for (uint64_t seq = 1; seq <= MANY; seq++) {
        assert_true(tl_placemap_remove(&map, tl_place_make(1, seq), &value));
        assert_int_equal(value, seq * 3);
        if (seq < MANY)
            assert_true(tl_placemap_get(&map, tl_place_make(1, MANY), &value));
    }
    assert_int_equal(map.count, 0);
    assert_true(tl_placemap_bytes(&map) < 1024);
    tl_placemap_clear(&map);
}

static bool is_even(void *context, tl_place place)
{
    *(unsigned *)context += 1;
    return place % 2 == 0;
}

/* Also where a cluster of entries runs over the end of the table. */
static void test_keep(void **state)
{
    (void)state;
    for (uint64_t n = 0; n <= 400; n += 4) {
        struct tl_placemap map = {0};
        uint64_t value = 0;
        unsigned asked = 0;
        for (uint64_t place = 1; place <= n; place++)
            assert_true(tl_placemap_put(&map, place, 10 * place));
        tl_placemap_keep(&map, is_even, &asked);
        assert_true(asked >= n);
        assert_int_equal(map.count, n / 2);
        for (uint64_t place = 1; place <= n; place++) {
            assert_int_equal(tl_placemap_get(&map, place, &value), place % 2 == 0);
            assert_true(place % 2 != 0 || value == 10 * place);
        }
        tl_placemap_clear(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_no_place),
        cmocka_unit_test(test_overwrite),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_grows_and_shrinks),
        cmocka_unit_test(test_keep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
