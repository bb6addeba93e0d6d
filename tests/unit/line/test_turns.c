/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns between lanes, against a simulation that admits one visitor after another by the rule
 * itself: of the lanes with visitors, the one whose turn comes first, in fractions that need no
 * common period.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/line/turns.h"
#include "tests/unit/random.h"

enum { SEEDS = 3000, SIZE_MAX_OF_LANE = 40 };

/* The simulation: the time of a lane's next turn is a fraction over `scale`. */
struct model {
    uint64_t weights[TL_LANES_MAX]; /* 0: strict */
    uint64_t next[TL_LANES_MAX], clock, scale;
};

static int admit_one(struct model *model, uint64_t sizes[TL_LANES_MAX])
{
    int served = -1;
    uint64_t first = 0;
    for (int lane = 0; lane < TL_LANES_MAX; lane++) {
        uint64_t turn = model->next[lane] > model->clock ? model->next[lane] : model->clock;
        if (sizes[lane] > 0 && (served < 0 || (model->weights[0] > 0 && turn < first))) {
            served = lane;
            first = turn;
        }
    }
    if (served < 0)
        return -1;
    sizes[served]--;
    if (model->weights[0] > 0) {
        model->clock = first;
        model->next[served] = first + model->scale / model->weights[served];
    }
    return served;
}

static void begin(struct model *model, struct tl_turns *turns, uint64_t *random)
{
    static const char *const choices[] = {"",    "1,1",   "3,1",     "1,3",          "1,1000",
                                          "5,3", "7,2,1", "2,3,4,5", "10,10,10,1,1", "6"};
    const char *text = choices[random_below(random, sizeof(choices) / sizeof(choices[0]))];
    struct tl_weights weights;
    *model = (struct model){.scale = 720720000};
    *turns = (struct tl_turns){0};
    assert_int_equal(tl_weights_parse(text, strlen(text), &weights), TL_WEIGHTS_GOOD);
    tl_turns_weigh(turns, &weights);
    for (size_t lane = 0; lane < TL_LANES_MAX && weights.n > 0; lane++)
        model->weights[lane] = lane < weights.n ? weights.of[lane] : 1;
}

/* Visitors join and leave, lanes run empty. */
static void change_sizes(uint64_t sizes[TL_LANES_MAX], uint64_t *random)
{
    for (size_t lane = 0; lane < 6; lane++)
        if (random_below(random, 2) == 0)
            sizes[lane] = random_below(random, 2) * random_below(random, SIZE_MAX_OF_LANE);
}

static void positions_come_true(void **state)
{
    (void)state;
    uint64_t random = random_seed("positions_come_true");
    for (int seed = 0; seed < SEEDS; seed++) {
        struct model model;
        struct tl_turns turns;
        uint64_t sizes[TL_LANES_MAX] = {0};
        begin(&model, &turns, &random);
        for (int step = 0; step < 5; step++) {
            uint64_t left[TL_LANES_MAX], admitted[TL_LANES_MAX] = {0}, ranks[TL_LANES_MAX] = {0};
            struct model ahead = model;
            int lane;
            change_sizes(sizes, &random);
            memcpy(left, sizes, sizeof(left));
            for (uint64_t n = 0; (lane = admit_one(&ahead, left)) >= 0; n++)
                assert_int_equal(tl_turns_ahead(&turns, sizes, (unsigned)lane, ranks[lane]++), n);
            uint64_t n = random_below(&random, 60); /* one step of the admitter */
            for (; n > 0; n--) {
                struct tl_turns now = turns; /* as after a step of what was admitted so far */
                tl_turns_admitted(&now, admitted);
                int next = tl_turns_take(&now, sizes);
                if (next < 0)
                    break;
                assert_int_equal(admit_one(&model, sizes), next);
                admitted[next]++;
            }
            tl_turns_admitted(&turns, admitted);
        }
    }
}

