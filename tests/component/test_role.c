/* SPDX-License-Identifier: Apache-2.0 */
/* A role defined by the test, the time passed in, and a real store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/role/role.h"
#include "common/store/reply.h"
#include "redis_server.h"

enum { WORK, METRICS };
static const struct tl_metric_desc metrics_table[METRICS + TL_ROLE_METRICS] = {
    [WORK] = {"test_work", "What the role counts itself.", TL_COUNTER},
    [METRICS] = TL_ROLE_METRIC_ROWS("tester")};

/* The state of one queue in the role of the test. */
struct queue {
    unsigned served, served_resting, outdated;
    enum tl_error_kind fail; /* what serve fails with */
    int64_t due_ms;
    void *owned; /* a leak or a double free shows that `drop` was not called once */
};

struct fixture {
    struct test_redis *server;
    struct tl_redis *redis; /* of the test itself */
    const struct tl_config *config;
    struct tl_process *process;
    bool refuse; /* take fails */
    bool follow; /* take follows the events */
    unsigned entries;
    int64_t now_ms;
};

/* The state of the process. */
struct tester {
    struct fixture *fixture;
};

static struct fixture *opening; /* the fixture of the process that is made */

static bool open_tester(void *self, struct tl_process *process, struct tl_error *err)
{
    struct tester *tester = self;
    (void)err;
    assert_null(tester->fixture); /* it starts zeroed */
    assert_null(process->store);
    tester->fixture = opening;
    return true;
}

static void close_tester(void *self)
{
    ((struct tester *)self)->fixture = NULL;
}

static bool take(void *self, struct tl_held_queue *held, struct tl_error *err)
{
    const struct fixture *fixture = ((struct tester *)self)->fixture;
    struct queue *queue = held->state;
    struct tl_tail_head head;
    if (fixture->refuse)
        return tl_error_set(err, TL_ERR_NOMEM, "refused");
    if (fixture->follow && (!tl_tail_head(held->redis, &held->keys, &head, err) ||
                            !tl_tail_follow(fixture->process->tail, &held->keys, &head, err)))
        return false;
    assert_int_equal(queue->served, 0); /* it starts zeroed */
    queue->owned = malloc(1);
    assert_non_null(queue->owned);
    queue->due_ms = INT64_MAX;
    return true;
}

static void drop(void *self, struct tl_held_queue *held)
{
    (void)self;
    free(((struct queue *)held->state)->owned);
}

static void outdated(void *self, struct tl_held_queue *held)
{
    (void)self;
    ((struct queue *)held->state)->outdated++;
}

static bool serve(void *self, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms,
                  struct tl_error *err)
{
    const struct fixture *fixture = ((struct tester *)self)->fixture;
    struct queue *queue = held->state;
    assert_int_equal(now_ms, fixture->now_ms);
    queue->served++;
    *due_ms = queue->due_ms < *due_ms ? queue->due_ms : *due_ms;
    return queue->fail == TL_OK || tl_error_set(err, queue->fail, "serve failed");
}

static void serve_resting(void *self, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms)
{
    (void)self;
    ((struct queue *)held->state)->served_resting++;
    *due_ms = now_ms + 50;
}

static bool on_entry(void *self, struct tl_held_queue *held, const void *payload, size_t length)
{
    struct fixture *fixture = ((struct tester *)self)->fixture;
    assert_string_equal(held->keys.queue, "beta");
    assert_int_equal(length, 5);
    assert_memory_equal(payload, "hello", 5);
    fixture->entries++;
    return true;
}

/* A turn without a wait. */
static bool turn(void *self, int64_t now_ms, struct tl_error *err)
{
    struct tl_process *process = ((struct tester *)self)->fixture->process;
    int64_t due_ms = INT64_MAX;
    return tl_process_refresh(process, now_ms, err) &&
           tl_process_serve(process, now_ms, &due_ms, err);
}

static const struct tl_role role = {.name = "tester",
                                    .size = sizeof(struct tester),
                                    .queue_size = sizeof(struct queue),
                                    .metrics = metrics_table,
                                    .n_metrics = METRICS,
                                    .open = open_tester,
                                    .close = close_tester,
                                    .turn = turn,
                                    .take = take,
                                    .drop = drop,
                                    .outdated = outdated,
                                    .serve = serve,
                                    .serve_resting = serve_resting,
                                    .event = on_entry};
static const struct tl_signals no_signals = {.fd = -1};

static int64_t metric(const struct fixture *fixture, size_t common)
{
    return tl_metrics_get(fixture->process->metrics, METRICS + common);
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
    opening = fixture;
    fixture->process = tl_process_new(&role, fixture->config, &no_signals, &err);
    if (fixture->process == NULL)
        fail_msg("%s", err.text);
    fixture->now_ms = 10000;
    *state = fixture;
    return 0;
}

static int stop(void **state)
{
    struct fixture *fixture = *state;
    tl_process_free(&fixture->process);
    tl_process_free(&fixture->process);
    tl_config_free(&fixture->config);
    tl_redis_free(&fixture->redis);
    test_redis_stop(&fixture->server);
    free(fixture);
    return 0;
}

static struct queue *refresh(struct fixture *fixture, size_t i)
{
    struct tl_error err = {0};
    if (!tl_process_refresh(fixture->process, fixture->now_ms, &err))
        fail_msg("%s", err.text);
    return i < tl_roster_count(fixture->process->roster)
               ? tl_roster_at(fixture->process->roster, i)->state
               : NULL;
}

static int64_t serve_all(struct fixture *fixture)
{
    struct tl_error err = {0};
    int64_t due_ms = INT64_MAX;
    if (!tl_process_serve(fixture->process, fixture->now_ms, &due_ms, &err))
        fail_msg("%s", err.text);
    return due_ms;
}

