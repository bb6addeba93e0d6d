/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes with weights, in the admit function and in the line of a reader that follows its events:
 * both must name the same order, however the admissions are cut into steps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/snapshot.h"
#include "common/store/tail.h"
#include "ingest.h"
#include "tests/unit/random.h"

enum { LANES = 4, OPERATIONS = 40, VISITORS_MAX = 4000, WEIGHTS = 6 };

/* By the number of lanes, less 2. */
static const char *const weights_of[LANES - 1][WEIGHTS] = {
    {"", "1,1", "3,1", "2,5", "1,7", "1000,1"},
    {"", "1,1,1", "3,1,1", "2,3,5", "1,7,1", "1000,1,1"},
    {"", "1,1,1,1", "3,1,1,1", "1,2,3,5", "7,1,7,1", "1000,1,1,1"},
};

/* ---- a reader ---- */

struct reader {
    struct tl_line *line;
    struct tl_tail *tail;
    struct tl_weights weights;
};

static bool on_entry(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    struct reader *reader = context;
    struct tl_event_entry entry;
    struct tl_error err = {0};
    (void)keys;
    if (!tl_events_decode(payload, length, &entry, &err))
        fail_msg("%s", err.text);
    assert_int_equal(tl_line_apply(reader->line, &entry, 1), TL_LINE_APPLIED);
    tl_events_free(&entry);
    return true;
}

static void follow(struct test_store *store, struct reader *reader)
{
    struct tl_tail_head head;
    struct tl_error err = {0};
    reader->line = tl_snapshot(store->redis, &store->keys, &head, &err);
    if (reader->line == NULL)
        fail_msg("%s", err.text);
    tl_line_weigh(reader->line, &reader->weights);
    reader->tail = tl_tail_new(on_entry, reader);
    assert_true(tl_tail_follow(reader->tail, &store->keys, &head, &err));
}

static void unfollow(struct reader *reader)
{
    tl_tail_free(&reader->tail);
    tl_line_free(&reader->line);
}

static void catch_up(struct test_store *store, struct reader *reader)
{
    struct tl_error err = {0};
    size_t entries;
    do {
        if (!tl_tail_read_one(reader->tail, store->redis, 0, &entries, &err))
            fail_msg("%s", err.text);
    } while (entries > 0);
}

/* As a worker does after a CONFIG event. */
static void reload(struct test_store *store, struct reader *reader, const char *weights)
{
    struct tl_state now;
    struct tl_error err = {0};
    assert_int_equal(tl_weights_parse(weights, strlen(weights), &reader->weights), TL_WEIGHTS_GOOD);
    tl_line_weigh(reader->line, &reader->weights);
    assert_true(tl_state_read(store->redis, &store->keys, TL_STATE_TURNS, &now, &err));
    tl_line_set_turns(reader->line, now.turns.field, now.turns.event);
    tl_line_weigh(reader->line, &reader->weights);
}

/* ---- one run ---- */

static void configure(struct test_store *store, const char *name, const char *value)
{
    struct tl_error err = {0};
    if (!test_queue_set(store->redis, &store->keys, name, value, &err))
        fail_msg("%s", err.text);
}

static bool waits(const struct reader *reader, tl_place place)
{
    return tl_line_look(reader->line, place).status == TL_LINE_WAITING;
}

/* Admits n in steps of at most `cut`, random ones if 0. Who is admitted is whom the reader named.
 */
static void admit(struct test_store *store, struct reader *reader, unsigned n, unsigned cut,
                  uint64_t *random)
{
    static tl_place order[VISITORS_MAX];
    size_t size = tl_line_first(reader->line, order, VISITORS_MAX);
    assert_int_equal(size, tl_line_waiting(reader->line));
    for (size_t i = 0; i < size; i++) {
        struct tl_line_view view = tl_line_look(reader->line, order[i]);
        assert_int_equal(view.status, TL_LINE_WAITING);
        assert_int_equal(view.ahead, i);
    }
    if (n > size)
        n = (unsigned)size;
    for (unsigned left = n; left > 0;) {
        unsigned most = cut > 0 ? cut : 1 + (unsigned)random_below(random, 40);
        most = most < left ? most : left;
        assert_int_equal(test_admit(store, most), most);
        left -= most;
        if (random_below(random, 4) == 0)
            catch_up(store, reader);
    }
    catch_up(store, reader);
    for (size_t i = 0; i < size; i++)
        if (waits(reader, order[i]) == (i < n))
            fail_msg("the visitor at %zu %s admitted when %u were", i, i < n ? "was not" : "was",
                     n);
}

/* A run of the same operations for the same seed; `cut` says how its admissions are cut. Returns a
 * number that tells which visitors were admitted at each operation. */
