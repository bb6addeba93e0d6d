/* SPDX-License-Identifier: Apache-2.0 */
/* What the ingest thread says to a real store, without the thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "redis_server.h"
#include "worker/feed/exchange.h"

struct fixture {
    struct test_redis *server;
    struct tl_redis *redis;
    struct tl_keys keys;
    struct tl_args args;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->server = test_redis_start();
    f->redis = test_redis_connect(f->server);
    test_queue(f->redis, "", &f->keys);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tl_args_free(&f->args);
    tl_redis_free(&f->redis);
    test_redis_stop(&f->server);
    free(f);
    return 0;
}

static void append(struct fixture *f, const struct tl_exchange *exchange)
{
    struct tl_error err = {0};
    if (!tl_exchange_append(exchange, f->redis, &f->args, "tl:", &err))
        fail_msg("%s", err.text);
}

/* Returns the kind of the store's refusal. */
static enum tl_error_kind receive(struct fixture *f, struct tl_exchange *exchange)
{
    struct tl_error refusal = {0}, err = {0};
    if (!tl_exchange_receive(exchange, f->redis, &refusal, &err))
        fail_msg("%s", err.text);
    return refusal.kind;
}

static struct tl_exchange batch(const char *queue)
{
    static char bytes[] = "payload";
    struct tl_exchange exchange = {
        .kind = TL_EXCHANGE_BATCH, .number = 7, .bytes = bytes, .length = strlen(bytes)};
    snprintf(exchange.queue, sizeof(exchange.queue), "%s", queue);
    return exchange;
}

/* Also at the memory limit, without an effect on a queue that does not exist. */
static void a_batch_is_taken_or_refused(void **state)
{
    struct fixture *f = *state;
    struct tl_exchange taken = batch("q"), refused = batch("x"), past_limit = batch("q");
    past_limit.past_limit = true;
    append(f, &taken);
    append(f, &refused);
    append(f, &past_limit);
    assert_int_equal(receive(f, &taken), TL_OK);
    assert_int_equal(receive(f, &refused), TL_ERR_NOQUEUE);
    assert_int_equal(receive(f, &past_limit), TL_OK);
    assert_string_equal(refused.entry, "");
    assert_string_not_equal(taken.entry, past_limit.entry);
    assert_int_equal(test_redis_ask(f->redis, "XLEN %s", f->keys.names[TL_KEY_INGEST]), 2);
    assert_int_equal(test_redis_number(f->redis, "EXISTS tl:{x}:ingest"), 0);
}

static void a_lost_connection_is_no_refusal(void **state)
{
    struct fixture *f = *state;
    struct tl_error refusal = {0}, err = {0};
    struct tl_exchange exchange = batch("q");
    test_redis_kill(f->server);
    assert_false(tl_exchange_append(&exchange, f->redis, &f->args, "tl:", &err) &&
                 tl_exchange_receive(&exchange, f->redis, &refusal, &err));
    assert_int_equal(refusal.kind, TL_OK);
    assert_int_not_equal(err.kind, TL_OK);
    assert_false(tl_exchange_probe(f->redis, &f->args, "tl:", &refusal, &err));
}

static void a_probe_tells_whether_the_store_takes_batches(void **state)
{
    struct fixture *f = *state;
    struct tl_error refusal = {0}, err = {0};
    assert_true(tl_exchange_probe(f->redis, &f->args, "tl:", &refusal, &err));
    assert_int_equal(refusal.kind, TL_OK);
    tl_reply_free(test_redis_call(f->redis, "CONFIG SET maxmemory 1"));
    assert_true(tl_exchange_probe(f->redis, &f->args, "tl:", &refusal, &err));
    assert_int_equal(refusal.kind, TL_ERR_OOM);
    assert_int_equal(test_redis_number(f->redis, "EXISTS tl:{none:none}:ingest"), 0);
}

static struct tl_batch_check check(struct fixture *f, const char *entry)
{
    struct tl_exchange exchange = {.kind = TL_EXCHANGE_CHECK,
                                   .queue = "q",
                                   .number = 7,
                                   .worker = "worker-1",
                                   .check = {.waits = true}};
    snprintf(exchange.entry, sizeof(exchange.entry), "%s", entry);
    append(f, &exchange);
    (void)receive(f, &exchange);
    return exchange.check;
}

