/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the events of many queues: what is written wakes the reader, which reads only that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/store/cluster.h"
#include "common/store/reply.h"
#include "common/store/streams.h"
#include "common/store/tail.h"
#include "redis_server.h"

#define MANY       100
#define ROUNDS     10
#define GIVE_UP_MS 300000

struct fixture {
    struct test_redis *server;
    struct tl_redis *redis;  /* of the test itself */
    struct tl_redis *reader; /* of the tail */
    struct tl_tail *tail;
    struct tl_keys keys[MANY];
    unsigned came[MANY];
    char order[64]; /* the first letters of what came */
};

static bool on_entry(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    struct fixture *fixture = context;
    size_t n = strlen(fixture->order);
    fixture->came[keys - fixture->keys]++;
    if (length > 0 && n < sizeof(fixture->order) - 1)
        fixture->order[n] = *(const char *)payload;
    return true;
}

static void follow(struct fixture *fixture, size_t i)
{
    const struct tl_tail_head head = {.id = "0-0"};
    assert_true(tl_tail_follow(fixture->tail, &fixture->keys[i], &head, NULL));
}

static int start(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->server = test_redis_start();
    fixture->redis = test_redis_connect(fixture->server);
    fixture->reader = test_redis_connect(fixture->server);
    fixture->tail = tl_tail_new(on_entry, fixture);
    assert_non_null(fixture->tail);
    for (size_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof(name), "q%zu", (i * 37) % MANY);
        tl_keys_init(&fixture->keys[i], "tl:", name);
        follow(fixture, i);
    }
    *state = fixture;
    return 0;
}

static int stop(void **state)
{
    struct fixture *fixture = *state;
    tl_tail_free(&fixture->tail);
    tl_redis_free(&fixture->reader);
    tl_redis_free(&fixture->redis);
    test_redis_stop(&fixture->server);
    free(fixture);
    return 0;
}

static void add(struct fixture *fixture, size_t i, const char *payload)
{
    (void)test_redis_ask(fixture->redis, "XADD %s * e %s", fixture->keys[i].names[TL_KEY_EVENTS],
                         payload);
}

/* Reads until so many entries came. Connections may break meanwhile. */
static void read_until(struct fixture *fixture, size_t wanted)
{
    int64_t until_ms = tl_clock_ms() + GIVE_UP_MS;
    while (wanted > 0) {
        struct tl_error err = {0};
        size_t entries = 0;
        assert_true(tl_clock_ms() < until_ms);
        if (!tl_redis_connect(fixture->reader, &err) ||
            !tl_tail_read_one(fixture->tail, fixture->reader, 100, &entries, &err))
            assert_int_equal(err.kind, TL_ERR_CONNECT);
        assert_true(entries <= wanted);
        wanted -= entries;
    }
}

/* Reads until no entry comes. */
static void read_all(struct fixture *fixture)
{
    size_t entries = 1;
    while (entries > 0)
        assert_true(tl_tail_read_one(fixture->tail, fixture->reader, 0, &entries, NULL));
}

/* Bytes that the server has received. */
static long long received(struct fixture *fixture)
{
    struct tl_reply *reply = test_redis_call(fixture->redis, "INFO stats");
    const char *found = strstr(tl_reply_string(reply, NULL), "total_net_input_bytes:");
    assert_non_null(found);
    long long bytes = strtoll(found + strlen("total_net_input_bytes:"), NULL, 10);
    tl_reply_free(reply);
    return bytes;
}

/* Bytes that it takes to notice one entry and to read it: the least of some rounds, as all streams
 * are read from time to time. */
static long long bytes_of_one(struct fixture *fixture)
{
    long long least = 1000000;
    add(fixture, 7, "x"); /* positions are as long as they will be */
    read_until(fixture, 1);
    for (int i = 0; i < ROUNDS; i++) {
        read_all(fixture);
        add(fixture, 7, "x");
        long long before = received(fixture);
        read_until(fixture, 1);
        read_all(fixture);
        long long bytes = received(fixture) - before;
        least = bytes < least ? bytes : least;
    }
    return least;
}

