/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a queue: what the expirer's function notes and what is read of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/units.h"
#include "common/control/call.h"
#include "common/store/reply.h"
#include "ingest.h"

static long long note(struct test_store *store)
{
    struct tl_reply *reply = test_function(store->redis, TL_FN_HISTORY, &store->keys, "", NULL);
    long long again_ms = tl_reply_integer(reply);
    tl_reply_free(reply);
    return again_ms;
}

static void join_one(struct test_store *store, unsigned number)
{
    char name[16];
    snprintf(name, sizeof(name), "n%u", number);
    test_join(store, name, 0);
    test_batch(store);
}

static const char *const fields[] = {TL_HISTORY_TEXTS};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]), POINTS_MAX = 1000 };

struct point {
    int64_t at_ms;
    const char *mode;
    json_int_t values[FIELDS];
};

struct points {
    size_t n;
    struct point list[POINTS_MAX];
    json_t *json; /* has the texts */
};

static void points_read(struct test_store *store, bool minutes, int64_t from_ms, int64_t to_ms,
                        size_t most, struct points *points)
{
    struct tl_error err = {0};
    const struct tl_history_span span = {
        .minutes = minutes, .from_ms = from_ms, .to_ms = to_ms, .most = most};
    points->json = tl_history_points(store->redis, &store->keys, &span, &err);
    if (points->json == NULL)
        fail_msg("%s", err.text);
    points->n = json_array_size(points->json);
    assert_true(points->n <= POINTS_MAX);
    for (size_t i = 0; i < points->n; i++) {
        const json_t *row = json_array_get(points->json, i);
        struct point *point = &points->list[i];
        assert_int_equal(json_array_size(row), 2 + FIELDS);
        assert_true(tl_time_parse(json_string_value(json_array_get(row, 0)), &point->at_ms, NULL));
        point->mode = json_string_value(json_array_get(row, 1));
        for (size_t k = 0; k < FIELDS; k++)
            point->values[k] = json_integer_value(json_array_get(row, 2 + k));
    }
}

static void points_free(struct points *points)
{
    json_decref(points->json);
}

static size_t read_all(struct test_store *store, bool minutes, struct points *points)
{
    points_read(store, minutes, 0, INT64_MAX, POINTS_MAX, points);
    return points->n;
}

static size_t count(struct test_store *store, bool minutes)
{
    struct points points = {0};
    size_t n = read_all(store, minutes, &points);
    points_free(&points);
    return n;
}

static const char *key(struct test_store *store, bool minutes)
{
    static char names[2][TL_KEY_MAX];
    return tl_key(&store->keys, minutes ? TL_KEY_HISTORY_MINUTES : TL_KEY_HISTORY, names[minutes]);
}

static void put(struct test_store *store, long long at_ms, int waiting)
{
    char command[TL_KEY_MAX + 64];
    snprintf(command, sizeof(command), "XADD %.*s %lld-0 waiting %d later 1", TL_KEY_MAX - 1,
             key(store, false), at_ms, waiting);
    tl_reply_free(test_redis_call(store->redis, command));
}

/* Moves the only point of a history back in time. The function compares texts in its own order. */
static void age(struct test_store *store, bool minutes, long long ms)
{
    struct points points = {0};
    assert_int_equal(read_all(store, minutes, &points), 1);
    const struct point *point = &points.list[0];
    char command[1024];
    int n = snprintf(command, sizeof(command), "XADD %s %lld-0 capacity %llu mode %s",
                     key(store, minutes), (long long)point->at_ms - ms,
                     (unsigned long long)point->values[TL_HISTORY_CAPACITY], point->mode);
    for (int i = 0; i < FIELDS; i++) {
        if (i != TL_HISTORY_CAPACITY)
            n += snprintf(command + n, sizeof(command) - (size_t)n, " %s %llu", fields[i],
                          (unsigned long long)point->values[i]);
    }
    test_redis_ask(store->redis, "DEL %s", key(store, minutes));
    tl_reply_free(test_redis_call(store->redis, command));
    points_free(&points);
}

static void a_point_has_the_numbers_of_its_time(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=2 claim_ttl=1h session_ttl=1h");
    test_join_many(store, "v", 5, 0);
    assert_int_equal(test_admit(store, 5), 2);
    test_redis_ask(store->redis, "HSET tl:{q}:promised eta_judged 7");
    long long again_ms = note(store);
    assert_in_range(again_ms, 1, TL_HISTORY_STEP_MS);
    for (int minutes = 0; minutes < 2; minutes++) {
        struct points points;
        assert_int_equal(read_all(store, minutes, &points), 1);
        assert_int_equal(
            points.list[0].at_ms % (minutes ? TL_HISTORY_MINUTE_MS : TL_HISTORY_STEP_MS), 0);
        assert_int_equal(points.list[0].values[TL_HISTORY_WAITING], 3);
        assert_int_equal(points.list[0].values[TL_HISTORY_ACTIVE], 2);
        assert_int_equal(points.list[0].values[TL_HISTORY_CAPACITY], 2);
        assert_int_equal(points.list[0].values[TL_HISTORY_SEQ], 5);
        assert_int_equal(points.list[0].values[TL_HISTORY_JOINED], 5);
        assert_int_equal(points.list[0].values[TL_HISTORY_ADMITTED], 2);
        assert_int_equal(points.list[0].values[TL_HISTORY_ETA_JUDGED], 7);
        assert_int_equal(points.list[0].values[TL_HISTORY_ETA_LATE], 0);
        assert_string_equal(points.list[0].mode, "open");
        points_free(&points);
    }
}