static uint64_t run(struct test_store *store, unsigned lanes, uint64_t seed, unsigned cut)
{
    static const char *const settings[LANES - 1] = {"lanes=a,b capacity=1000000",
                                                    "lanes=a,b,c capacity=1000000",
                                                    "lanes=a,b,c,d capacity=1000000"};
    struct reader reader = {0};
    uint64_t random = seed, cuts = seed + cut, outcome = 0;
    test_store_queue(store, settings[lanes - 2]);
    follow(store, &reader);
    const char *first = weights_of[lanes - 2][random_below(&random, WEIGHTS)];
    configure(store, "lane_weights", first);
    catch_up(store, &reader);
    reload(store, &reader, first);
    for (int i = 0; i < OPERATIONS; i++) {
        char name[32];
        unsigned lane = (unsigned)random_below(&random, lanes);
        unsigned n = 1 + (unsigned)random_below(&random, 60);
        unsigned which = (unsigned)random_below(&random, 20);
        snprintf(name, sizeof(name), "v%d-", i);
        if (which < 9) {
            test_join_many(store, name, n, lane);
        } else if (which < 17) {
            admit(store, &reader, n, cut, &cuts);
        } else if (which < 18) { /* everyone */
            admit(store, &reader, VISITORS_MAX, cut, &cuts);
        } else if (which < 19) {
            const char *weights = weights_of[lanes - 2][random_below(&random, WEIGHTS)];
            configure(store, "lane_weights", weights);
            reload(store, &reader, weights);
        } else { /* another reader, from a snapshot */
            unfollow(&reader);
            follow(store, &reader);
        }
        catch_up(store, &reader);
        for (uint64_t seq = 1; seq <= reader.line->last_seq; seq++)
            for (unsigned of = 0; of < lanes; of++)
                if (waits(&reader, tl_place_make(of, seq)))
                    outcome = outcome * 31 + seq;
    }
    test_invariants(store->redis, &store->keys);
    unfollow(&reader);
    return outcome;
}

static void the_cut_does_not_matter(void **state)
{
    uint64_t random = random_seed("the_cut_does_not_matter");
    for (unsigned i = 0; i < 9; i++) {
        uint64_t seed = random_next(&random), outcomes[3];
        static const unsigned cuts[3] = {1, 0, 1000};
        for (int k = 0; k < 3; k++) {
            test_store_clean(state);
            outcomes[k] = run(*state, 2 + i % (LANES - 1), seed, cuts[k]);
        }
        assert_int_equal(outcomes[0], outcomes[1]);
        assert_int_equal(outcomes[0], outcomes[2]);
    }
}

/* ---- shares ---- */

static long long waiting_in(struct test_store *store, unsigned lane)
{
    return test_redis_ask(store->redis, "ZCOUNT %s %llu (%llu", store->keys.names[TL_KEY_WAITING],
                          (unsigned long long)tl_place_make(lane, 0),
                          (unsigned long long)tl_place_make(lane + 1, 0));
}

static void both_lanes_get_their_share(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=vip,normal capacity=100000");
    configure(store, "lane_weights", "3,1");
    test_join_many(store, "v", 900, 0);
    test_join_many(store, "n", 900, 1);
    for (long long done = 1; done <= 1200; done++) {
        assert_int_equal(test_admit(store, 1), 1);
        long long vip = 900 - waiting_in(store, 0), normal = 900 - waiting_in(store, 1);
        assert_int_equal(vip + normal, done);
        assert_in_range(vip - 3 * normal + 4, 0, 8); /* |vip / 3 - normal / 1| <= 1/3 + 1 */
    }
    assert_int_equal(waiting_in(store, 0), 0);
    assert_int_equal(test_admit(store, 600), 600); /* the rest has no one to share with */
}

static void an_empty_lane_gathers_no_credit(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=vip,normal capacity=100000");
    configure(store, "lane_weights", "9,1");
    test_join_many(store, "n", 500, 1);
    assert_int_equal(test_admit(store, 400), 400); /* no one is in the first lane */
    test_join_many(store, "v", 100, 0);
    assert_int_equal(test_admit(store, 20), 20);
    assert_in_range(100 - waiting_in(store, 0), 17, 19);
    assert_in_range(100 - waiting_in(store, 1), 1, 3);
}

/* Visitors of a lane that the queue no longer has are served too. */
static void a_lane_without_a_weight_is_served(void **state)
{
    struct test_store *store = *state;
    static const struct tl_queue_change list[] = {{"lanes", "a,b"}, {"lane_weights", "2,1"}};
    struct tl_error err = {0};
    test_store_queue(store, "lanes=a,b,c,d capacity=100000");
    test_join_many(store, "a", 100, 0);
    test_join_many(store, "d", 100, 3);
    configure(store, "default_lane", "a");
    assert_true(tl_queue_configure(store->redis, &store->keys,
                                   &(struct tl_queue_changes){.list = list, .n = 2}, &test_actor,
                                   NULL, &err));
    assert_int_equal(test_admit(store, 30), 30);
    assert_in_range(waiting_in(store, 0), 79, 81);
    assert_in_range(waiting_in(store, 3), 89, 91);
    assert_int_equal(test_admit(store, 1000), 170);
}