static void one_entry_costs_the_same_beside_many_queues(void **state)
{
    struct fixture *fixture = *state;
    long long beside_many = bytes_of_one(fixture);
    for (size_t i = TL_STREAMS_BLOCKING_MAX + 1; i < MANY; i++)
        tl_tail_forget(fixture->tail, &fixture->keys[i]);
    assert_int_equal(tl_tail_count(fixture->tail), TL_STREAMS_BLOCKING_MAX + 1);
    assert_int_equal(bytes_of_one(fixture), beside_many);
    for (size_t i = 0; i <= TL_STREAMS_BLOCKING_MAX; i++)
        if (i != 7)
            tl_tail_forget(fixture->tail, &fixture->keys[i]);
    assert_in_range(beside_many, 1, 2 * bytes_of_one(fixture)); /* one queue, two commands */
}

static void entries_of_all_queues_come_in_order(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < MANY; i++)
        add(fixture, i, "x");
    read_until(fixture, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(fixture->came[i], 1);
    memset(fixture->order, 0, sizeof(fixture->order));
    for (char letter[] = "a"; letter[0] <= 'z'; letter[0]++) {
        add(fixture, 3, letter);
        if (letter[0] % 3 == 0)
            read_all(fixture);
    }
    read_all(fixture);
    assert_string_equal(fixture->order, "abcdefghijklmnopqrstuvwxyz");
}

static void what_one_read_leaves_is_read_next(void **state)
{
    struct fixture *fixture = *state;
    read_all(fixture);
    for (int i = 0; i < 1100; i++)
        add(fixture, 5, "x");
    read_until(fixture, 1100);
    assert_int_equal(fixture->came[5], 1100);
}

static void a_store_that_was_emptied_is_read_again(void **state)
{
    struct fixture *fixture = *state;
    /* An old entry: with FLUSHALL in the same millisecond the new one would have the same ID. */
    (void)test_redis_ask(fixture->redis, "XADD %s 1-1 e x", fixture->keys[0].names[TL_KEY_EVENTS]);
    read_until(fixture, 1);
    tl_reply_free(test_redis_call(fixture->redis, "FLUSHALL"));
    for (size_t i = 0; i < MANY; i++)
        add(fixture, i, "x");
    read_until(fixture, MANY);
}

static void broken_connections_lose_nothing(void **state)
{
    struct fixture *fixture = *state;
    static const char *const broken[] = {"CLIENT KILL TYPE pubsub", "CLIENT KILL TYPE normal"};
    read_all(fixture);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(test_redis_number(fixture->redis, broken[i % 2]), 1);
        add(fixture, i, "x");
        read_until(fixture, 1);
        assert_int_equal(fixture->came[i], 1);
    }
}

static void a_server_that_does_not_remember_loses_nothing(void **state)
{
    struct fixture *fixture = *state;
    tl_reply_free(test_redis_call(fixture->redis, "CONFIG SET tracking-table-max-keys 1"));
    read_all(fixture);
    for (size_t i = 0; i < MANY; i++)
        add(fixture, i, "x");
    read_until(fixture, MANY);
}

static void few_queues_and_many_again(void **state)
{
    struct fixture *fixture = *state;
    read_all(fixture);
    for (size_t i = TL_STREAMS_BLOCKING_MAX; i < MANY; i++)
        tl_tail_forget(fixture->tail, &fixture->keys[i]);
    add(fixture, 0, "x");
    read_until(fixture, 1);
    add(fixture, 1, "x");
    for (size_t i = TL_STREAMS_BLOCKING_MAX; i < MANY; i++) {
        add(fixture, i, "x");
        follow(fixture, i);
    }
    read_until(fixture, 1 + MANY - TL_STREAMS_BLOCKING_MAX);
    for (size_t i = 1; i < MANY; i++)
        assert_int_equal(fixture->came[i], i == 1 || i >= TL_STREAMS_BLOCKING_MAX ? 1 : 0);
}

