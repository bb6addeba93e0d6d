/* SPDX-License-Identifier: Apache-2.0 */
/* The ingest thread against a real store: batches taken, refused, repeated, and lookups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/store/reply.h"
#include "redis_server.h"
#include "side_by_side.h"
#include "worker/feed/ingest.h"
#include "worker/report/worker_metrics.h"

/* HASTY_MS is for a store that falls silent; in any other test nothing may time out. */
enum { WAIT_MS = 300000, TIMEOUT_MS = 60000, HASTY_MS = 1000 };

struct fixture {
    struct test_redis *server;
    struct tl_redis *redis;
    struct tl_keys keys;
    uv_loop_t loop;
    struct tl_metrics *metrics;
    struct tl_ingest *ingest;
    int store_calls, downs;
    bool up;
    enum tl_error_kind refuses;
    int sent_calls;
    uint64_t sent_number;
    enum tl_batch_fate sent_fate;
    enum tl_error_kind sent_refusal; /* TL_OK: taken */
    char entry[TL_ENTRY_ID_MAX];
    int checked_calls;
    struct tl_batch_check check;
    int found_calls;
    uint64_t found_number;
    enum tl_lookup_found found;
    enum tl_reason reason;
    int drawn_calls;
    uint64_t drawn_number;
    char drawn[64]; /* "": the store could not say */
};

static void on_answer(void *context, const struct tl_job *job)
{
    struct fixture *f = context;
    const struct tl_batch_receipt receipt = tl_ingest_receipt(job);
    size_t length;
    const char *ids;
    switch (job->kind) {
    case TL_INGEST_BATCH:
        assert_int_equal(job->queue[1], '\0');
        f->sent_calls++;
        f->sent_number = receipt.number;
        f->sent_fate = receipt.fate;
        f->sent_refusal = receipt.refusal != NULL ? receipt.refusal->kind : TL_OK;
        assert_int_equal(receipt.refusal == NULL, receipt.fate == TL_BATCH_TAKEN);
        snprintf(f->entry, sizeof(f->entry), "%s", receipt.entry);
        break;
    case TL_INGEST_CHECK:
        assert_string_equal(job->queue, "q");
        assert_int_equal(job->number, 7);
        f->checked_calls++;
        f->check = tl_ingest_checked(job);
        break;
    case TL_INGEST_LOOKUP:
        f->found_calls++;
        f->found_number = job->number;
        f->found = tl_ingest_found(job, &f->reason);
        break;
    case TL_INGEST_DRAWN:
        f->drawn_calls++;
        f->drawn_number = job->number;
        ids = tl_ingest_ids(job, &length);
        assert_true(ids == NULL || length < sizeof(f->drawn));
        snprintf(f->drawn, sizeof(f->drawn), "%.*s", ids != NULL ? (int)length : 0,
                 ids != NULL ? ids : "");
        break;
    case TL_INGEST_STORE:
        f->refuses = job->refuses;
        f->store_calls++;
        f->downs += job->up ? 0 : 1;
        f->up = job->up;
        break;
    case TL_INGEST_NOTE:
        fail();
    }
}

static void wake(uv_timer_t *timer)
{
    (void)timer;
}

/* Turns the loop until *counter has come to `target`. */
static void turn_until(struct fixture *f, const int *counter, int target)
{
    uv_timer_t timer; /* so that the loop never sleeps past the deadline */
    int64_t until_ms = tl_clock_ms() + WAIT_MS;
    uv_timer_init(&f->loop, &timer);
    uv_timer_start(&timer, wake, 20, 20);
    while (*counter < target) {
        if (tl_clock_ms() > until_ms)
            fail_msg("waited for %d callbacks, %d came", target, *counter);
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static int set_up_with(void **state, int64_t timeout_ms)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct tl_error err = {0};
    assert_non_null(f);
    f->server = test_redis_start_kept();
    f->redis = test_redis_connect(f->server);
    test_queue(f->redis, "", &f->keys);
    f->metrics = tl_metrics_new(tl_worker_metrics, TL_WORKER_METRICS);
    assert_non_null(f->metrics);
    uv_loop_init(&f->loop);
    const struct tl_ingest_settings settings = {
        .redis = {.url = test_redis_url(f->server), .timeout_ms = timeout_ms},
        .key_prefix = "tl:",
        .metrics = f->metrics,
        .context = f,
        .answered = on_answer};
    f->ingest = tl_ingest_new(&f->loop, &settings, &err);
    if (f->ingest == NULL)
        fail_msg("%s", err.text);
    turn_until(f, &f->store_calls, 1);
    assert_true(f->up);
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, TIMEOUT_MS);
}

