/* SPDX-License-Identifier: Apache-2.0 */
/* The apply function: exactly once, in the order of the stream, whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "common/store/reply.h"
#include "ingest.h"

/* How many workers' last batches the state holds. */
static int workers_known(struct test_store *store)
{
    struct tl_reply *fields = test_redis_call(store->redis, "HKEYS tl:{q}:state");
    int n = 0;
    for (size_t i = 0; i < tl_reply_count(fields); i++)
        n += strncmp(tl_reply_string(tl_reply_at(fields, i), NULL), TL_BATCH_FIELD,
                     strlen(TL_BATCH_FIELD)) == 0;
    tl_reply_free(fields);
    return n;
}

/* Sends one JOIN as the given batch, delivers it, and puts its stream id into id. */
static void send_join(struct test_store *store, const char *worker, uint64_t number,
                      const char *visitor, char *id)
{
    test_join(store, visitor, 0);
    test_send(store, worker, number, id);
    assert_int_equal(test_deliver(store), 1);
}

/* Calls the apply function by hand with one JOIN of "anna"; -1 and the error's sentence if refused.
 */
static long long apply(struct test_store *store, const char *fence, const char *id,
                       const char *worker, const char *commands, char *error)
{
    char arguments[256];
    snprintf(arguments, sizeof(arguments), "%s 1000 0 %s %s %s", fence, id, worker, commands);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_APPLY, &store->keys, arguments, error);
    assert_true(reply == NULL || tl_reply_count(reply) == 1);
    long long result = reply != NULL ? tl_reply_integer(tl_reply_at(reply, 0)) : -1;
    tl_reply_free(reply);
    return result;
}

static void an_entry_is_applied_once(void **state)
{
    struct test_store *store = *state;
    char id[TL_STREAM_ID_MAX];
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", id);
    assert_int_equal(apply(store, "1", id, "w 1", "1 0 1 anna", NULL), 1);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(apply(store, "1", id, "w 1", "1 0 1 anna", NULL), 0);
    assert_int_equal(apply(store, "1", id, "w 2", "1 0 1 bert", NULL), 0);
    assert_int_equal(test_redis_fingerprint(store->redis), before);
    test_invariants(store->redis, &store->keys);
}

static void an_applied_entry_is_refused_while_a_newer_one_is_pending(void **state)
{
    struct test_store *store = *state;
    char first[TL_STREAM_ID_MAX], second[TL_STREAM_ID_MAX];
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", first);
    send_join(store, "w", 2, "bert", second);
    assert_int_equal(apply(store, "1", first, "w 1", "1 0 1 anna", NULL), 1);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(apply(store, "1", first, "w 1", "1 0 1 anna", NULL), 0);
    assert_int_equal(test_redis_fingerprint(store->redis), before);
    assert_int_equal(apply(store, "1", second, "w 2", "1 0 1 bert", NULL), 1);
    assert_int_equal(test_state(store, "joined"), 2);
}

static void a_batch_sent_twice_is_recognised(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 7, "anna", NULL);
    send_join(store, "w", 7, "anna", NULL);
    send_join(store, "w", 6, "old", NULL);
    send_join(store, "w", 8, "bert", NULL);
    send_join(store, "other", 7, "carl", NULL);
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(counts.applied, 3);
    assert_int_equal(counts.repeated, 2);
    assert_int_equal(counts.commands, 3);
    assert_int_equal(test_state(store, "joined"), 3);
    struct test_entry last;
    test_entry_read(store, &last); /* one entry for all; none for a repeated batch */
    assert_int_equal(last.entry.number, 1);
    assert_int_equal(last.entry.n_events, 4);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(last.entry.events[i].kind, TL_EVENT_APPLIED);
        assert_string_equal(last.entry.events[i].worker, i < 2 ? "w" : "other");
        assert_int_equal(last.entry.events[i].batch, i == 1 ? 8 : 7);
        assert_int_equal(last.entry.events[i].first_seq, i + 1);
    }
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "1+3");
    test_entry_free(&last);
    assert_int_equal(test_waiting_place(store, "old"), -1);
    assert_int_equal(workers_known(store), 2);
    struct tl_reply *pending = test_redis_call(store->redis, "XPENDING tl:{q}:ingest dispatchers");
    assert_int_equal(tl_reply_integer(tl_reply_at(pending, 0)), 0); /* acknowledged all the same */
    tl_reply_free(pending);
    test_invariants(store->redis, &store->keys);
}