static void a_key_that_is_no_stream_stops_no_other_queue(void **state)
{
    struct fixture *fixture = *state;
    read_all(fixture);
    (void)test_redis_ask(fixture->redis, "APPEND %s x", fixture->keys[9].names[TL_KEY_EVENTS]);
    add(fixture, 8, "x");
    read_until(fixture, 1);
    while (tl_tail_follows(fixture->tail, &fixture->keys[9])) /* the read may have come before */
        assert_true(tl_tail_read_one(fixture->tail, fixture->reader, 100, NULL, NULL));
    add(fixture, 8, "x");
    read_until(fixture, 1);
    assert_int_equal(fixture->came[8], 2);
}

/* The id of the connection on which the server tells of writes. */
static long long listener_id(struct fixture *fixture)
{
    struct tl_reply *reply = test_redis_call(fixture->redis, "CLIENT LIST TYPE pubsub");
    const char *text = tl_reply_string(reply, NULL);
    assert_int_equal(strncmp(text, "id=", 3), 0);
    long long id = strtoll(text + 3, NULL, 10);
    tl_reply_free(reply);
    return id;
}

/* One stream is listened to, as at a node of a cluster. */
static struct tl_store *listen_to_one(struct fixture *fixture, struct tl_streams *streams)
{
    struct tl_store *store = tl_store_new(
        &(struct tl_redis_settings){.url = test_redis_url(fixture->server), .timeout_ms = 60000},
        NULL);
    assert_non_null(store);
    assert_true(tl_store_connect(store, NULL));
    assert_non_null(tl_streams_add(streams, fixture->keys[0].names[TL_KEY_EVENTS], NULL));
    tl_streams_wait(streams, store, 0);
    return store;
}

/* A turn that takes longer than TL_STREAMS_NODE_PING_MS leaves the answer unread. */
static void a_slow_turn_closes_no_listener(void **state)
{
    struct fixture *fixture = *state;
    static const char *const command[] = {"XREAD", NULL};
    struct tl_streams streams = {.command = command};
    struct tl_store *store = listen_to_one(fixture, &streams);
    const long long id = listener_id(fixture);
    for (int i = 0; i < 3; i++) {
        tl_reply_free(test_redis_call(fixture->redis, "CLIENT PAUSE 50 ALL")); /* no answer yet */
        streams.listeners[0].ping_ms = 0; /* it is time again */
        tl_streams_wait(&streams, store, 0);
        assert_int_equal(listener_id(fixture), id);
        (void)test_redis_number(fixture->redis, "DBSIZE"); /* by now the PING is answered */
    }
    tl_streams_free(&streams);
    tl_store_free(&store);
}

/* A connection breaks without a word: here another one, on which nobody answers, takes its place.
 */
static void a_listener_that_fell_silent_is_opened_again(void **state)
{
    struct fixture *fixture = *state;
    static const char *const command[] = {"XREAD", NULL};
    struct tl_streams streams = {.command = command};
    int silent[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, silent), 0);
    int first = dup(silent[0]), second = dup(silent[0]); /* the next two connections get these */
    close(first);
    close(second);
    struct tl_store *store = listen_to_one(fixture, &streams);
    const long long id = listener_id(fixture);
    struct tl_stream *stream = tl_streams_at(&streams, 0);
    stream->unread = false; /* it was read */
    assert_int_equal(dup2(silent[0], second), second);
    for (int i = 0; i < 2; i++) {
        streams.listeners[0].ping_ms = 0; /* it is time again */
        tl_streams_wait(&streams, store, 0);
        assert_int_equal(stream->unread, i == 1);
    }
    assert_int_not_equal(listener_id(fixture), id);
    close(silent[0]);
    close(silent[1]);
    tl_streams_free(&streams);
    tl_store_free(&store);
}

/* ---- in a cluster ---- */