static int set_up_hasty(void **state)
{
    return set_up_with(state, HASTY_MS);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tl_ingest_free(&f->ingest);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    tl_redis_free(&f->redis);
    test_redis_stop(&f->server);
    free(f->metrics);
    free(f);
    return 0;
}

static void send_commands(struct fixture *f, const char *queue, uint64_t number, bool joins)
{
    char *bytes = strdup("payload");
    assert_non_null(bytes);
    assert_true(tl_ingest_send(f->ingest, queue, number, bytes, strlen(bytes), joins));
}

static void send_batch(struct fixture *f, const char *queue, uint64_t number)
{
    send_commands(f, queue, number, true);
}

static long long entries(struct fixture *f)
{
    return test_redis_ask(f->redis, "XLEN %s", f->keys.names[TL_KEY_INGEST]);
}

static void a_batch_is_appended_to_the_stream(void **state)
{
    struct fixture *f = *state;
    send_batch(f, "q", 7);
    turn_until(f, &f->sent_calls, 1);
    assert_int_equal(f->sent_number, 7);
    assert_int_equal(f->sent_refusal, TL_OK);
    assert_int_equal(entries(f), 1);
    assert_int_equal(tl_metrics_get(f->metrics, TL_WORKER_INGEST_TIME), 1);
}

static void a_batch_of_a_deleted_queue_is_refused(void **state)
{
    struct fixture *f = *state;
    send_batch(f, "x", 1);
    turn_until(f, &f->sent_calls, 1);
    assert_int_equal(f->sent_refusal, TL_ERR_NOQUEUE);
    assert_int_equal(f->sent_fate, TL_BATCH_REFUSED);
    assert_int_equal(test_redis_number(f->redis, "EXISTS tl:{x}:ingest"), 0);
    assert_int_equal(tl_metrics_get(f->metrics, TL_WORKER_BATCHES_REFUSED), 1);
    assert_true(f->up);
}

static void a_store_that_is_full_refuses(void **state)
{
    struct fixture *f = *state;
    tl_reply_free(test_redis_call(f->redis, "CONFIG SET maxmemory 1"));
    send_batch(f, "q", 1);
    turn_until(f, &f->sent_calls, 1);
    assert_int_equal(f->sent_refusal, TL_ERR_OOM);
    assert_int_equal(f->sent_fate, TL_BATCH_REFUSED);
    assert_int_equal(entries(f), 0);
    turn_until(f, &f->store_calls, 2);
    assert_int_equal(f->refuses, TL_ERR_OOM);
    assert_true(f->up);
    /* That it takes batches again is noticed without one. */
    tl_reply_free(test_redis_call(f->redis, "CONFIG SET maxmemory 0"));
    turn_until(f, &f->store_calls, 3);
    assert_int_equal(f->refuses, TL_OK);
    assert_int_equal(test_redis_number(f->redis, "EXISTS tl:{none:none}:ingest"), 0);
    send_batch(f, "q", 2);
    turn_until(f, &f->sent_calls, 2);
    assert_int_equal(f->sent_refusal, TL_OK);
    assert_int_equal(f->store_calls, 3);
}