static void an_older_entry_comes_first(void **state)
{
    struct test_store *store = *state;
    char first[TL_STREAM_ID_MAX], second[TL_STREAM_ID_MAX], error[320];
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", first);
    send_join(store, "w", 2, "bert", second);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(apply(store, "1", second, "w 2", "1 0 1 bert", error), -1);
    assert_non_null(strstr(error, "ORDER"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

static void an_outdated_fence_is_refused(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    char id[TL_STREAM_ID_MAX], error[320];
    test_store_queue(store, "lanes=only");
    test_redis_ask(store->redis, "HSET %s fence 2", store->keys.names[TL_KEY_STATE]);
    send_join(store, "w", 1, "anna", id);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(apply(store, "1", id, "w 1", "1 0 1 anna", error), -1);
    assert_non_null(strstr(error, "STALE"));
    assert_int_equal(apply(store, "3", id, "w 1", "1 0 1 anna", error), -1);
    assert_non_null(strstr(error, "STALE"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
    assert_false(test_apply_pending(store, 1, &counts, &err));
    assert_int_equal(err.kind, TL_ERR_STALE);
    assert_int_equal(counts.applied, 0);
    assert_true(test_apply_pending(store, 2, &counts, &err));
    assert_int_equal(counts.applied, 1);
}

static void without_a_queue_nothing_is_applied(void **state)
{
    struct test_store *store = *state;
    char id[TL_STREAM_ID_MAX], error[320];
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", id);
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_CONFIG]);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(apply(store, "1", id, "w 1", "1 0 1 anna", error), -1);
    assert_non_null(strstr(error, "NOQUEUE"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_STATE]);
    before = test_redis_fingerprint(store->redis);
    assert_int_equal(apply(store, "1", id, "w 1", "1 0 1 anna", error), -1);
    assert_non_null(strstr(error, "NOQUEUE"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

/* At its memory limit Redis refuses a function at its first write, or not at all: the entry is
 * either applied whole or stays pending. */
static void at_the_memory_limit_nothing_is_applied_by_half(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", NULL);
    tl_reply_free(test_redis_call(store->redis, "CONFIG SET maxmemory 1"));
    assert_int_equal(test_redis_refusal(store->redis, "SET x y"), TL_ERR_OOM);
    bool applied = test_apply_pending(store, 1, &counts, &err);
    tl_reply_free(test_redis_call(store->redis, "CONFIG SET maxmemory 0"));
    test_invariants(store->redis, &store->keys);
    if (!applied) {
        assert_int_equal(err.kind, TL_ERR_OOM);
        assert_true(test_apply_pending(store, 1, &counts, &err));
    }
    assert_int_equal(counts.applied, 1);
    assert_int_equal(test_waiting_place(store, "anna"), 1);
    assert_int_equal(test_state(store, "joined"), 1);
}

/* It is read after the batch was acknowledged, so it must not stop the function. */
static void a_damaged_record_of_a_worker_is_forgotten(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    const char *known = store->keys.names[TL_KEY_STATE];
    for (int i = 1; i <= 99; i++)
        test_redis_ask(store->redis, "HSET %s batch:w%d %d:%lld", known, i, i,
                       test_redis_ms(store->redis));
    test_redis_ask(store->redis, "HSET %s batch:damaged nonsense", known);
    test_join(store, "anna", 0);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "anna"), 1);
    assert_int_equal(workers_known(store), 100);
    assert_int_equal(test_redis_ask(store->redis, "HEXISTS %s batch:damaged", known), 0);
    test_invariants(store->redis, &store->keys);
}

static void silent_workers_are_forgotten(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    const char *known = store->keys.names[TL_KEY_STATE];
    test_store_queue(store, "lanes=only");
    long long now = test_redis_ms(store->redis);
    for (int i = 0; i < 99; i++)
        test_redis_ask(store->redis, "HSET %s batch:w%d %d:%lld", known, i, i,
                       i % 2 == 0 ? now - 3600000 - 1 : now - 3500000);
    send_join(store, "w1", 5, "anna", NULL);
    send_join(store, "fresh", 1, "bert", NULL);
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(workers_known(store), 100); /* below the bound */
    send_join(store, "fresher", 1, "carl", NULL);
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(workers_known(store), 49 + 2);
    assert_int_equal(test_redis_ask(store->redis, "HEXISTS %s batch:w2", known), 0);
    assert_int_equal(test_redis_ask(store->redis, "HEXISTS %s batch:w3", known), 1);
    assert_int_equal(counts.applied, 3);
}

static void a_payload_that_is_gone_is_set_aside(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    char id[TL_STREAM_ID_MAX];
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", id);
    send_join(store, "w", 2, "bert", NULL);
    assert_int_equal(
        test_redis_ask(store->redis, "XDEL %s %s", store->keys.names[TL_KEY_INGEST], id), 1);
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(counts.poison, 1);
    assert_int_equal(counts.lost, 1);
    assert_int_equal(counts.applied, 1);
    assert_int_equal(test_waiting_place(store, "bert"), 1);
    assert_int_equal(test_redis_ask(store->redis, "XLEN tl:{q}:poison"), 1);
    test_invariants(store->redis, &store->keys);
}

static void poison_does_not_stop_the_queue(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    test_store_queue(store, "lanes=only");
    for (int i = 0; i < 102; i++) {
        test_redis_ask(store->redis, "XADD %s %d-1 d nonsense%d", store->keys.names[TL_KEY_INGEST],
                       i + 1, i);
        assert_int_equal(test_deliver(store), 1);
        assert_true(test_apply_pending(store, 1, &counts, NULL));
    }
    send_join(store, "w", 1, "anna", NULL);
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(counts.poison, 102);
    assert_int_equal(counts.lost, 0);
    assert_int_equal(counts.applied, 1);
    assert_int_equal(test_redis_ask(store->redis, "XLEN tl:{q}:poison"), 100);
    struct tl_reply *range = test_redis_call(store->redis, "XRANGE tl:{q}:poison - + COUNT 1");
    const struct tl_reply *fields = tl_reply_at(tl_reply_at(range, 0), 1);
    assert_string_equal(tl_reply_string(tl_reply_at(fields, 1), NULL), "3-1");
    assert_string_not_equal(tl_reply_string(tl_reply_at(fields, 3), NULL), "");
    assert_string_equal(tl_reply_string(tl_reply_at(fields, 5), NULL), "nonsense2");
    tl_reply_free(range);
}

static void poison_needs_the_fence_and_a_pending_entry(void **state)
{
    struct test_store *store = *state;
    char id[TL_STREAM_ID_MAX], arguments[128], error[320];
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", id);
    uint64_t before = test_redis_fingerprint(store->redis);
    snprintf(arguments, sizeof(arguments), "2 %s why payload", id);
    assert_null(test_function(store->redis, TL_FN_POISON, &store->keys, arguments, error));
    assert_non_null(strstr(error, "STALE"));
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_POISON, &store->keys, "1 1-1 why payload", NULL);
    assert_int_equal(tl_reply_integer(reply), 0);
    tl_reply_free(reply);
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

static void a_pipeline_survives_that_the_library_is_gone(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    test_store_queue(store, "lanes=only");
    test_join_many(store, "v", 1, 0);
    send_join(store, "x", 1, "anna", NULL);
    send_join(store, "x", 2, "bert", NULL);
    tl_reply_free(test_redis_call(store->redis, "FUNCTION FLUSH"));
    assert_false(test_apply_pending(store, 1, &counts, &err));
    assert_int_equal(err.kind, TL_ERR_NOFUNCTION);
    assert_true(test_apply_pending(store, 1, &counts, &err));
    assert_int_equal(counts.applied, 2);
    assert_int_equal(test_waiting_place(store, "anna"), 2);
    assert_int_equal(test_waiting_place(store, "bert"), 3);
}

/* ---- several entries in one call ---- */

static void joined_are(struct test_store *store, const char *const *visitors, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(test_waiting_place(store, visitors[i]), i + 1);
    assert_int_equal(test_state(store, "joined"), n);
    test_invariants(store->redis, &store->keys);
}

static void entries_of_one_call_are_applied_in_order(void **state)
{
    static const char *const visitors[] = {"anna", "bert", "carl"};
    struct test_store *store = *state;
    char ids[4][TL_STREAM_ID_MAX], arguments[512], expected[16] = "";
    test_store_queue(store, "lanes=only");
    for (size_t i = 0; i < 3; i++)
        send_join(store, "w", i + 1, visitors[i], ids[i]);
    assert_int_equal(apply(store, "1", ids[0], "w 1", "1 0 1 anna", NULL), 1);
    send_join(store, "w", 3, "carl", ids[3]); /* sent twice */
    snprintf(
        arguments, sizeof(arguments),
        "1 1000 0 %s w 1 1 0 1 anna 0 %s w 2 1 0 1 bert 0 %s w 3 1 0 1 carl 0 %s w 3 1 0 1 carl",
        ids[0], ids[1], ids[2], ids[3]);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_APPLY, &store->keys, arguments, NULL);
    for (size_t i = 0; i < tl_reply_count(reply); i++)
        snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%lld ",
                 (long long)tl_reply_integer(tl_reply_at(reply, i)));
    tl_reply_free(reply);
    assert_string_equal(expected, "0 1 1 2 ");
    joined_are(store, visitors, 3);
    uint64_t before = test_redis_fingerprint(store->redis);
    tl_reply_free(test_function(store->redis, TL_FN_APPLY, &store->keys, arguments, NULL));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

static void refused(struct test_store *store, const char *arguments, const char *why)
{
    char error[320] = "";
    uint64_t before = test_redis_fingerprint(store->redis);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_APPLY, &store->keys, arguments, error);
    if (reply != NULL || strstr(error, why) == NULL)
        fail_msg("%s: not refused with %s but %s", arguments, why, error);
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

static void one_call_leaves_no_entry_out(void **state)
{
    struct test_store *store = *state;
    char ids[3][TL_STREAM_ID_MAX], arguments[512];
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", ids[0]);
    send_join(store, "w", 2, "bert", ids[1]);
    send_join(store, "w", 3, "carl", ids[2]);
    /* the first, one in the middle, all but the last; and in another order */
    snprintf(arguments, sizeof(arguments), "1 1000 0 %s w 2 1 0 1 bert 0 %s w 3 1 0 1 carl", ids[1],
             ids[2]);
    refused(store, arguments, "ORDER");
    snprintf(arguments, sizeof(arguments), "1 1000 0 %s w 1 1 0 1 anna 0 %s w 3 1 0 1 carl", ids[0],
             ids[2]);
    refused(store, arguments, "ORDER");
    snprintf(arguments, sizeof(arguments), "1 1000 0 %s w 3 1 0 1 carl", ids[2]);
    refused(store, arguments, "ORDER");
    snprintf(arguments, sizeof(arguments),
             "1 1000 0 %s w 2 1 0 1 bert 0 %s w 1 1 0 1 anna 0 %s w 3 "
             "1 0 1 carl",
             ids[1], ids[0], ids[2]);
    refused(store, arguments, "ORDER");
}

static void one_call_is_refused_as_a_whole(void **state)
{
    struct test_store *store = *state;
    char ids[2][TL_STREAM_ID_MAX], arguments[512];
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", ids[0]);
    send_join(store, "w", 2, "bert", ids[1]);
    snprintf(arguments, sizeof(arguments), "2 1000 0 %s w 1 1 0 1 anna 0 %s w 2 1 0 1 bert", ids[0],
             ids[1]);
    refused(store, arguments, "STALE");
}

/* As many calls as there are numbers of events: a call takes what one batch may hold, not more. */
static void small_entries_share_a_call(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    test_store_queue(store, "lanes=only");
    for (uint64_t i = 0; i < 11; i++) {
        for (int k = 0; k < 100; k++) {
            char visitor[16];
            snprintf(visitor, sizeof(visitor), "v%d-%d", (int)i, k);
            test_join(store, visitor, 0);
        }
        test_send(store, "w", i + 1, NULL);
    }
    assert_int_equal(test_deliver(store), 11);
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(counts.applied, 11);
    assert_int_equal(counts.commands, 1100);
    assert_int_equal(test_state(store, "event"), 2);
    assert_int_equal(test_waiting_place(store, "v0-0"), 1);
    assert_int_equal(test_waiting_place(store, "v10-99"), 1100);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(test_event(&last, TL_EVENT_APPLIED, 0)->first_seq, 1001);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "1001+100");
    test_entry_free(&last);
    test_invariants(store->redis, &store->keys);
}

/* Before any function is loaded, and with something to set aside in the midst of what is applied.
 */
static void a_new_pipeline_may_meet_poison_anywhere(void **state)
{
    static const char *const visitors[] = {"anna", "bert", "carl"};
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    test_store_queue(store, "lanes=only");
    send_join(store, "w", 1, "anna", NULL);
    send_join(store, "w", 2, "bert", NULL);
    test_redis_ask(store->redis, "XADD %s * d nonsense", store->keys.names[TL_KEY_INGEST]);
    assert_int_equal(test_deliver(store), 1);
    send_join(store, "w", 3, "carl", NULL);
    tl_apply_free(&store->apply);
    store->apply = tl_apply_new(10000);
    assert_non_null(store->apply);
    if (!test_apply_pending(store, 1, &counts, &err))
        fail_msg("%s", err.text);
    assert_int_equal(counts.applied, 3);
    assert_int_equal(counts.poison, 1);
    joined_are(store, visitors, 3);
}

/* However small they are: as many as the function takes, and as many as a dispatcher reads. */
static void a_call_takes_no_more_entries_than_the_script(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    test_store_queue(store, "lanes=only");
    for (uint64_t i = 0; i < TL_APPLY_ENTRIES_MAX; i++) {
        char visitor[16];
        snprintf(visitor, sizeof(visitor), "v%d", (int)i);
        test_join(store, visitor, 0);
        test_send(store, "w", i + 1, NULL);
    }
    assert_int_equal(test_deliver(store), TL_APPLY_ENTRIES_MAX);
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(counts.applied, TL_APPLY_ENTRIES_MAX);
    assert_int_equal(test_state(store, "event"),
                     TL_APPLY_ENTRIES_MAX / TL_APPLY_CALL_ENTRIES_MAX + 1);
    assert_int_equal(test_waiting_place(store, "v255"), 256);
    test_invariants(store->redis, &store->keys);
}

/* The exceptions of the k-th APPLIED of an entry, as "index:outcome:place ...". */
static void applied_is(const struct test_entry *last, size_t k, uint64_t first_seq,
                       const char *expected)
{
    const struct tl_event *event = &last->entry.events[k];
    char text[128] = "";
    assert_int_equal(event->kind, TL_EVENT_APPLIED);
    assert_int_equal(event->first_seq, first_seq);
    for (size_t i = 0; i < event->n_exceptions; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%llu:%d:%llu",
                 i > 0 ? " " : "", (unsigned long long)event->exceptions[i].index,
                 (int)event->exceptions[i].outcome, (unsigned long long)event->exceptions[i].place);
    assert_string_equal(text, expected);
}

/* The joins enter the line together. Still each batch has its own results, and a command between
 * joins is done between them. */
static void joins_of_several_entries_keep_their_own_results(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    struct test_entry last;
    test_store_queue(store, "lanes=only capacity=1");
    test_join(store, "anna", 0);
    test_batch(store);
    assert_int_equal(test_admit(store, 1), 1);
    test_join(store, "bert", 0);
    test_join(store, "carl", 0);
    test_send(store, "x", 1, NULL);
    test_join(store, "dora", 0);
    test_join(store, "bert", 0); /* came with the entry before */
    test_join(store, "anna", 0); /* is active */
    test_send(store, "y", 1, NULL);
    test_command(store, TL_COMMAND_LEAVE, "carl", 3);
    test_join(store, "carl", 0); /* and comes again */
    test_join(store, "emil", 0);
    test_send(store, "z", 1, NULL);
    assert_int_equal(test_deliver(store), 3);
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(counts.applied, 3);
    test_entry_read(store, &last);
    applied_is(&last, 0, 2, "");
    applied_is(&last, 1, 4, "1:1:2 2:2:1");
    applied_is(&last, 2, 7, "");
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "2+3 7+2");
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, 0), "3+1");
    test_entry_free(&last);
    assert_int_equal(test_waiting_place(store, "carl"), 7);
    assert_int_equal(test_waiting_place(store, "emil"), 8);
    test_invariants(store->redis, &store->keys);
}

