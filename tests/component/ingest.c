/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/records.h"
#include "common/store/reply.h"
#include "ingest.h"

/* ---- the store ---- */

static int open_with(void **state, struct test_redis *server)
{
    struct test_store *store = calloc(1, sizeof(*store));
    assert_non_null(store);
    store->server = server;
    store->redis = test_redis_connect(store->server);
    store->apply = tl_apply_new(10000);
    assert_non_null(store->apply);
    *state = store;
    return 0;
}

int test_store_open(void **state)
{
    return open_with(state, test_redis_start());
}

int test_store_open_kept(void **state)
{
    return open_with(state, test_redis_start_kept());
}

int test_store_open_node(void **state)
{
    return open_with(state, test_redis_start_node());
}

int test_store_close(void **state)
{
    struct test_store *store = *state;
    tl_apply_free(&store->apply);
    free(store->writer.bytes);
    tl_redis_free(&store->redis);
    test_redis_stop(&store->server);
    free(store);
    return 0;
}

int test_store_clean(void **state)
{
    struct test_store *store = *state;
    tl_batch_writer_reset(&store->writer);
    tl_reply_free(test_redis_call(store->redis, "FLUSHALL"));
    return 0;
}

void test_store_queue(struct test_store *store, const char *settings)
{
    test_queue(store->redis, settings, &store->keys);
    test_redis_ask(store->redis, "HSET %s fence 1", store->keys.names[TL_KEY_STATE]);
}

/* ---- batches ---- */

void test_send(struct test_store *store, const char *worker, uint64_t number, char *id)
{
    size_t length;
    const void *payload = tl_batch_finish(&store->writer, worker, number, &length);
    assert_non_null(payload);
    struct tl_args args = {0};
    tl_args_strs(&args, "XADD", store->keys.names[TL_KEY_INGEST], "*", "d", NULL);
    tl_args_bin(&args, payload, length);
    struct tl_error err = {0};
    struct tl_reply *reply = tl_redis_call(store->redis, &args, &err);
    tl_args_free(&args);
    if (reply == NULL)
        fail_msg("%s", err.text);
    if (id != NULL)
        snprintf(id, TL_STREAM_ID_MAX, "%s", tl_reply_string(reply, NULL));
    tl_reply_free(reply);
    tl_batch_writer_reset(&store->writer);
}

static struct tl_reply *read_ingest(struct test_store *store, const char *from)
{
    char words[256];
    snprintf(words, sizeof(words), "XREADGROUP GROUP %s %s COUNT %d STREAMS %s %s", TL_INGEST_GROUP,
             TL_INGEST_CONSUMER, TL_APPLY_ENTRIES_MAX, store->keys.names[TL_KEY_INGEST], from);
    return test_redis_call(store->redis, words);
}

size_t test_deliver(struct test_store *store)
{
    struct tl_reply *reply = read_ingest(store, ">");
    size_t n = tl_reply_count(tl_reply_at(tl_reply_at(reply, 0), 1));
    tl_reply_free(reply);
    return n;
}

const struct tl_held_queue *test_held(struct test_store *store, uint64_t fence)
{
    store->held =
        (struct tl_held_queue){.keys = store->keys, .redis = store->redis, .fence = fence};
    return &store->held;
}

bool test_apply_pending(struct test_store *store, uint64_t fence, struct tl_apply_counts *counts,
                        struct tl_error *err)
{
    struct tl_reply *reply = read_ingest(store, "0");
    bool ok = tl_apply_entries(store->apply, test_held(store, fence),
                               tl_reply_at(tl_reply_at(reply, 0), 1), counts, err);
    tl_reply_free(reply);
    return ok;
}

void test_batch(struct test_store *store)
{
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    test_send(store, "w", ++store->number, NULL);
    assert_int_equal(test_deliver(store), 1);
    if (!test_apply_pending(store, 1, &counts, &err))
        fail_msg("%s", err.text);
    assert_int_equal(counts.applied, 1);
}

void test_add(struct test_store *store, const struct tl_command *command)
{
    assert_true(tl_batch_add(&store->writer, command) >= 0);
}

void test_join(struct test_store *store, const char *visitor, unsigned lane)
{
    test_command(store, TL_COMMAND_JOIN, visitor, lane);
}

void test_command(struct test_store *store, enum tl_command_kind kind, const char *visitor,
                  tl_place place)
{
    test_add(store, &(struct tl_command){.kind = kind,
                                         .visitor = visitor,
                                         .visitor_length = strlen(visitor),
                                         .numbers = {place}});
}

void test_join_invited(struct test_store *store, const char *visitor, unsigned lane,
                       const char *invite)
{
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_JOIN,
                                         .visitor = visitor,
                                         .visitor_length = strlen(visitor),
                                         .numbers = {lane},
                                         .invite = invite,
                                         .invite_length = strlen(invite),
                                         .invite_until_ms = TEST_INVITE_UNTIL_MS});
}

void test_seen(struct test_store *store, uint64_t first_seq, uint64_t count)
{
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_SEEN, .numbers = {first_seq, count}});
}

