/* SPDX-License-Identifier: Apache-2.0 */
/* Held queues of a role: a role defined by the test, the time passed in, and a real store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/role/held_queues.h"
#include "common/store/reply.h"
#include "redis_server.h"

enum { GAUGE, TROUBLED, LISTED, LATENCY, METRICS };
static const struct tl_metric_desc metrics_table[METRICS] = {
    [GAUGE] = {"test_queues", "Queues held.", TL_GAUGE},
    [TROUBLED] = {"test_troubled", "Queues set aside.", TL_GAUGE},
    [LISTED] = {"test_listed", "Queues there are.", TL_GAUGE},
    [LATENCY] = {"test_seconds", "One command.", TL_HISTOGRAM}};

/* The state of one queue in the role of the test. */
struct queue {
    unsigned served, served_resting, outdated;
    enum tl_error_kind fail; /* what serve fails with */
    int64_t due_ms;
    void *owned; /* a leak or a double free shows that `lost` was not called once */
};

struct fixture {
    struct test_redis *server;
    struct tl_redis *redis; /* of the test itself */
    const struct tl_config *config;
    void *memory;
    struct tl_metrics *metrics;
    struct tl_held_queues *queues;
    bool refuse; /* acquired fails */
    bool follow; /* acquired follows the events */
    unsigned entries;
    int64_t now_ms;
};

static bool acquired(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct fixture *fixture = context;
    struct queue *queue = held->state;
    struct tl_tail_head head;
    if (fixture->refuse)
        return tl_error_set(err, TL_ERR_NOMEM, "refused");
    if (fixture->follow && (!tl_tail_head(tl_held_queues_redis(fixture->queues, held->keys.queue),
                                          &held->keys, &head, err) ||
                            !tl_held_queues_follow(fixture->queues, held, &head, err)))
        return false;
    assert_int_equal(queue->served, 0); /* it starts zeroed */
    queue->owned = malloc(1);
    assert_non_null(queue->owned);
    queue->due_ms = INT64_MAX;
    return true;
}

static void lost(void *context, struct tl_held_queue *held)
{
    (void)context;
    free(((struct queue *)held->state)->owned);
}

static void outdated(void *context, struct tl_held_queue *held)
{
    (void)context;
    ((struct queue *)held->state)->outdated++;
}

static bool serve(void *context, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms,
                  struct tl_error *err)
{
    const struct fixture *fixture = context;
    struct queue *queue = held->state;
    assert_int_equal(now_ms, fixture->now_ms);
    queue->served++;
    *due_ms = queue->due_ms < *due_ms ? queue->due_ms : *due_ms;
    return queue->fail == TL_OK || tl_error_set(err, queue->fail, "serve failed");
}

static void serve_resting(void *context, struct tl_held_queue *held, int64_t now_ms,
                          int64_t *due_ms)
{
    (void)context;
    ((struct queue *)held->state)->served_resting++;
    *due_ms = now_ms + 50;
}

static bool on_entry(void *context, struct tl_held_queue *held, const void *payload, size_t length)
{
    struct fixture *fixture = context;
    assert_string_equal(held->keys.queue, "beta");
    assert_int_equal(length, 5);
    assert_memory_equal(payload, "hello", 5);
    fixture->entries++;
    return true;
}

static int start(void **state)
{
    static const char format[] = "redis: {url: \"%s\"}\nqueues:\n  alpha: {}\n  beta: {}\n";
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->server = test_redis_start();
    fixture->redis = test_redis_connect(fixture->server);
    char yaml[512];
    snprintf(yaml, sizeof(yaml), format, test_redis_url(fixture->server));
    struct tl_error err = {0};
    fixture->config = tl_config_parse("test.yaml", yaml, strlen(yaml), &err);
    if (fixture->config == NULL)
        fail_msg("%s", err.text);
    size_t size = (tl_metrics_size(metrics_table, METRICS) + 63) / 64 * 64;
    fixture->memory = aligned_alloc(64, size);
    assert_non_null(fixture->memory);
    memset(fixture->memory, 0, size);
    fixture->metrics = tl_metrics_init(fixture->memory, metrics_table, METRICS);
    const struct tl_held_queues_settings settings = {.role = "tester",
                                                     .state_size = sizeof(struct queue),
                                                     .gauge = GAUGE,
                                                     .troubled = TROUBLED,
                                                     .listed = LISTED,
                                                     .latency = LATENCY,
                                                     .context = fixture,
                                                     .acquired = acquired,
                                                     .lost = lost,
                                                     .outdated = outdated,
                                                     .serve = serve,
                                                     .serve_resting = serve_resting,
                                                     .on_entry = on_entry};
    fixture->queues = tl_held_queues_new(&settings, fixture->config, "me", fixture->metrics, &err);
    if (fixture->queues == NULL)
        fail_msg("%s", err.text);
    fixture->now_ms = 10000;
    *state = fixture;
    return 0;
}