/* Two readers, one of which saw every visitor in a step of its own. */
static void the_steps_do_not_matter(void **state)
{
    (void)state;
    uint64_t random = random_seed("the_steps_do_not_matter");
    for (int seed = 0; seed < SEEDS; seed++) {
        struct model model;
        struct tl_turns whole, single;
        uint64_t sizes[TL_LANES_MAX] = {0};
        begin(&model, &whole, &random);
        single = whole;
        for (int step = 0; step < 5; step++) {
            uint64_t admitted[TL_LANES_MAX] = {0};
            change_sizes(sizes, &random);
            for (uint64_t n = random_below(&random, 60); n > 0; n--) {
                int lane = tl_turns_take(&single, sizes);
                if (lane < 0)
                    break;
                sizes[lane]--;
                admitted[lane]++;
            }
            tl_turns_admitted(&whole, admitted);
            assert_memory_equal(&whole, &single, sizeof(whole));
        }
    }
}

static void an_empty_lane_gathers_no_credit(void **state)
{
    (void)state;
    struct tl_turns turns = {0};
    struct tl_weights weights = {.n = 2, .of = {1, 9}};
    uint64_t sizes[TL_LANES_MAX] = {100};
    tl_turns_weigh(&turns, &weights);
    tl_turns_admitted(&turns, (uint64_t[TL_LANES_MAX]){50}); /* while the other lane was empty */
    sizes[1] = 100;
    /* Not 450 turns of lane 1 first, but 9 for each of lane 0. */
    assert_int_equal(tl_turns_ahead(&turns, sizes, 0, 0), 9);
    assert_int_equal(tl_turns_ahead(&turns, sizes, 0, 1), 19);
}

static void the_field_of_the_store_is_read(void **state)
{
    (void)state;
    struct tl_turns turns = {0};
    const struct tl_weights weights = {.n = 2, .of = {3, 1}};
    tl_turns_continue(&turns, "3,1:3:1,2");
    assert_true(tl_weights_same(&turns.weights, &weights));
    assert_int_equal(turns.due[0], 1);
    assert_int_equal(turns.due[1], 2);
    assert_int_equal(turns.strides[1], 3);
    assert_int_equal(turns.strides[2], 3); /* no weight: as 1 */
    tl_turns_weigh(&turns, &weights);
    assert_int_equal(turns.due[1], 2);
    tl_turns_weigh(&turns, &(struct tl_weights){.n = 2, .of = {1, 1}});
    assert_int_equal(turns.due[1], 0);
    static const char *const damaged[] = {"", ":", "3,1", "3,x:3:1,2", "3,1:", "3,1:3:", "::::"};
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        tl_turns_continue(&turns, "3,1:3:1,2");
        tl_turns_continue(&turns, damaged[i]);
        assert_int_equal(turns.due[0], 0);
    }
    tl_turns_continue(&turns, "3,1:3:99999999999999999999,4,4,1x");
    assert_int_equal(turns.due[0], 1); /* at most a stride */
    assert_int_equal(turns.due[1], 3);
    assert_int_equal(turns.due[3], 1);
}

/* The largest numbers there can be. */
static void nothing_overflows(void **state)
{
    (void)state;
    struct tl_turns turns = {0};
    const struct tl_weights weights = {.n = 4, .of = {1000, 999, 997, 1}};
    const uint64_t many = UINT64_C(1) << 32;
    const uint64_t sizes[TL_LANES_MAX] = {many, many, many, many};
    tl_turns_weigh(&turns, &weights);
    assert_int_equal(tl_weights_period(&weights), 996003000);
    assert_int_equal(tl_turns_ahead(&turns, sizes, 3, many - 1), 4 * many - 1);
    assert_in_range(tl_turns_ahead(&turns, sizes, 3, 1000), 1000 * 2996, 1000 * 2998);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_come_true),
        cmocka_unit_test(the_steps_do_not_matter),
        cmocka_unit_test(an_empty_lane_gathers_no_credit),
        cmocka_unit_test(the_field_of_the_store_is_read),
        cmocka_unit_test(nothing_overflows),
    };
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
