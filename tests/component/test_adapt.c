/* SPDX-License-Identifier: Apache-2.0 */
/* The function that steers a capacity by what the site reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/store/feedback.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "ingest.h"
#include "tests/unit/random.h"

enum why { STEADY, RAISED, CUT, UNREPORTED, LOWEST };

/* A steered queue whose function has a clock that the test sets: a key of the store. */
struct world {
    struct test_store *store;
    long long ms; /* the store's clock */
    long long before, after, load, latency, errors;
    enum why why;
};

#define SETTINGS                                                                                   \
    "lanes=only capacity=200 capacity.min=20 adaptive.every=5s "                                   \
    "adaptive.hold=15s "                                                                           \
    "adaptive.fresh=15s adaptive.raise=5% adaptive.cut=30% adaptive.latency_max=500ms"

static void begin(struct world *world, void **state)
{
    *world = (struct world){.store = *state};
    test_library_variant(world->store->redis, "clock", (const char *const[]){TEST_CLOCK, NULL});
    test_store_queue(world->store, SETTINGS);
    world->ms = test_redis_ms(world->store->redis);
}

static bool steps(struct world *world)
{
    struct test_store *store = world->store;
    test_redis_ask(store->redis, "DEL test:clock");
    test_redis_ask(store->redis, "RPUSH test:clock %lld %lld", world->ms / 1000,
                   world->ms % 1000 * 1000);
    struct tl_reply *reply =
        test_function(store->redis, "tl_clock_adapt", &store->keys, "1000", NULL);
    bool steered = tl_reply_integer(tl_reply_at(reply, 0)) == 1;
    world->before = tl_reply_integer(tl_reply_at(reply, 1));
    world->after = tl_reply_integer(tl_reply_at(reply, 2));
    world->why = (enum why)tl_reply_integer(tl_reply_at(reply, 3));
    world->load = tl_reply_integer(tl_reply_at(reply, 4));
    world->latency = tl_reply_integer(tl_reply_at(reply, 5));
    world->errors = tl_reply_integer(tl_reply_at(reply, 6));
    tl_reply_free(reply);
    return steered;
}

/* A step that leaves or makes the capacity this, for this reason. */
static void assert_step(struct world *world, long long after, enum why why)
{
    assert_true(steps(world));
    assert_int_equal(world->after, after);
    assert_int_equal(world->why, why);
}

static void report(struct world *world, long long load, long long latency, long long errors)
{
    char text[TL_FEEDBACK_TEXT_MAX], id[48], key[TL_KEY_MAX];
    struct tl_error err = {0};
    struct tl_args args = {0};
    tl_feedback_format(&(struct tl_feedback){.load = load, .latency_ms = latency, .errors = errors},
                       text);
    snprintf(id, sizeof(id), "%lld-*", world->ms);
    tl_key(&world->store->keys, TL_KEY_FEEDBACK, key);
    tl_args_strs(&args, "XADD", key, id, "d", text, NULL);
    if (!tl_redis_do(world->store->redis, &args, &err)) { /* the clock went back: as Redis does */
        tl_args_reset(&args);
        struct tl_reply *info =
            test_redis_call(world->store->redis, "XREVRANGE tl:{q}:feedback + - "
                                                 "COUNT 1");
        snprintf(id, sizeof(id), "%lld-*",
                 strtoll(tl_reply_string(tl_reply_at(tl_reply_at(info, 0), 0), NULL), NULL, 10));
        tl_reply_free(info);
        tl_args_strs(&args, "XADD", key, id, "d", text, NULL);
        assert_true(tl_redis_do(world->store->redis, &args, &err));
    }
    tl_args_free(&args);
}

static void load(struct world *world, long long waiting, long long active)
{
    test_redis_ask(world->store->redis, "HSET tl:{q}:state waiting %lld active %lld", waiting,
                   active);
}

static void set(struct world *world, const char *name, const char *value)
{
    struct tl_error err = {0};
    if (!test_queue_set(world->store->redis, &world->store->keys, name, value, &err))
        fail_msg("%s", err.text);
}