static void held_queues_have_state_and_are_counted(void **state)
{
    struct fixture *fixture = *state;
    assert_non_null(refresh(fixture, 0));
    assert_int_equal(tl_roster_count(fixture->process->roster), 2);
    assert_int_equal(metric(fixture, TL_ROLE_QUEUES), 2);
    assert_int_equal(metric(fixture, TL_ROLE_LISTED), 2);
    assert_true(metric(fixture, TL_ROLE_STORE_TIME) > 0);
    tl_reply_free(test_redis_call(fixture->redis, "SREM tl:queues beta"));
    tl_reply_free(test_redis_call(fixture->redis, "SET tl:{alpha}:tester other PX 60000"));
    fixture->now_ms += 500;
    (void)refresh(fixture, 0);
    /* alpha went to another replica; beta is configured, so the round restored it */
    assert_int_equal(tl_roster_count(fixture->process->roster), 1);
    assert_int_equal(metric(fixture, TL_ROLE_QUEUES), 1);
}

static void a_queue_the_role_refuses_is_not_held(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    fixture->refuse = true;
    assert_false(tl_process_refresh(fixture->process, fixture->now_ms, &err));
    assert_int_equal(err.kind, TL_ERR_NOMEM);
    assert_int_equal(tl_roster_count(fixture->process->roster), 0);
    assert_int_equal(metric(fixture, TL_ROLE_QUEUES), 0);
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
    assert_int_equal(metric(fixture, TL_ROLE_TROUBLED), 1);
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
    assert_int_equal(metric(fixture, TL_ROLE_TROUBLED), 0);
}

static void any_other_error_fails_the_turn_and_makes_all_outdated(void **state)
{
    struct fixture *fixture = *state;
    struct queue *alpha = refresh(fixture, 0);
    struct queue *beta = refresh(fixture, 1);
    struct tl_error err = {0};
    beta->fail = TL_ERR_NOQUEUE;
    (void)serve_all(fixture);
    alpha->outdated = beta->outdated = 0;
    alpha->fail = TL_ERR_TIMEOUT;
    assert_false(tl_process_turn(fixture->process, fixture->now_ms, &err));
    assert_int_equal(err.kind, TL_ERR_TIMEOUT);
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
    tl_redis_close(tl_store_common(fixture->process->store));
    assert_ptr_equal(refresh(fixture, 0), alpha);
    assert_int_equal(alpha->outdated, 1);
    (void)refresh(fixture, 0);
    assert_int_equal(alpha->outdated, 1);
}

static void a_turn_waits_for_the_earliest_of_what_is_due(void **state)
{
    struct fixture *fixture = *state;
    (void)refresh(fixture, 0);
    struct tl_process *process = fixture->process;
    int64_t now_ms = fixture->now_ms;
    assert_int_equal(tl_process_wait_ms(process, INT64_MAX, now_ms), 0); /* first it says so */
    process->ready = true;
    assert_int_equal(tl_process_wait_ms(process, INT64_MAX, now_ms), 500);
    assert_int_equal(tl_process_wait_ms(process, now_ms + 70, now_ms), 70);
    assert_int_equal(tl_process_wait_ms(process, now_ms - 70, now_ms), 0);
    assert_int_equal(tl_process_wait_ms(process, INT64_MAX, now_ms + 400), 100);
    assert_int_equal(tl_process_wait_ms(process, INT64_MAX, now_ms - 9000), 500);
}

/* Of all queues: then the program cannot do its work. */
static void queues_set_aside_are_named(void **state)
{
    struct fixture *fixture = *state;
    struct queue *alpha = refresh(fixture, 0);
    struct queue *beta = refresh(fixture, 1);
    char detail[160];
    assert_true(tl_process_able(fixture->process, detail));
    assert_string_equal(detail, "");
    alpha->fail = TL_ERR_STORE;
    (void)serve_all(fixture);
    assert_true(tl_process_able(fixture->process, detail));
    assert_string_equal(detail, "not served: alpha: serve failed");
    beta->fail = TL_ERR_STORE;
    (void)serve_all(fixture);
    assert_false(tl_process_able(fixture->process, detail));
}

/* The next turn comes at once: the lease moved. */
static void an_outdated_fence_is_no_failure(void **state)
{
    struct fixture *fixture = *state;
    struct queue *alpha = refresh(fixture, 0);
    struct tl_error err = {0};
    alpha->outdated = 0;
    alpha->fail = TL_ERR_STALE;
    assert_true(tl_process_turn(fixture->process, fixture->now_ms, &err));
    assert_int_equal(alpha->outdated, 1);
}

static void events_reach_the_role_until_the_lease_is_lost(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    fixture->follow = true;
    (void)refresh(fixture, 0);
    assert_int_equal(tl_tail_count(fixture->process->tail), 2);
    tl_reply_free(test_redis_call(fixture->redis, "XADD tl:{beta}:events * e hello"));
    assert_true(tl_process_wait(fixture->process, 0, &err));
    assert_int_equal(fixture->entries, 1);
    tl_reply_free(test_redis_call(fixture->redis, "SET tl:{beta}:tester other PX 60000"));
    fixture->now_ms += 500;
    (void)refresh(fixture, 0);
    assert_int_equal(tl_tail_count(fixture->process->tail), 1);
    tl_reply_free(test_redis_call(fixture->redis, "XADD tl:{beta}:events * e hello"));
    assert_true(tl_process_wait(fixture->process, 0, &err));
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
        cmocka_unit_test_setup_teardown(queues_set_aside_are_named, start, stop),
        cmocka_unit_test_setup_teardown(an_outdated_fence_is_no_failure, start, stop),
        cmocka_unit_test_setup_teardown(events_reach_the_role_until_the_lease_is_lost, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