/* A store that goes away says nothing about whether it refuses. */
static void a_store_that_is_full_may_go_away(void **state)
{
    struct fixture *f = *state;
    tl_reply_free(test_redis_call(f->redis, "CONFIG SET maxmemory 1"));
    send_batch(f, "q", 1);
    turn_until(f, &f->store_calls, 2);
    test_redis_kill(f->server);
    turn_until(f, &f->downs, 1);
    assert_int_equal(f->refuses, TL_ERR_OOM);
    test_redis_restart(f->server); /* with the memory it wants */
    while (f->refuses != TL_OK)
        turn_until(f, &f->store_calls, f->store_calls + 1);
    assert_true(f->up);
}

static void a_full_store_takes_batches_without_joins(void **state)
{
    struct fixture *f = *state;
    tl_reply_free(test_redis_call(f->redis, "CONFIG SET maxmemory 1"));
    send_commands(f, "q", 1, false);
    turn_until(f, &f->sent_calls, 1);
    assert_int_equal(f->sent_refusal, TL_OK);
    assert_int_equal(f->sent_fate, TL_BATCH_TAKEN);
    assert_true(strlen(f->entry) > 10);
    assert_int_equal(entries(f), 1);
    send_commands(f, "x", 2, false); /* still, no queue is made */
    turn_until(f, &f->sent_calls, 2);
    assert_int_equal(f->sent_refusal, TL_ERR_NOQUEUE);
    assert_string_equal(f->entry, "");
    assert_int_equal(test_redis_number(f->redis, "EXISTS tl:{x}:ingest"), 0);
    send_batch(f, "q", 3);
    turn_until(f, &f->sent_calls, 3);
    assert_int_equal(f->sent_refusal, TL_ERR_OOM);
    assert_int_equal(f->refuses, TL_ERR_OOM);
    assert_int_equal(entries(f), 1);
}

/* The store falls silent after the batch went out: it is sent again until there is an answer. */
static void a_batch_of_unknown_outcome_is_repeated(void **state)
{
    struct fixture *f = *state;
    test_redis_freeze(f->server);
    send_batch(f, "q", 3);
    turn_until(f, &f->store_calls, 2);
    assert_false(f->up);
    assert_int_equal(f->sent_calls, 0); /* neither taken nor refused */
    test_redis_thaw(f->server);
    turn_until(f, &f->sent_calls, 1);
    assert_int_equal(f->sent_number, 3);
    assert_int_equal(f->sent_refusal, TL_OK);
    assert_true(f->up);
    assert_true(entries(f) >= 2); /* the frozen store had got the first one too */
    assert_true(tl_metrics_get(f->metrics, TL_WORKER_BATCHES_REPEATED) >= 1);
}

/* Sends a batch that the store does not answer in time: then its outcome is unknown. */
static void send_into_a_pause(struct fixture *f)
{
    tl_reply_free(test_redis_call(f->redis, "CLIENT PAUSE 600000 WRITE"));
    send_batch(f, "q", 3);
    turn_until(f, &f->downs, 1); /* it may be up again: a pause of writes lets us connect */
}

/* The store may have the batch. That it refuses to take it again says nothing about that. */
static void a_refused_repeat_is_not_a_refusal(void **state)
{
    struct fixture *f = *state;
    send_into_a_pause(f);
    tl_reply_free(test_redis_call(f->redis, "CONFIG SET maxmemory 1"));
    tl_reply_free(test_redis_call(f->redis, "CLIENT UNPAUSE"));
    while (!f->up)
        turn_until(f, &f->store_calls, f->store_calls + 1);
    send_batch(f, "r", 4); /* meanwhile others are answered */
    turn_until(f, &f->sent_calls, 1);
    assert_int_equal(f->sent_number, 4);
    assert_int_equal(f->sent_fate, TL_BATCH_REFUSED);
    tl_reply_free(test_redis_call(f->redis, "CONFIG SET maxmemory 0"));
    turn_until(f, &f->sent_calls, 2);
    assert_int_equal(f->sent_number, 3);
    assert_int_equal(f->sent_fate, TL_BATCH_TAKEN);
    assert_int_equal(entries(f), 1);
}