static void a_fixed_capacity_is_not_steered(void **state)
{
    struct world world;
    begin(&world, state);
    set(&world, "capacity.min", "0");
    long long event = test_state(world.store, "event");
    report(&world, 999, -1, -1);
    assert_false(steps(&world));
    assert_int_equal(test_state(world.store, "event"), event);
    assert_int_equal(test_state(world.store, "capacity_now"), -1);
}

static void it_begins_at_the_least_and_says_that_nothing_is_reported(void **state)
{
    struct world world;
    begin(&world, state);
    assert_step(&world, 20, UNREPORTED);
    long long event = test_state(world.store, "event");
    struct tl_queue_settings settings;
    assert_true(tl_queue_load(world.store->redis, &world.store->keys, &settings, NULL));
    assert_int_equal(tl_queue_capacity(&settings), 20);
    assert_true(settings.now.stale);
    world.ms += 60000;
    assert_step(&world, 20, UNREPORTED);
    assert_int_equal(test_state(world.store, "event"), event); /* nothing new is said */
}

static void it_is_raised_once_in_a_while_however_many_ask(void **state)
{
    struct world world;
    begin(&world, state);
    load(&world, 50, 20);
    for (int second = 0; second < 20; second++, world.ms += 1000) {
        report(&world, 300, 100, 0);
        for (int admitter = 0; admitter < 3; admitter++)
            assert_true(steps(&world));
        assert_int_equal(world.after, 20 + 10 * (1 + second / 5));
        load(&world, 50, world.after);
    }
    assert_int_equal(test_state(world.store, "capacity_safe"), 50);
    struct tl_queue_settings settings;
    assert_true(tl_queue_load(world.store->redis, &world.store->keys, &settings, NULL));
    assert_int_equal(tl_queue_capacity(&settings), 60);
    assert_false(settings.now.stale);
}