static int stop(void **state)
{
    struct fixture *fixture = *state;
    tl_held_queues_free(&fixture->queues);
    tl_held_queues_free(&fixture->queues);
    assert_int_equal(tl_metrics_get(fixture->metrics, GAUGE), 0);
    tl_config_free(&fixture->config);
    tl_redis_free(&fixture->redis);
    test_redis_stop(&fixture->server);
    free(fixture->memory);
    free(fixture);
    return 0;
}

static struct queue *refresh(struct fixture *fixture, size_t i)
{
    struct tl_error err = {0};
    if (!tl_held_queues_refresh(fixture->queues, fixture->now_ms, &err))
        fail_msg("%s", err.text);
    return i < tl_held_queues_count(fixture->queues) ? tl_held_queues_at(fixture->queues, i)->state
                                                     : NULL;
}

static int64_t serve_all(struct fixture *fixture)
{
    struct tl_error err = {0};
    int64_t due_ms = INT64_MAX;
    if (!tl_held_queues_serve(fixture->queues, fixture->now_ms, &due_ms, &err))
        fail_msg("%s", err.text);
    return due_ms;
}

static void held_queues_have_state_and_are_counted(void **state)
{
    struct fixture *fixture = *state;
    assert_non_null(refresh(fixture, 0));
    assert_int_equal(tl_held_queues_count(fixture->queues), 2);
    assert_int_equal(tl_metrics_get(fixture->metrics, GAUGE), 2);
    assert_int_equal(tl_metrics_get(fixture->metrics, LISTED), 2);
    assert_true(tl_metrics_get(fixture->metrics, LATENCY) > 0);
    tl_reply_free(test_redis_call(fixture->redis, "SREM tl:queues beta"));
    tl_reply_free(test_redis_call(fixture->redis, "SET tl:{alpha}:tester other PX 60000"));
    fixture->now_ms += 500;
    (void)refresh(fixture, 0);
    /* alpha went to another replica; beta is configured, so the round restored it */
    assert_int_equal(tl_held_queues_count(fixture->queues), 1);
    assert_int_equal(tl_metrics_get(fixture->metrics, GAUGE), 1);
}

static void a_queue_the_role_refuses_is_not_held(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    fixture->refuse = true;
    assert_false(tl_held_queues_refresh(fixture->queues, fixture->now_ms, &err));
    assert_int_equal(err.kind, TL_ERR_NOMEM);
    assert_int_equal(tl_held_queues_count(fixture->queues), 0);
    assert_int_equal(tl_metrics_get(fixture->metrics, GAUGE), 0);
    assert_int_equal(test_redis_number(fixture->redis, "EXISTS tl:{alpha}:tester"), 0);
}

static void all_are_served_and_the_earliest_time_counts(void **state)
{
    struct fixture *fixture = *state;
    struct queue *alpha = refresh(fixture, 0);
    struct queue *beta = refresh(fixture, 1);
    alpha->due_ms = 10400;
    beta->due_ms = 10300;
    assert_int_equal(serve_all(fixture), 10300);
    assert_int_equal(alpha->served, 1);
    assert_int_equal(beta->served, 1);
}

static void an_error_of_one_queue_does_not_stop_the_others(void **state)
{
    struct fixture *fixture = *state;
    struct queue *alpha = refresh(fixture, 0);
    struct queue *beta = refresh(fixture, 1);
    alpha->outdated = 0;
    alpha->fail = TL_ERR_STORE;
    (void)serve_all(fixture);
    assert_int_equal(beta->served, 1);
    assert_int_equal(alpha->outdated, 1);
    fixture->now_ms += TL_TROUBLE_PAUSE_MS - 1;
    (void)refresh(fixture, 0);
    assert_int_equal(tl_metrics_get(fixture->metrics, TROUBLED), 1);
    (void)serve_all(fixture);
    assert_int_equal(alpha->served, 1); /* left alone, but for what can be done nevertheless */
    assert_int_equal(alpha->served_resting, 1);
    assert_int_equal(beta->served_resting, 0);
    assert_int_equal(beta->served, 2);
    fixture->now_ms += 1;
    alpha->fail = TL_OK;
    (void)serve_all(fixture);
    assert_int_equal(alpha->served, 2);
    (void)refresh(fixture, 0);
    assert_int_equal(tl_metrics_get(fixture->metrics, TROUBLED), 0);
}