/* The queue is gone, and with it the batch, if it was taken. */
static void a_repeat_without_a_queue_ends_with_an_unknown_fate(void **state)
{
    struct fixture *f = *state;
    struct tl_error err = {0};
    struct tl_args args = {0};
    send_into_a_pause(f);
    tl_args_strs(&args, "CLIENT", "UNPAUSE", NULL);
    assert_true(tl_redis_append(f->redis, &args, &err));
    tl_args_reset(&args);
    tl_args_strs(&args, "DEL", f->keys.names[TL_KEY_INGEST], NULL);
    assert_true(tl_redis_append(f->redis, &args, &err));
    tl_args_free(&args);
    tl_reply_free(tl_redis_next(f->redis, &err));
    tl_reply_free(tl_redis_next(f->redis, &err));
    turn_until(f, &f->sent_calls, 1);
    assert_int_equal(f->sent_number, 3);
    assert_int_equal(f->sent_fate, TL_BATCH_UNKNOWN);
    assert_int_equal(f->sent_refusal, TL_ERR_NOQUEUE);
    assert_int_equal(tl_metrics_get(f->metrics, TL_WORKER_BATCHES_REFUSED), 0);
}

static struct tl_batch_check check(struct fixture *f, const char *entry)
{
    int calls = f->checked_calls;
    assert_true(tl_ingest_check(f->ingest, "q", "worker-1", 7, entry));
    turn_until(f, &f->checked_calls, calls + 1);
    return f->check;
}

/* It waits while it is there and not applied; or the store could not say. */
static void the_store_is_asked_about_a_batch(void **state)
{
    struct fixture *f = *state;
    const char *known = f->keys.names[TL_KEY_STATE];
    assert_false(check(f, "1-1").waits);
    send_batch(f, "q", 7);
    turn_until(f, &f->sent_calls, 1);
    assert_true(strlen(f->entry) > 10);
    assert_true(check(f, f->entry).waits);
    test_redis_ask(f->redis, "HSET %s batch:worker-1 6:1700000000000", known);
    assert_true(check(f, f->entry).waits);
    test_redis_ask(f->redis, "HSET %s batch:worker-1 7:1700000000000", known);
    test_redis_ask(f->redis, "HSET %s event 41", known);
    assert_false(check(f, f->entry).waits);
    assert_int_equal(check(f, f->entry).event, 41);
    test_redis_ask(f->redis, "HDEL %s batch:worker-1", known);
    assert_true(check(f, f->entry).waits);
    test_redis_ask(f->redis, "DEL %s", f->keys.names[TL_KEY_INGEST]);
    assert_false(check(f, f->entry).waits);
    assert_int_equal(check(f, f->entry).event, 0);
    test_redis_ask(f->redis, "HSET %s worker-1 6", f->keys.names[TL_KEY_INGEST]);
    assert_true(check(f, f->entry).waits); /* of the wrong type */
}

/* A batch that met a replica is sent again until there is a master. */
static void a_replica_is_the_store_down(void **state)
{
    struct fixture *f = *state;
    tl_reply_free(test_redis_call(f->redis, "REPLICAOF 127.0.0.1 1"));
    send_batch(f, "q", 3);
    turn_until(f, &f->store_calls, 2);
    assert_false(f->up);
    assert_int_equal(f->sent_calls, 0); /* neither taken nor refused */
    tl_reply_free(test_redis_call(f->redis, "REPLICAOF NO ONE"));
    turn_until(f, &f->sent_calls, 1);
    assert_int_equal(f->sent_number, 3);
    assert_int_equal(f->sent_refusal, TL_OK);
    assert_true(f->up);
    assert_int_equal(entries(f), 1);
}