static void it_is_raised_only_while_it_is_what_limits(void **state)
{
    struct world world;
    begin(&world, state);
    static const struct {
        long long waiting, active;
        bool raised;
    } cases[] = {{0, 20, false}, {5, 17, false}, {5, 18, true}, {5, 20, true}, {5, 40, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_redis_ask(world.store->redis, "HSET tl:{q}:state capacity_now 20");
        world.ms += 10000;
        report(&world, 100, -1, -1);
        load(&world, cases[i].waiting, cases[i].active);
        assert_true(steps(&world));
        assert_int_equal(world.after, cases[i].raised ? 30 : 20);
    }
}

static void near_a_limit_it_stays(void **state)
{
    struct world world;
    begin(&world, state);
    load(&world, 50, 20);
    static const struct {
        long long load, latency, errors;
        enum why why;
    } cases[] = {{720, -1, -1, RAISED}, {721, -1, -1, STEADY},  {800, -1, -1, STEADY},
                 {801, -1, -1, LOWEST}, {-1, 450, -1, RAISED},  {100, 451, 0, STEADY},
                 {100, 501, 0, LOWEST}, {100, 100, 45, RAISED}, {-1, -1, 46, STEADY},
                 {-1, -1, 51, LOWEST}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_redis_ask(world.store->redis, "HSET tl:{q}:state capacity_now 20 capacity_why 0");
        world.ms += 20000;
        report(&world, cases[i].load, cases[i].latency, cases[i].errors);
        assert_true(steps(&world));
        if (world.why != cases[i].why)
            fail_msg("case %zu: %d", i, (int)world.why);
    }
}

static void a_cut_is_from_those_who_are_active_and_once_per_hold(void **state)
{
    struct world world;
    begin(&world, state);
    test_redis_ask(world.store->redis, "HSET tl:{q}:state capacity_now 180 capacity_safe 150");
    load(&world, 50, 100);
    report(&world, 950, -1, -1);
    assert_step(&world, 70, CUT);
    assert_int_equal(test_state(world.store, "capacity_safe"), 70);
    for (int second = 1; second < 15; second++) {
        world.ms += 1000;
        report(&world, 950, -1, -1);
        for (int admitter = 0; admitter < 3; admitter++)
            assert_step(&world, 70, CUT);
    }
    world.ms += 1000;
    load(&world, 50, 96); /* few sessions have ended: a cut from these is the one that counts */
    report(&world, 950, -1, -1);
    assert_step(&world, 67, CUT);
    world.ms += 15000;
    load(&world, 50, 67);
    report(&world, 300, -1, -1);
    assert_step(&world, 77, RAISED);
    world.ms += 1; /* a raise does not delay a cut */
    load(&world, 50, 77);
    report(&world, -1, -1, 900);
    assert_step(&world, 53, CUT);
}

static void one_bad_report_among_good_ones_counts(void **state)
{
    struct world world;
    begin(&world, state);
    load(&world, 50, 100);
    test_redis_ask(world.store->redis, "HSET tl:{q}:state capacity_now 100");
    report(&world, 100, 700, 1);
    report(&world, 200, 20, 2);
    world.ms += 4000;
    report(&world, 300, 20, 3);
    assert_step(&world, 70, CUT);
    assert_int_equal(world.load, 300);
    assert_int_equal(world.latency, 700);
    assert_int_equal(world.errors, 3);
    world.ms += 15000;
    report(&world, 300, 20, 3);
    assert_step(&world, 80, RAISED); /* the bad one is long past */
    assert_int_equal(world.latency, 20);
}

static void without_reports_it_falls_back_to_what_was_safe(void **state)
{
    struct world world;
    begin(&world, state);
    test_redis_ask(world.store->redis, "HSET tl:{q}:state capacity_now 100 capacity_safe 90");
    load(&world, 50, 100);
    report(&world, 300, -1, -1);
    assert_step(&world, 110, RAISED);
    assert_int_equal(test_state(world.store, "capacity_safe"), 100);
    world.ms += 15000;
    assert_step(&world, 110, RAISED); /* no second raise by the same report */
    world.ms += 1;
    assert_step(&world, 100, UNREPORTED);
    struct tl_queue_settings settings;
    assert_true(tl_queue_load(world.store->redis, &world.store->keys, &settings, NULL));
    assert_true(settings.now.stale);
    world.ms += 3600000;
    assert_step(&world, 100, UNREPORTED);
    report(&world, 790, -1, -1);
    assert_step(&world, 100, STEADY);
    assert_true(tl_queue_load(world.store->redis, &world.store->keys, &settings, NULL));
    assert_false(settings.now.stale);
}

static void rubbish_in_the_stream_reports_nothing(void **state)
{
    struct world world;
    begin(&world, state);
    test_redis_ask(world.store->redis, "XADD tl:{q}:feedback %lld-1 d nan", world.ms);
    test_redis_ask(world.store->redis, "XADD tl:{q}:feedback %lld-2 x 1", world.ms);
    assert_step(&world, 20, UNREPORTED);
    report(&world, -1, -1, -1);
    assert_step(&world, 20, UNREPORTED);
}

static void bounds_that_change_count_at_once(void **state)
{
    struct world world;
    begin(&world, state);
    test_redis_ask(world.store->redis, "HSET tl:{q}:state capacity_now 150 capacity_safe 150");
    load(&world, 0, 0);
    report(&world, 300, -1, -1);
    set(&world, "capacity", "120");
    assert_step(&world, 120, STEADY);
    set(&world, "capacity", "200");
    set(&world, "capacity.min", "140");
    report(&world, 300, -1, -1);
    assert_step(&world, 140, STEADY);
}

static void a_clock_that_goes_back_stops_nothing_for_long(void **state)
{
    struct world world;
    begin(&world, state);
    test_redis_ask(world.store->redis, "HSET tl:{q}:state capacity_now 100 capacity_safe 100");
    load(&world, 50, 100);
    report(&world, 950, -1, -1);
    assert_step(&world, 70, CUT);
    world.ms -= 3600000;
    report(&world, 300, -1, -1); /* its id is an hour ahead */
    (void)steps(&world);
    world.ms += 15000;
    assert_step(&world, 80, RAISED);
    world.ms += 1;
    assert_step(&world, 70, UNREPORTED); /* nothing old is read as new */
    report(&world, 300, -1, -1);
    load(&world, 50, 70);
    assert_step(&world, 70, STEADY);
    world.ms += 5000;
    report(&world, 300, -1, -1);
    assert_step(&world, 80, RAISED);
    world.ms += 16000;
    assert_step(&world, 70, UNREPORTED);
    world.ms -= 10000; /* the report is not young again */
    assert_step(&world, 70, UNREPORTED);
}

static void a_report_of_the_callers_own_is_kept(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    test_store_queue(store, SETTINGS);
    for (int i = 0; i < 300; i++) {
        struct tl_args args = {0};
        tl_call_begin(&args, TL_FN_ADAPT, &store->keys);
        tl_args_strs(&args, "1000", "810 -1 -1", NULL);
        struct tl_reply *reply = tl_call_once(store->redis, &args, &err);
        if (reply == NULL)
            fail_msg("%s", err.text);
        assert_int_equal(tl_reply_signed(reply, TL_ADAPT_WHY), LOWEST);
        assert_int_equal(tl_reply_signed(reply, TL_ADAPT_LOAD), 810);
        tl_reply_free(reply);
    }
    struct tl_reply *length = test_redis_call(store->redis, "XLEN tl:{q}:feedback");
    assert_int_equal(tl_reply_integer(length), TL_FEEDBACK_KEPT);
    tl_reply_free(length);
}

static void a_stream_of_another_type_fails_before_the_first_write(void **state)
{
    struct test_store *store = *state;
    char error[256];
    test_store_queue(store, SETTINGS);
    test_redis_ask(store->redis, "SET tl:{q}:feedback x");
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_null(test_function(store->redis, TL_FN_ADAPT, &store->keys, "1000", error));
    assert_non_null(strstr(error, "WRONGTYPE"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
    test_redis_ask(store->redis, "DEL tl:{q}:feedback");
    test_redis_ask(store->redis, "DEL tl:{q}:state");
    assert_null(test_function(store->redis, TL_FN_ADAPT, &store->keys, "1000", error));
    assert_non_null(strstr(error, "NOQUEUE"));
}

/* What admit.lua makes of it. */
static void admission_obeys_it(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=200 capacity.min=3");
    test_join_many(store, "v", 100, 0);
    assert_int_equal(test_admit(store, 100), 3);
    test_redis_ask(store->redis, "HSET tl:{q}:state capacity_now 10");
    assert_int_equal(test_admit(store, 100), 7);
    assert_int_equal(test_state(store, "admit_capacity"), 10);
    test_redis_ask(store->redis, "HSET tl:{q}:state capacity_now 5");
    assert_int_equal(test_admit(store, 100), 0);
    test_redis_ask(store->redis, "HSET tl:{q}:state capacity_now 500");
    test_redis_ask(store->redis, "HSET tl:{q}:config capacity 15");
    assert_int_equal(test_admit(store, 100), 5);
    test_redis_ask(store->redis, "HSET tl:{q}:config capacity.min 0");
    test_redis_ask(store->redis, "HSET tl:{q}:config capacity 20");
    assert_int_equal(test_admit(store, 100), 5);
}

/* ---- three admitters, any reports, any clock ---- */

struct history {
    long long time;                  /* that passed, whatever the clock says */
    long long raised, cut, reported; /* when last, by that time */
    long long waiting, active, most;
    long long fresh; /* the ids of reports tell their age only roughly once the clock went back */
};

static void check(const struct world *world, struct history *history, uint64_t seed, int turn)
{
    const char *broken = NULL;
    if (world->after < 20 || world->after > history->most)
        broken = "out of its bounds";
    if (world->after > world->before) {
        if (history->time - history->raised < 5000)
            broken = "raised twice within adaptive.every";
        else if (history->time - history->cut < 15000)
            broken = "raised within adaptive.hold";
        else if (history->waiting == 0 || history->active * 10 < world->before * 9)
            broken = "raised though it did not limit";
        else if (history->time - history->reported > history->fresh)
            broken = "raised without a report";
        history->raised = history->time;
    }
    if (world->after < world->before && world->why == CUT) {
        long long wanted = history->active * 70 / 100;
        if (history->time - history->cut < 15000)
            broken = "cut twice within adaptive.hold";
        else if (world->after != (wanted > 20 ? wanted : 20))
            broken = "not cut from those active";
        history->cut = history->time;
    }
    if (world->after < world->before && world->why != CUT && world->why != UNREPORTED)
        broken = "lowered for no reason";
    if (broken != NULL)
        fail_msg("seed %llu, turn %d: %s: %lld -> %lld", (unsigned long long)seed, turn, broken,
                 world->before, world->after);
}

static void whatever_happens_the_steps_keep_their_times(void **state)
{
    uint64_t first = random_seed("whatever_happens_the_steps_keep_their_times");
    for (uint64_t seed = first; seed < first + 12; seed++) {
        uint64_t random = seed;
        struct world world;
        struct history history = {
            .raised = -1000000, .cut = -1000000, .reported = -1000000, .most = 200, .fresh = 15000};
        test_store_clean(state);
        begin(&world, state);
        long long raises = 0, cuts = 0;
        bool jumped = false;
        for (int turn = 0; turn < 400; turn++) {
            long long passed = (long long)random_below(&random, 2500);
            history.time += passed;
            world.ms += passed;
            if (random_below(&random, 40) == 0) {
                world.ms -= (long long)random_below(&random, 100000);
                jumped = true;
                history.fresh = 30000;
            }
            if (random_below(&random, 3) == 0) {
                history.waiting = (long long)random_below(&random, 4);
                history.active = world.after + (long long)random_below(&random, 20) - 8;
                if (history.active < 0)
                    history.active = 0;
                load(&world, history.waiting, history.active);
            }
            if (random_below(&random, 40) != 0 && turn % 100 < 80) {
                bool bad = random_below(&random, 25) == 0;
                report(&world, bad ? 900 : 200 + (long long)random_below(&random, 500), 100, -1);
                history.reported = history.time;
            }
            for (size_t calls = random_below(&random, 4); calls > 0; calls--) {
                /* How old a report is cannot be known after that; what was found to be old stays
                 * so.
                 */
                if (jumped && world.why != UNREPORTED)
                    history.reported = history.time;
                jumped = false;
                assert_true(steps(&world));
                raises += world.after > world.before;
                cuts += world.after < world.before && world.why == CUT;
                check(&world, &history, seed, turn);
            }
        }
        if (raises < 3 || cuts < 1)
            fail_msg("seed %llu tests nothing: %lld raises, %lld cuts", (unsigned long long)seed,
                     raises, cuts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_fixed_capacity_is_not_steered, test_store_clean),
        cmocka_unit_test_setup(it_begins_at_the_least_and_says_that_nothing_is_reported,
                               test_store_clean),
        cmocka_unit_test_setup(it_is_raised_once_in_a_while_however_many_ask, test_store_clean),
        cmocka_unit_test_setup(it_is_raised_only_while_it_is_what_limits, test_store_clean),
        cmocka_unit_test_setup(near_a_limit_it_stays, test_store_clean),
        cmocka_unit_test_setup(a_cut_is_from_those_who_are_active_and_once_per_hold,
                               test_store_clean),
        cmocka_unit_test_setup(one_bad_report_among_good_ones_counts, test_store_clean),
        cmocka_unit_test_setup(without_reports_it_falls_back_to_what_was_safe, test_store_clean),
        cmocka_unit_test_setup(rubbish_in_the_stream_reports_nothing, test_store_clean),
        cmocka_unit_test_setup(bounds_that_change_count_at_once, test_store_clean),
        cmocka_unit_test_setup(a_clock_that_goes_back_stops_nothing_for_long, test_store_clean),
        cmocka_unit_test_setup(a_report_of_the_callers_own_is_kept, test_store_clean),
        cmocka_unit_test_setup(a_stream_of_another_type_fails_before_the_first_write,
                               test_store_clean),
        cmocka_unit_test_setup(admission_obeys_it, test_store_clean),
        cmocka_unit_test_setup(whatever_happens_the_steps_keep_their_times, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