/* Waits and reads until a stream has an entry, for less time than an idle one is left alone. */
static bool comes_soon(struct tl_streams *streams, struct tl_store *store)
{
    const int64_t until_ms = tl_clock_ms() + TL_STREAMS_NODE_SWEEP_MS / 2;
    size_t at = 0;
    while (tl_clock_ms() < until_ms) {
        assert_true(tl_store_connect(store, NULL));
        tl_streams_wait(streams, store, 10);
        for (size_t i = 0; i < tl_store_nodes(store); i++)
            if (tl_streams_read(streams, tl_store_node(store, i), 10, 0, NULL) &&
                tl_streams_next(streams, &at) != NULL)
                return true;
    }
    return false;
}

/* Its node does not tell what was written there before it was read there. */
static void a_stream_that_was_idle_is_read_at_its_new_node(void **state)
{
    static const char *const command[] = {"XREAD", NULL};
    static const char *const idle = "tl:{q}:events", *const other = "tl:{other}:events";
    struct test_redis *first = test_redis_start_node(), *second = test_redis_join_node(first);
    struct tl_redis *from = test_redis_connect(first), *to = test_redis_connect(second);
    struct tl_streams streams = {.command = command};
    char url[64];
    (void)state;
    test_redis_give_slot(from, to, tl_cluster_slot(other));
    test_redis_node_url(first, url);
    struct tl_store *store =
        tl_store_new(&(struct tl_redis_settings){.url = url, .timeout_ms = 60000}, NULL);
    assert_non_null(store);
    struct tl_stream *there = tl_streams_add(&streams, other, NULL);
    struct tl_stream *moves = tl_streams_add(&streams, idle, NULL);
    assert_non_null(there);
    assert_non_null(moves);
    snprintf(there->id, sizeof(there->id), "0-0");
    snprintf(moves->id, sizeof(moves->id), "0-0");
    (void)test_redis_ask(to, "XADD %s 1-1 e x", other);
    assert_true(comes_soon(&streams, store));
    snprintf(there->id, sizeof(there->id), "1-1");
    for (int64_t until_ms = tl_clock_ms() + 1000; tl_clock_ms() < until_ms;)
        tl_streams_wait(&streams, store, 10);
    assert_false(there->unread || moves->unread);

    struct tl_redis *before = tl_store_of_key(store, idle);
    test_redis_give_slot(from, to, tl_cluster_slot(idle));
    (void)test_redis_ask(to, "XADD %s 1-1 e x", idle);
    while (tl_store_of_key(store, idle) == before) { /* what asks for the queue itself learns it */
        tl_reply_free(tl_ask(before, NULL, "EXISTS", idle, NULL));
        assert_true(tl_store_connect(store, NULL));
    }
    assert_true(comes_soon(&streams, store));
    tl_streams_free(&streams);
    tl_store_free(&store);
    tl_redis_free(&from);
    tl_redis_free(&to);
    test_redis_stop(&first);
    test_redis_stop(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_entry_costs_the_same_beside_many_queues, start, stop),
        cmocka_unit_test_setup_teardown(entries_of_all_queues_come_in_order, start, stop),
        cmocka_unit_test_setup_teardown(what_one_read_leaves_is_read_next, start, stop),
        cmocka_unit_test_setup_teardown(a_store_that_was_emptied_is_read_again, start, stop),
        cmocka_unit_test_setup_teardown(broken_connections_lose_nothing, start, stop),
        cmocka_unit_test_setup_teardown(a_server_that_does_not_remember_loses_nothing, start, stop),
        cmocka_unit_test_setup_teardown(few_queues_and_many_again, start, stop),
        cmocka_unit_test_setup_teardown(a_key_that_is_no_stream_stops_no_other_queue, start, stop),
        cmocka_unit_test_setup_teardown(a_slow_turn_closes_no_listener, start, stop),
        cmocka_unit_test_setup_teardown(a_listener_that_fell_silent_is_opened_again, start, stop),
        cmocka_unit_test(a_stream_that_was_idle_is_read_at_its_new_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