/* What was damaged by hand stops nobody: without weights the first lane goes first. */
static void damaged_weights_are_none(void **state)
{
    struct test_store *store = *state;
    static const char *const damaged[] = {"997,991,983,977,971", "x", ",", "0,0", "1"};
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        test_store_clean(state);
        test_store_queue(store, "lanes=a,b capacity=100000");
        test_join_many(store, "a", 10, 0);
        test_join_many(store, "b", 10, 1);
        test_redis_ask(store->redis, "HSET %s lane_weights %s", store->keys.names[TL_KEY_CONFIG],
                       damaged[i]);
        test_redis_ask(store->redis, "HSET %s turns %s:1:7,x,9", store->keys.names[TL_KEY_STATE],
                       damaged[i]);
        for (int n = 0; n < 20; n++)
            assert_int_equal(test_admit(store, 1), 1);
        test_invariants(store->redis, &store->keys);
    }
}

/* A step ends, whatever the numbers are: Redis does nothing else meanwhile. */
static void damaged_turns_are_put_right(void **state)
{
    struct test_store *store = *state;
    static const char *const damaged[] = {"5,3:12:0,0",
                                          "5,3:0:0,0",
                                          "5,3:15",
                                          "5,3:15:0",
                                          "5,3:15:3,x",
                                          "5,3:15:0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
                                          "5,3:15:99999999999999999999,0",
                                          "5,3:15:99999999999999999999,99999999999999999999",
                                          "5,3:99999999999999999999:0,0",
                                          "5,3:99999999999999999999:99999999999999999999,0"};
    static const unsigned steps[] = {1, 2, 40, 260};
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        test_store_clean(state);
        test_store_queue(store, "lanes=a,b capacity=100000");
        configure(store, "lane_weights", "5,3");
        test_join_many(store, "a", 800, 0);
        test_join_many(store, "b", 800, 1);
        for (size_t n = 0; n < sizeof(steps) / sizeof(steps[0]); n++) {
            long long before = waiting_in(store, 0);
            test_redis_ask(store->redis, "HSET %s turns %s", store->keys.names[TL_KEY_STATE],
                           damaged[i]);
            assert_int_equal(test_admit(store, steps[n]), steps[n]);
            assert_in_range(before - waiting_in(store, 0), steps[n] * 5 / 8, steps[n] * 5 / 8 + 1);
        }
        test_invariants(store->redis, &store->keys);
    }
}

/* Who stands at a place that is in no lane is admitted all the same. */
static void a_place_in_no_lane_stops_nobody(void **state)
{
    struct test_store *store = *state;
    for (unsigned most = 1; most <= 4; most += 3) {
        test_store_clean(state);
        test_store_queue(store, "lanes=a,b capacity=100000");
        configure(store, "lane_weights", "2,1");
        test_join_many(store, "a", 4, 0);
        test_redis_ask(store->redis, "ZADD %s %llu a1", store->keys.names[TL_KEY_WAITING],
                       (unsigned long long)tl_place_make(17, 1));
        long long n = 0;
        for (int i = 0; i < 4 && n < 4; i++)
            n += test_admit(store, most);
        assert_int_equal(n, 4);
        assert_int_equal(
            test_redis_ask(store->redis, "ZCARD %s", store->keys.names[TL_KEY_WAITING]), 0);
        test_invariants(store->redis, &store->keys);
    }
}

/* Weights cost no step when they are not set, and the field of the state stays as it was. */
static void strict_lanes_note_nothing(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=vip,normal capacity=100000");
    test_join_many(store, "v", 10, 0);
    assert_int_equal(test_admit(store, 5), 5);
    assert_int_equal(
        test_redis_ask(store->redis, "HEXISTS %s turns", store->keys.names[TL_KEY_STATE]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_cut_does_not_matter, test_store_clean),
        cmocka_unit_test_setup(both_lanes_get_their_share, test_store_clean),
        cmocka_unit_test_setup(an_empty_lane_gathers_no_credit, test_store_clean),
        cmocka_unit_test_setup(a_lane_without_a_weight_is_served, test_store_clean),
        cmocka_unit_test_setup(damaged_weights_are_none, test_store_clean),
        cmocka_unit_test_setup(damaged_turns_are_put_right, test_store_clean),
        cmocka_unit_test_setup(a_place_in_no_lane_stops_nobody, test_store_clean),
        cmocka_unit_test_setup(strict_lanes_note_nothing, test_store_clean),
    };
    return cmocka_run_group_tests_name("admit_lanes", tests, test_store_open, test_store_close);
}