static void without_a_connection_what_was_never_sent_is_refused(void **state)
{
    struct fixture *f = *state;
    test_redis_kill(f->server);
    send_batch(f, "q", 1); /* may find out that the connection broke */
    turn_until(f, &f->store_calls, 2);
    assert_false(f->up);
    send_batch(f, "x", 2);
    assert_true(
        tl_ingest_look(f->ingest, "q", &(struct tl_ticket){.visitor = "v", .place = 1}, 99));
    turn_until(f, &f->found_calls, 1);
    assert_int_equal(f->found, TL_LOOKUP_FAILED);
    assert_int_equal(f->found_number, 99);
    assert_int_equal(f->sent_calls, 1);
    assert_int_equal(f->sent_number, 2);
    assert_int_equal(f->sent_refusal, TL_ERR_CONNECT);
    test_redis_restart(f->server);
    turn_until(f, &f->store_calls, 3);
    assert_true(f->up);
    turn_until(f, &f->sent_calls, 2); /* the first batch was tried: it is repeated */
    assert_int_equal(f->sent_number, 1);
    assert_int_equal(f->sent_refusal, TL_OK);
}

static enum tl_lookup_found look(struct fixture *f, const char *visitor, tl_place place)
{
    int calls = f->found_calls;
    struct tl_ticket ticket = {.place = place, .issued = 1700000000};
    snprintf(ticket.visitor, sizeof(ticket.visitor), "%s", visitor);
    assert_true(tl_ingest_look(f->ingest, "q", &ticket, (uint64_t)calls + 1));
    turn_until(f, &f->found_calls, calls + 1);
    assert_int_equal(f->found_number, calls + 1);
    return f->found;
}

static const char *read_drawn(struct fixture *f, uint64_t from, uint64_t n)
{
    int calls = f->drawn_calls;
    assert_true(tl_ingest_drawn(f->ingest, "q", from, n, (uint64_t)calls + 1));
    turn_until(f, &f->drawn_calls, calls + 1);
    assert_int_equal(f->drawn_number, calls + 1);
    return f->drawn;
}

static void the_list_of_a_draw_is_read(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(read_drawn(f, 1, 3), ""); /* there is none */
    test_redis_ask(f->redis, "SET tl:{q}:drawn ----------------"
                             "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbcccccccccccccccc");
    assert_string_equal(read_drawn(f, 1, 1), "aaaaaaaaaaaaaaaa");
    assert_string_equal(read_drawn(f, 2, 2), "bbbbbbbbbbbbbbbbcccccccccccccccc");
    assert_string_equal(read_drawn(f, 3, 9), "cccccccccccccccc");
    assert_string_equal(read_drawn(f, 4, 1), "");
    test_redis_ask(f->redis, "DEL tl:{q}:drawn");
    test_redis_ask(f->redis, "SADD tl:{q}:drawn x");
    assert_string_equal(read_drawn(f, 1, 1), "");
    assert_true(f->up);
    test_redis_kill(f->server);
    assert_string_equal(read_drawn(f, 1, 1), "");
}

static void a_visitor_is_looked_up(void **state)
{
    struct fixture *f = *state;
    test_redis_ask(f->redis, "ZADD %s %lld ended", f->keys.names[TL_KEY_ENDED],
                   1700000000000LL * 8 + TL_REASON_LEFT);
    assert_int_equal(look(f, "ended", 7), TL_LOOKUP_ENDED);
    assert_int_equal(f->reason, TL_REASON_LEFT);
    assert_int_equal(look(f, "unknown", 8), TL_LOOKUP_NOWHERE);
    /* Without a number: what ended when the ticket was given is its place, unless the visitor holds
     * one; what ended before is an earlier one. */
    assert_int_equal(look(f, "ended", 0), TL_LOOKUP_ENDED);
    test_redis_ask(f->redis, "ZADD %s 9 ended", f->keys.names[TL_KEY_WAITING]);
    assert_int_equal(look(f, "ended", 0), TL_LOOKUP_NOWHERE);
    test_redis_ask(f->redis, "ZADD %s %lld before", f->keys.names[TL_KEY_ENDED],
                   1699999990000LL * 8 + TL_REASON_EXPIRED);
    assert_int_equal(look(f, "before", 0), TL_LOOKUP_NOWHERE);
    assert_int_equal(look(f, "before", 7), TL_LOOKUP_ENDED);
    assert_int_equal(f->reason, TL_REASON_EXPIRED);
}