static void any_other_error_fails_the_turn_and_makes_all_outdated(void **state)
{
    struct fixture *fixture = *state;
    struct queue *alpha = refresh(fixture, 0);
    struct queue *beta = refresh(fixture, 1);
    struct tl_error err = {0};
    int64_t due_ms = INT64_MAX;
    beta->fail = TL_ERR_NOQUEUE;
    (void)serve_all(fixture);
    alpha->outdated = beta->outdated = 0;
    alpha->fail = TL_ERR_TIMEOUT;
    assert_false(tl_held_queues_serve(fixture->queues, fixture->now_ms, &due_ms, &err));
    assert_int_equal(err.kind, TL_ERR_TIMEOUT);
    tl_held_queues_recheck(fixture->queues);
    assert_int_equal(alpha->outdated, 1);
    assert_int_equal(beta->outdated, 1);
    alpha->fail = beta->fail = TL_OK;
    (void)serve_all(fixture);
    assert_int_equal(beta->served, 2); /* no longer left alone */
}

static void a_new_connection_makes_all_outdated(void **state)
{
    struct fixture *fixture = *state;
    struct queue *alpha = refresh(fixture, 0);
    assert_int_equal(alpha->outdated, 0);
    tl_redis_close(tl_held_queues_redis(fixture->queues, NULL));
    assert_ptr_equal(refresh(fixture, 0), alpha);
    assert_int_equal(alpha->outdated, 1);
    (void)refresh(fixture, 0);
    assert_int_equal(alpha->outdated, 1);
}

static void a_turn_waits_for_the_earliest_of_what_is_due(void **state)
{
    struct fixture *fixture = *state;
    (void)refresh(fixture, 0);
    int64_t now_ms = fixture->now_ms;
    assert_int_equal(tl_held_queues_wait_ms(fixture->queues, INT64_MAX, now_ms), 500);
    assert_int_equal(tl_held_queues_wait_ms(fixture->queues, now_ms + 70, now_ms), 70);
    assert_int_equal(tl_held_queues_wait_ms(fixture->queues, now_ms - 70, now_ms), 0);
    assert_int_equal(tl_held_queues_wait_ms(fixture->queues, INT64_MAX, now_ms + 400), 100);
    assert_int_equal(tl_held_queues_wait_ms(fixture->queues, INT64_MAX, now_ms - 9000), 500);
}

static void events_reach_the_role_until_the_lease_is_lost(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    fixture->follow = true;
    (void)refresh(fixture, 0);
    assert_int_equal(tl_held_queues_followed(fixture->queues), 2);
    tl_reply_free(test_redis_call(fixture->redis, "XADD tl:{beta}:events * e hello"));
    assert_true(tl_held_queues_read_events(fixture->queues, 0, &err));
    assert_int_equal(fixture->entries, 1);
    tl_reply_free(test_redis_call(fixture->redis, "SET tl:{beta}:tester other PX 60000"));
    fixture->now_ms += 500;
    (void)refresh(fixture, 0);
    assert_int_equal(tl_held_queues_followed(fixture->queues), 1);
    tl_reply_free(test_redis_call(fixture->redis, "XADD tl:{beta}:events * e hello"));
    assert_true(tl_held_queues_read_events(fixture->queues, 0, &err));
    assert_int_equal(fixture->entries, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(held_queues_have_state_and_are_counted, start, stop),
        cmocka_unit_test_setup_teardown(a_queue_the_role_refuses_is_not_held, start, stop),
        cmocka_unit_test_setup_teardown(all_are_served_and_the_earliest_time_counts, start, stop),
        cmocka_unit_test_setup_teardown(an_error_of_one_queue_does_not_stop_the_others, start,
                                        stop),
        cmocka_unit_test_setup_teardown(any_other_error_fails_the_turn_and_makes_all_outdated,
                                        start, stop),
        cmocka_unit_test_setup_teardown(a_new_connection_makes_all_outdated, start, stop),
        cmocka_unit_test_setup_teardown(a_turn_waits_for_the_earliest_of_what_is_due, start, stop),
        cmocka_unit_test_setup_teardown(events_reach_the_role_until_the_lease_is_lost, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
