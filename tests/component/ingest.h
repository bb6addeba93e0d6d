/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeding the apply function in tests: a batch goes through the real writer, the stream, the real
 * decoder and the function, and its event back through the real decoder. One redis-server serves
 * all tests of a program; each test begins with an empty one.
 */
#ifndef TL_TEST_INGEST_H
#define TL_TEST_INGEST_H

#include "admitter/draw.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/wire/batch.h"
#include "common/wire/events.h"
#include "dispatcher/apply.h"
#include "redis_server.h"

struct test_store {
    struct test_redis *server;
    struct tl_redis *redis;
    struct tl_keys keys;           /* of queue "q", after test_store_queue */
    struct tl_batch_writer writer; /* what test_batch sends */
    struct tl_apply *apply;
    uint64_t number;           /* of the last batch sent by test_batch */
    struct tl_held_queue held; /* of test_held */
};

/* For cmocka: group setup and teardown, and the setup of each test (empties the store). A kept one
 * is still there after a restart; a node is a cluster of its own. */
int test_store_open(void **state);
int test_store_open_kept(void **state);
int test_store_open_node(void **state);
int test_store_close(void **state);
int test_store_clean(void **state);

/* Makes queue "q" with these settings ("capacity=3 session_ttl=5s") and gives it the fence 1. */
void test_store_queue(struct test_store *store, const char *settings);

/* XADDs the batch to the ingest stream and resets the writer; id (TL_STREAM_ID_MAX bytes, may be
 * NULL) gets the entry's id. */
void test_send(struct test_store *store, const char *worker, uint64_t number, char *id);
/* Reads new entries as the dispatcher's consumer, so that they are pending. Returns how many. */
size_t test_deliver(struct test_store *store);
/* Queue "q" as a role holds it, with this fence; valid until the next call. */
const struct tl_held_queue *test_held(struct test_store *store, uint64_t fence);
/* Applies all pending entries with this fence, as a dispatcher does. Adds to counts. */
bool test_apply_pending(struct test_store *store, uint64_t fence, struct tl_apply_counts *counts,
                        struct tl_error *err);
/* Sends what the writer holds as worker "w", delivers and applies it. It must be applied. */
void test_batch(struct test_store *store);

/* Adds a command to the writer. */
void test_add(struct test_store *store, const struct tl_command *command);
void test_join(struct test_store *store, const char *visitor, unsigned lane);
void test_command(struct test_store *store, enum tl_command_kind kind, const char *visitor,
                  tl_place place);
/* The invite's end is TEST_INVITE_UNTIL_MS: in 2100. */
#define TEST_INVITE_UNTIL_MS UINT64_C(4102444800000)
void test_join_invited(struct test_store *store, const char *visitor, unsigned lane,
                       const char *invite);
void test_seen(struct test_store *store, uint64_t first_seq, uint64_t count);

/* Joins visitors NAME1, NAME2, ... (n of them) in full batches. */
void test_join_many(struct test_store *store, const char *name, size_t n, unsigned lane);
/* Calls the admit function for at most `most`; returns how many were admitted. */
long long test_admit(struct test_store *store, unsigned most);
/* Holds the draw of this opening for a while: tl_drawer_hold, which must not fail. */
enum tl_draw_state test_hold_draw(struct test_store *store, struct tl_drawer *drawer,
                                  int64_t opens_at_ms, int64_t most_ms, struct tl_draw **draw);

/* The last entry of the events stream, decoded. */
struct test_entry {
    struct tl_event_entry entry;
    struct tl_reply *reply; /* holds the bytes */
};
void test_entry_read(struct test_store *store, struct test_entry *last);
void test_entry_free(struct test_entry *last);
/* Its only event of this kind (of this reason, unless 0), or NULL if it has none. */
const struct tl_event *test_event(const struct test_entry *last, enum tl_event_kind kind,
                                  unsigned reason);
/* Fails unless the event's runs are exactly those in the text: "1+3 7+1" (first + count). */
void test_runs_are(const struct tl_event *event, const char *text);
/* Fails unless the exceptions of the last APPLIED are those in the text: "index:outcome:place ..."
 */
void test_exceptions_are(struct test_store *store, const char *text);

/* Counter in the state of queue "q", -1 if it is not there. */
long long test_state(struct test_store *store, const char *field);
/* Place of a waiting visitor, deadline of an active one; -1 if it is not. */
long long test_waiting_place(struct test_store *store, const char *visitor);
long long test_deadline(struct test_store *store, const char *visitor);
/* Reason noted for a visitor that has ended, 0 if none is. */
unsigned test_end_reason(struct test_store *store, const char *visitor);

#endif