static void a_visitor_is_looked_up_at_one_place(void **state)
{
    struct fixture *f = *state;
    char(*names)[sizeof(f->keys.names[0])] = f->keys.names;
    test_redis_ask(f->redis, "ZADD %s 5 waits 100000000 far", names[TL_KEY_WAITING]);
    test_redis_ask(f->redis, "HSET %s active 6:1700000000000:1", names[TL_KEY_SESSIONS]);
    assert_int_equal(look(f, "waits", 5), TL_LOOKUP_ALIVE);
    assert_int_equal(look(f, "waits", 4), TL_LOOKUP_NOWHERE);
    assert_int_equal(look(f, "far", 100000000), TL_LOOKUP_ALIVE);
    assert_int_equal(look(f, "active", 6), TL_LOOKUP_ALIVE);
    assert_int_equal(look(f, "active", 5), TL_LOOKUP_NOWHERE);
}

/* And nothing of the state, nor for a queue that does not exist. */
static void what_came_true_is_added_up(void **state)
{
    struct fixture *f = *state;
    static const char *const fields[] = {"eta_judged", "eta_early", "eta_late", "eta_error"};
    static const long long sums[] = {15, 3, 1, 420};
    const char *key = f->keys.names[TL_KEY_STATE];
    long long before = test_redis_ask(f->redis, "HLEN %s", key);
    tl_ingest_promised(f->ingest, "q", (const uint64_t[TL_PROMISED_FIELDS]){10, 2, 1, 300});
    tl_ingest_promised(f->ingest, "q", (const uint64_t[TL_PROMISED_FIELDS]){5, 1, 0, 120});
    tl_ingest_promised(f->ingest, "x", (const uint64_t[TL_PROMISED_FIELDS]){5, 1, 0, 120});
    (void)look(f, "v", 1); /* it is asked after them */
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_int_equal(test_redis_ask(f->redis, "HGET tl:{q}:promised %s", fields[i]), sums[i]);
    assert_int_equal(test_redis_ask(f->redis, "HLEN %s", key), before);
    assert_int_equal(test_redis_number(f->redis, "EXISTS tl:{x}:promised"), 0);
}

static void a_lookup_that_the_store_refuses_fails(void **state)
{
    struct fixture *f = *state;
    test_redis_ask(f->redis, "HSET %s a b", f->keys.names[TL_KEY_ENDED]); /* the wrong type */
    assert_int_equal(look(f, "v", 1), TL_LOOKUP_FAILED);
    assert_int_equal(f->store_calls, 1);
}

static void freeing_drops_what_is_pending(void **state)
{
    struct fixture *f = *state;
    test_redis_freeze(f->server);
    send_batch(f, "q", 1);
    tl_ingest_free(&f->ingest);
    test_redis_thaw(f->server);
    assert_int_equal(f->sent_calls, 0);
}

#define CASE(name)   cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define SILENT(name) cmocka_unit_test_setup_teardown(name, set_up_hasty, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_batch_is_appended_to_the_stream),
        CASE(a_batch_of_a_deleted_queue_is_refused),
        CASE(a_store_that_is_full_refuses),
        CASE(a_store_that_is_full_may_go_away),
        CASE(a_full_store_takes_batches_without_joins),
        SILENT(a_batch_of_unknown_outcome_is_repeated),
        SILENT(a_refused_repeat_is_not_a_refusal),
        SILENT(a_repeat_without_a_queue_ends_with_an_unknown_fate),
        CASE(the_store_is_asked_about_a_batch),
        CASE(a_replica_is_the_store_down),
        CASE(without_a_connection_what_was_never_sent_is_refused),
        CASE(a_visitor_is_looked_up),
        CASE(a_visitor_is_looked_up_at_one_place),
        CASE(what_came_true_is_added_up),
        CASE(a_lookup_that_the_store_refuses_fails),
        CASE(the_list_of_a_draw_is_read),
        SILENT(freeing_drops_what_is_pending),
    };
    return test_side_by_side(tests, NULL, NULL);
}