static void there_is_one_point_in_each_step(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=0 claim_ttl=1h session_ttl=1h");
    long long before_ms = test_redis_ms(store->redis);
    for (unsigned i = 0; i < 20; i++) {
        join_one(store, i);
        note(store);
    }
    long long after_ms = test_redis_ms(store->redis);
    long long steps = after_ms / TL_HISTORY_STEP_MS - before_ms / TL_HISTORY_STEP_MS + 1;
    assert_in_range(count(store, false), 1, steps);
}

static void what_is_unchanged_is_noted_every_ten_minutes(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=0 claim_ttl=1h session_ttl=1h");
    join_one(store, 0);
    note(store);
    age(store, false, 540000);
    note(store);
    assert_int_equal(count(store, false), 1);
    age(store, false, 120000);
    note(store);
    assert_int_equal(count(store, false), 2);
    test_redis_ask(store->redis, "XTRIM %s MAXLEN 1", key(store, false));
    age(store, false, 60000);
    join_one(store, 1);
    note(store);
    assert_int_equal(count(store, false), 2);
}

static void old_points_are_dropped(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=0 claim_ttl=1h session_ttl=1h");
    long long now_ms = test_redis_ms(store->redis);
    tl_reply_free(test_redis_call(store->redis, "CONFIG SET stream-node-max-entries 10"));
    for (int i = 40; i > 0; i--)
        put(store, now_ms - 86400000 - i * 10000LL, i);
    note(store);
    assert_in_range(count(store, false), 1, 11); /* all but one node at most */
}

static void a_clock_set_back_starts_the_history_again(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=0 claim_ttl=1h session_ttl=1h");
    note(store);
    age(store, false, -7200000);
    note(store);
    struct points points = {0};
    assert_int_equal(read_all(store, false, &points), 1);
    assert_in_range(points.list[0].at_ms, 1, test_redis_ms(store->redis));
    points_free(&points);
    age(store, false, -60000); /* a little: points wait until the clock has passed it */
    note(store);
    assert_int_equal(count(store, false), 1);
}

static void a_reading_begins_with_what_held_before(void **state)
{
    struct test_store *store = *state;
    struct points points = {0};
    test_store_queue(store, "lanes=only capacity=0 claim_ttl=1h session_ttl=1h");
    for (int i = 1; i <= 5; i++)
        put(store, i * 10000LL, i);
    points_read(store, false, 25000, 45000, 100, &points);
    assert_int_equal(points.n, 3);
    for (size_t i = 0; i < points.n; i++)
        assert_int_equal(points.list[i].values[TL_HISTORY_WAITING], i + 2);
    points_free(&points);
    points_read(store, false, 20000, 40000, 100, &points);
    assert_int_equal(points.n, 3); /* the one at the beginning is not listed twice */
    points_free(&points);
    points_read(store, false, 0, 45000, 2, &points);
    assert_int_equal(points.n, 2); /* the latest */
    assert_int_equal(points.list[1].values[TL_HISTORY_WAITING], 4);
    points_free(&points);
}

static void a_queue_that_is_gone_has_no_history(void **state)
{
    struct test_store *store = *state;
    char error[320];
    test_store_queue(store, "lanes=only capacity=0 claim_ttl=1h session_ttl=1h");
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_STATE]);
    assert_null(test_function(store->redis, TL_FN_HISTORY, &store->keys, "", error));
    assert_non_null(strstr(error, "the queue does not exist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_point_has_the_numbers_of_its_time, test_store_clean),
        cmocka_unit_test_setup(there_is_one_point_in_each_step, test_store_clean),
        cmocka_unit_test_setup(what_is_unchanged_is_noted_every_ten_minutes, test_store_clean),
        cmocka_unit_test_setup(old_points_are_dropped, test_store_clean),
        cmocka_unit_test_setup(a_clock_set_back_starts_the_history_again, test_store_clean),
        cmocka_unit_test_setup(a_reading_begins_with_what_held_before, test_store_clean),
        cmocka_unit_test_setup(a_queue_that_is_gone_has_no_history, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