static void a_batch_waits_while_it_is_there_and_not_applied(void **state)
{
    struct fixture *f = *state;
    const char *batches = f->keys.names[TL_KEY_BATCHES];
    struct tl_exchange sent = batch("q");
    assert_false(check(f, "1-1").waits);
    append(f, &sent);
    assert_int_equal(receive(f, &sent), TL_OK);
    assert_true(check(f, sent.entry).waits);
    test_redis_ask(f->redis, "HSET %s worker-1 6:1700000000000", batches);
    assert_true(check(f, sent.entry).waits);
    test_redis_ask(f->redis, "HSET %s worker-1 7:1700000000000", batches);
    test_redis_ask(f->redis, "HSET %s event 41", f->keys.names[TL_KEY_STATE]);
    assert_false(check(f, sent.entry).waits);
    assert_int_equal(check(f, sent.entry).event, 41);
    test_redis_ask(f->redis, "DEL %s", batches);
    assert_true(check(f, sent.entry).waits);
    test_redis_ask(f->redis, "DEL %s", f->keys.names[TL_KEY_INGEST]);
    assert_false(check(f, sent.entry).waits);
    assert_int_equal(check(f, sent.entry).event, 0);
    test_redis_ask(f->redis, "HSET %s worker-1 6", f->keys.names[TL_KEY_INGEST]);
    assert_true(check(f, sent.entry).waits); /* of the wrong type: the store could not say */
}

static struct tl_exchange look(struct fixture *f, const char *visitor, tl_place place)
{
    struct tl_exchange exchange = {.kind = TL_EXCHANGE_LOOKUP, .queue = "q", .place = place};
    snprintf(exchange.visitor, sizeof(exchange.visitor), "%s", visitor);
    append(f, &exchange);
    assert_int_equal(receive(f, &exchange), TL_OK);
    return exchange;
}

static void a_visitor_is_looked_up(void **state)
{
    struct fixture *f = *state;
    char(*names)[sizeof(f->keys.names[0])] = f->keys.names;
    test_redis_ask(f->redis, "ZADD %s 5 waits 100000000 far", names[TL_KEY_WAITING]);
    test_redis_ask(f->redis, "HSET %s active 6:1700000000000:1", names[TL_KEY_SESSIONS]);
    test_redis_ask(f->redis, "ZADD %s %lld ended", names[TL_KEY_ENDED],
                   1700000000000LL * 8 + TL_REASON_LEFT);
    assert_int_equal(look(f, "waits", 5).found, TL_LOOKUP_ALIVE);
    assert_int_equal(look(f, "waits", 4).found, TL_LOOKUP_NOWHERE);
    assert_int_equal(look(f, "far", 100000000).found, TL_LOOKUP_ALIVE);
    assert_int_equal(look(f, "active", 6).found, TL_LOOKUP_ALIVE);
    assert_int_equal(look(f, "active", 5).found, TL_LOOKUP_NOWHERE);
    assert_int_equal(look(f, "ended", 7).found, TL_LOOKUP_ENDED);
    assert_int_equal(look(f, "ended", 7).reason, TL_REASON_LEFT);
    assert_int_equal(look(f, "unknown", 8).found, TL_LOOKUP_NOWHERE);
}

static enum tl_error_kind promise(struct fixture *f, const char *queue,
                                  const struct tl_promised *promised)
{
    struct tl_exchange exchange = {.kind = TL_EXCHANGE_PROMISED, .promised = *promised};
    snprintf(exchange.queue, sizeof(exchange.queue), "%s", queue);
    append(f, &exchange);
    return receive(f, &exchange);
}

/* And nothing of the state, nor for a queue that does not exist. */
static void what_came_true_is_added_up(void **state)
{
    struct fixture *f = *state;
    static const char *const fields[] = {"eta_judged", "eta_early", "eta_late", "eta_error"};
    static const long long sums[] = {15, 3, 1, 420};
    const char *key = f->keys.names[TL_KEY_STATE];
    long long before = test_redis_ask(f->redis, "HLEN %s", key);
    assert_int_equal(promise(f, "q", &(struct tl_promised){10, 2, 1, 300}), TL_OK);
    assert_int_equal(promise(f, "q", &(struct tl_promised){5, 1, 0, 120}), TL_OK);
    assert_int_equal(promise(f, "x", &(struct tl_promised){5, 1, 0, 120}), TL_ERR_NOQUEUE);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_int_equal(test_redis_ask(f->redis, "HGET tl:{q}:promised %s", fields[i]), sums[i]);
    assert_int_equal(test_redis_ask(f->redis, "HLEN %s", key), before);
    assert_int_equal(test_redis_number(f->redis, "EXISTS tl:{x}:promised"), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_batch_is_taken_or_refused),
        CASE(a_lost_connection_is_no_refusal),
        CASE(a_probe_tells_whether_the_store_takes_batches),
        CASE(a_batch_waits_while_it_is_there_and_not_applied),
        CASE(a_visitor_is_looked_up),
        CASE(what_came_true_is_added_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