void test_join_many(struct test_store *store, const char *name, size_t n, unsigned lane)
{
    for (size_t i = 1; i <= n; i++) {
        char visitor[TL_VISITOR_MAX + 1];
        snprintf(visitor, sizeof(visitor), "%s%zu", name, i);
        test_join(store, visitor, lane);
        if (store->writer.n == TL_BATCH_COMMANDS_MAX || i == n)
            test_batch(store);
    }
}

long long test_admit(struct test_store *store, unsigned most)
{
    char arguments[32];
    snprintf(arguments, sizeof(arguments), "%u 10000", most);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_ADMIT, &store->keys, arguments, NULL);
    long long admitted = tl_reply_integer(tl_reply_at(reply, 0));
    tl_reply_free(reply);
    return admitted;
}

/* ---- results ---- */

void test_entry_read(struct test_store *store, struct test_entry *last)
{
    char words[256];
    snprintf(words, sizeof(words), "XREVRANGE %s + - COUNT 1", store->keys.names[TL_KEY_EVENTS]);
    last->reply = test_redis_call(store->redis, words);
    size_t length;
    const struct tl_reply *fields = tl_reply_at(tl_reply_at(last->reply, 0), 1);
    const char *payload = tl_reply_string(tl_reply_at(fields, 1), &length);
    struct tl_error err = {0};
    if (!tl_events_decode(payload, length, &last->entry, &err))
        fail_msg("%s", err.text);
    assert_int_equal(last->entry.number, test_state(store, "event"));
    assert_int_equal(last->entry.generation, test_state(store, "generation"));
    assert_int_equal(last->entry.waiting, test_state(store, "waiting"));
    assert_int_equal(last->entry.active, test_state(store, "active"));
}

void test_entry_free(struct test_entry *last)
{
    tl_events_free(&last->entry);
    tl_reply_free(last->reply);
    last->reply = NULL;
}

const struct tl_event *test_event(const struct test_entry *last, enum tl_event_kind kind,
                                  unsigned reason)
{
    const struct tl_event *found = NULL;
    for (size_t i = 0; i < last->entry.n_events; i++) {
        const struct tl_event *event = &last->entry.events[i];
        if (event->kind != kind || (reason != 0 && event->reason != reason))
            continue;
        assert_null(found);
        found = event;
    }
    return found;
}

void test_runs_are(const struct tl_event *event, const char *text)
{
    char runs[512] = "";
    size_t used = 0;
    assert_non_null(event);
    for (size_t i = 0; i < event->places.n; i++)
        used += (size_t)snprintf(runs + used, sizeof(runs) - used, "%s%llu+%llu", i > 0 ? " " : "",
                                 (unsigned long long)event->places.runs[i].first,
                                 (unsigned long long)event->places.runs[i].count);
    assert_string_equal(runs, text);
}

void test_exceptions_are(struct test_store *store, const char *text)
{
    struct test_entry last;
    char list[512] = "";
    size_t used = 0;
    test_entry_read(store, &last);
    const struct tl_event *applied = test_event(&last, TL_EVENT_APPLIED, 0);
    assert_non_null(applied);
    for (size_t i = 0; i < applied->n_exceptions; i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%llu:%d:%llu",
                                 i > 0 ? " " : "", (unsigned long long)applied->exceptions[i].index,
                                 (int)applied->exceptions[i].outcome,
                                 (unsigned long long)applied->exceptions[i].place);
    assert_string_equal(list, text);
    test_entry_free(&last);
}

enum tl_draw_state test_hold_draw(struct test_store *store, struct tl_drawer *drawer,
                                  int64_t opens_at_ms, int64_t most_ms, struct tl_draw **draw)
{
    struct tl_error err = {0};
    enum tl_draw_state state;
    if (!tl_drawer_hold(drawer, test_held(store, 0), opens_at_ms, most_ms, draw, &state, &err))
        fail_msg("%s", err.text);
    return state;
}

long long test_state(struct test_store *store, const char *field)
{
    return test_redis_ask(store->redis, "HGET %s %s", store->keys.names[TL_KEY_STATE], field);
}

long long test_waiting_place(struct test_store *store, const char *visitor)
{
    return test_redis_ask(store->redis, "ZSCORE %s %s", store->keys.names[TL_KEY_WAITING], visitor);
}

long long test_deadline(struct test_store *store, const char *visitor)
{
    return test_redis_ask(store->redis, "ZSCORE %s %s", store->keys.names[TL_KEY_ACTIVE], visitor);
}

unsigned test_end_reason(struct test_store *store, const char *visitor)
{
    char words[256];
    struct tl_end_record end = {0};
    snprintf(words, sizeof(words), "ZSCORE %s %s", store->keys.names[TL_KEY_ENDED], visitor);
    struct tl_reply *score = test_redis_call(store->redis, words);
    bool ended = tl_record_end(tl_reply_string(score, NULL), &end);
    tl_reply_free(score);
    return ended ? (unsigned)end.reason : 0;
}