static int open_quietly(void **state)
{
    const struct tl_log_settings settings = {.level =
                                                 TL_LOG_FATAL}; /* poison is logged as an error */
    tl_log_init(&settings);
    return test_store_open(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_entry_is_applied_once, test_store_clean),
        cmocka_unit_test_setup(an_applied_entry_is_refused_while_a_newer_one_is_pending,
                               test_store_clean),
        cmocka_unit_test_setup(a_batch_sent_twice_is_recognised, test_store_clean),
        cmocka_unit_test_setup(an_older_entry_comes_first, test_store_clean),
        cmocka_unit_test_setup(an_outdated_fence_is_refused, test_store_clean),
        cmocka_unit_test_setup(without_a_queue_nothing_is_applied, test_store_clean),
        cmocka_unit_test_setup(at_the_memory_limit_nothing_is_applied_by_half, test_store_clean),
        cmocka_unit_test_setup(silent_workers_are_forgotten, test_store_clean),
        cmocka_unit_test_setup(a_damaged_record_of_a_worker_is_forgotten, test_store_clean),
        cmocka_unit_test_setup(a_payload_that_is_gone_is_set_aside, test_store_clean),
        cmocka_unit_test_setup(poison_does_not_stop_the_queue, test_store_clean),
        cmocka_unit_test_setup(poison_needs_the_fence_and_a_pending_entry, test_store_clean),
        cmocka_unit_test_setup(a_pipeline_survives_that_the_library_is_gone, test_store_clean),
        cmocka_unit_test_setup(entries_of_one_call_are_applied_in_order, test_store_clean),
        cmocka_unit_test_setup(one_call_leaves_no_entry_out, test_store_clean),
        cmocka_unit_test_setup(one_call_is_refused_as_a_whole, test_store_clean),
        cmocka_unit_test_setup(small_entries_share_a_call, test_store_clean),
        cmocka_unit_test_setup(a_call_takes_no_more_entries_than_the_script, test_store_clean),
        cmocka_unit_test_setup(joins_of_several_entries_keep_their_own_results, test_store_clean),
        cmocka_unit_test_setup(a_new_pipeline_may_meet_poison_anywhere, test_store_clean),
    };
    return cmocka_run_group_tests(tests, open_quietly, test_store_close);
}
