/* SPDX-License-Identifier: Apache-2.0 */
/* The restore function where the store came back from an old copy of the present generation. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "ingest.h"

static uint64_t generation;

/* Calls it with these words; its cursor, or -1 where there is nothing (more) to do. */
__attribute__((format(printf, 2, 3))) static long long call(struct test_store *store,
                                                            const char *format, ...)
{
    char words[1024] = "1000 ", error[320] = "";
    va_list list;
    va_start(list, format);
    vsnprintf(words + 5, sizeof(words) - 5, format, list);
    va_end(list);
    struct tl_reply *reply = test_function(store->redis, TL_FN_RESTORE, &store->keys, words, error);
    assert_string_equal(error, "");
    long long cursor = tl_reply_signed(reply, TL_RESTORE_IS_NEXT) == 1
                           ? tl_reply_signed(reply, TL_RESTORE_CURSOR)
                           : -1;
    tl_reply_free(reply);
    return cursor;
}

/* The next step finds another store, whose last event is that old. */
static void come_back(struct test_store *store, long long age_ms)
{
    test_redis_ask(store->redis, "HSET %s store other archive 17592186045416",
                   store->keys.names[TL_KEY_STATE]);
    test_redis_ask(store->redis, "DEL tl:{q}:events");
    test_redis_ask(store->redis, "XADD tl:{q}:events %lld-1 d x",
                   test_redis_ms(store->redis) - age_ms);
    assert_int_equal(test_admit(store, 10), 0);
    test_redis_ask(store->redis, "HSET %s fence 1", store->keys.names[TL_KEY_STATE]);
    test_redis_ask(store->redis, "DEL tl:{q}:record");
}

/* Five who wait, and one who is called for each of the capacity. */
static void queue(struct test_store *store, const char *settings)
{
    static const char *const visitors[] = {"a", "b", "c", "d", "e", "f"};
    test_store_queue(store, settings);
    for (size_t i = 0; i < sizeof(visitors) / sizeof(visitors[0]); i++)
        test_join(store, visitors[i], 0);
    test_batch(store);
    (void)test_admit(store, 10);
    generation = (uint64_t)test_state(store, "generation");
}

static long long begin(struct test_store *store)
{
    return call(store, "begin %" PRIu64 " %lld %lld 10", generation,
                test_state(store, "found_event") + 9, test_state(store, "found_seq") + 9);
}

static bool is_back(struct test_store *store)
{
    return test_redis_ask(store->redis, "HEXISTS %s back", store->keys.names[TL_KEY_STATE]) == 1;
}

/* Field `back`. */
struct stretch {
    long long found, base, seq;
};

static struct stretch stretch(struct test_store *store)
{
    struct stretch is = {0};
    struct tl_reply *back = tl_ask(store->redis, &(struct tl_error){0}, "HGET",
                                   store->keys.names[TL_KEY_STATE], "back", NULL);
    const char *text = tl_reply_string(back, NULL);
    long long *const parts[] = {&is.found, &is.base, &is.seq};
    assert_non_null(text);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char *end = NULL;
        *parts[i] = strtoll(text, &end, 10);
        assert_true(end != text && *end == ':');
        text = end + 1;
    }
    tl_reply_free(back);
    return is;
}

static void what_happened_since_comes_back(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=2 lanes=vip,normal");
    const long long a = test_state(store, "seq") - 5, now = test_redis_ms(store->redis);
    come_back(store, 3600000);
    assert_true(is_back(store));
    test_join(store, "new", 0);
    test_join(store, "g", 0);
    test_batch(store);
    assert_int_equal(begin(store), 0);
    /* a completed; b goes on; c was called; d left; e left and came again; f moved; g came. */
    call(store,
         "rows %" PRIu64 " 0 20 a %lld -1 5 1 0 b %lld %lld %lld 1 0 c %lld %lld %lld 0 0 "
         "d %lld -2 0 0 0 f %lld 0 0 0 0 e %lld 0 0 0 0 g %lld 0 0 0 3 h %lld -2 0 0 0",
         generation, a, a + 1, now + 590000, now - 5, a + 2, now + 580000, now - 4, a + 3,
         (long long)tl_place_make(1, (uint64_t)a + 5), a + 6, a + 7, a + 8);
    assert_int_equal(test_deadline(store, "a"), -1);
    assert_int_equal(test_deadline(store, "b"), now + 590000);
    assert_int_equal(test_deadline(store, "c"), now + 580000);
    assert_int_equal(test_waiting_place(store, "d"), -1);
    assert_int_equal(test_waiting_place(store, "e"), a + 6);
    assert_int_equal(test_waiting_place(store, "f"), (long long)tl_place_make(1, (uint64_t)a + 5));
    assert_int_equal(test_waiting_place(store, "g"), a + 7);
    assert_true(test_waiting_place(store, "new") > a + 100);
    assert_int_equal(test_state(store, "waiting"), 4);
    assert_int_equal(test_state(store, "active"), 2);
    test_invariants(store->redis, &store->keys);
}

/* Who has left meanwhile stays away; who joined again gets the older place, and once only. */
static void what_happens_meanwhile_counts(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1");
    const long long a = test_state(store, "seq") - 5;
    come_back(store, 3600000);
    test_command(store, TL_COMMAND_LEAVE, "b", (tl_place)a + 1);
    test_join(store, "g", 0);
    test_join(store, "over", 0);
    test_batch(store);
    begin(store);
    call(store,
         "rows %" PRIu64 " 0 20 b %lld 0 0 0 0 g %lld 0 0 0 0 over %lld -1 5 1 0 c %lld 0 0 0 0",
         generation, a + 1, a + 7, a + 8, a + 2);
    assert_int_equal(test_waiting_place(store, "b"), -1);
    assert_int_equal(test_waiting_place(store, "g"), a + 7);
    assert_true(test_waiting_place(store, "over") > a + 100);
    assert_int_equal(test_waiting_place(store, "c"), a + 2);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(call(store, "rows %" PRIu64 " 0 20 c %lld -2 0 0 0", generation, a + 2), -1);
    assert_true(before == test_redis_fingerprint(store->redis));
    test_invariants(store->redis, &store->keys);
    /* Nobody is called, and no session ends, before it is done. */
    assert_int_equal(test_admit(store, 10), 0);
    assert_int_equal(call(store, "done %" PRIu64 " 2 1 0 0 0 0 2", generation), 1);
    assert_int_equal(test_state(store, "completed"), 2);
    test_invariants(store->redis, &store->keys);
}

static void expire(struct test_store *store)
{
    tl_reply_free(test_function(store->redis, TL_FN_EXPIRE, &store->keys, "100 1000 1000", NULL));
}

/* What the archive knows may be an end of a session, which is due here. */
static void no_session_ends_before(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1 claim_ttl=1s session_ttl=1s");
    come_back(store, 3600000);
    test_redis_ask(store->redis, "ZADD tl:{q}:active 1 a");
    test_redis_ask(store->redis, "HSET %s base_ms 1", store->keys.names[TL_KEY_STATE]);
    expire(store);
    assert_int_equal(test_deadline(store, "a"), 1);
    assert_int_equal(call(store, "none whole"), -1);
    expire(store);
    test_redis_pass_time(store->redis, 5);
    expire(store);
    assert_int_equal(test_deadline(store, "a"), -1);
}

/* A copy that lacks seconds, and a queue that is not archived, go on at once. */
static void not_every_copy_is_old(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1");
    come_back(store, 50000);
    assert_false(is_back(store));
    assert_int_equal(test_state(store, "recover_until"), -1);
    test_redis_ask(store->redis, "HDEL %s archive", store->keys.names[TL_KEY_STATE]);
    test_redis_ask(store->redis, "HSET %s store another", store->keys.names[TL_KEY_STATE]);
    test_redis_ask(store->redis, "DEL tl:{q}:events");
    test_redis_ask(store->redis, "XADD tl:{q}:events 1-1 d x");
    (void)test_admit(store, 10);
    assert_false(is_back(store));
}

/* The store lost its last second while they came back: the stretch stays. */
static void an_old_copy_is_lost_again(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1");
    come_back(store, 3600000);
    const long long seq = test_state(store, "found_seq");
    begin(store);
    call(store, "rows %" PRIu64 " 0 20", generation);
    come_back(store, 100000);
    const struct stretch back = stretch(store);
    assert_int_equal(back.seq, seq);
    assert_true(back.found < test_state(store, "found_event") &&
                back.base <= test_state(store, "event"));
}

/* The store was away while the places of another generation came back: that goes on. */
static void the_return_of_another_generation_goes_on(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1 recovery_window=2m");
    const long long lost = (long long)generation - 5, now = test_redis_ms(store->redis);
    test_redis_ask(store->redis, "HSET %s recover_since %lld recover_until %lld started 1",
                   store->keys.names[TL_KEY_STATE], now - 70000, now - 10000);
    test_redis_ask(store->redis,
                   "HSET %s lost_generation %lld lost_by 4 restore running:%lld:9:2:1:3",
                   store->keys.names[TL_KEY_STATE], lost, lost);
    come_back(store, 65000);
    assert_false(is_back(store));
    assert_int_equal(test_state(store, "lost_generation"), lost);
    assert_in_range(test_state(store, "recover_until"), now + 120000, now + 180000);
    assert_int_equal(call(store, "rows %lld 2 4 x 4 0 0 0 0", lost), 4);
    assert_int_equal(test_waiting_place(store, "x"), 4);
    /* Nor does it end where workers and tickets bring them back. */
    test_redis_ask(store->redis, "HDEL %s restore", store->keys.names[TL_KEY_STATE]);
    come_back(store, 65000);
    assert_false(is_back(store));
    assert_int_equal(test_state(store, "lost_generation"), lost);
}

/* A call of the archiver that has written nothing. */
static void archiver_calls(struct test_store *store)
{
    tl_reply_free(test_function(store->redis, TL_FN_ARCHIVE, &store->keys,
                                "1000 1000 100000 0-0 0 0 0 - 0 0", NULL));
}

static long long lasts_ms(struct test_store *store)
{
    return test_state(store, "recover_until") - test_state(store, "recover_since");
}

/* It lasts ten seconds, or the window where that is shorter. */
static void nobody_is_held_up_without_an_archiver(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=2 recovery_window=2m");
    come_back(store, 3600000);
    assert_int_equal(lasts_ms(store), 10000);
    assert_int_equal(test_admit(store, 10), 0);
    test_redis_ask(store->redis, "HINCRBY %s recover_until -10000",
                   store->keys.names[TL_KEY_STATE]);
    test_redis_pass_time(store->redis, 5);
    assert_int_equal(test_admit(store, 10), 0); /* the step that ends it */
    assert_int_equal(test_state(store, "recover_until"), 0);
    archiver_calls(store); /* too late */
    assert_int_equal(test_state(store, "recover_until"), 0);
    assert_int_equal(begin(store), -1);
}

/* Nobody has come yet. The first visitor need not wait for what is over. */
static void a_queue_without_visitors_is_not_held(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "capacity=1");
    generation = (uint64_t)test_state(store, "generation");
    come_back(store, 3600000);
    assert_true(is_back(store));
    assert_int_equal(call(store, "none whole"), -1);
    test_redis_pass_time(store->redis, 5);
    assert_int_equal(test_admit(store, 10), 0); /* the step that ends it */
    test_join(store, "a", 0);
    test_batch(store);
    assert_int_equal(test_admit(store, 10), 1);
}

static void a_short_window_stays_short(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1 recovery_window=3s");
    come_back(store, 3600000);
    assert_int_equal(lasts_ms(store), 3000);
    archiver_calls(store);
    assert_int_equal(lasts_ms(store), 3000);
}

/* It may take the window to compare, and an operator to ask, who may also say when it ends. */
static void an_archiver_is_waited_for(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1 recovery_window=2m");
    come_back(store, 3600000);
    archiver_calls(store);
    assert_int_equal(lasts_ms(store), 120000);
    archiver_calls(store);
    assert_int_equal(lasts_ms(store), 120000);
    come_back(store, 3600000); /* once more */
    assert_int_equal(lasts_ms(store), 10000);
    assert_int_equal(call(store, "ask me cli 100"), 0);
    assert_int_equal(lasts_ms(store), 120000);
    come_back(store, 3600000);
    tl_reply_free(
        test_function(store->redis, TL_FN_RECOVER, &store->keys, "1000 20000 me cli 100", NULL));
    archiver_calls(store);
    assert_in_range(lasts_ms(store), 20000, 100000);
}

/* A recovery that has ended brings nothing back, when the store comes back once more. */
static void an_ended_recovery_counts_no_more(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1");
    come_back(store, 3600000);
    const long long event = test_state(store, "event");
    test_redis_ask(store->redis, "HSET %s started 1 recover_until 1",
                   store->keys.names[TL_KEY_STATE]);
    assert_int_equal(test_admit(store, 10), 0);
    assert_int_equal(test_state(store, "recover_until"), 0);
    come_back(store, 61000);
    assert_true(is_back(store));
    assert_true(stretch(store).found > event);
    assert_int_equal(call(store, "none whole"), -1);
}

/* Who has left since the store came back stays away, when it comes back once more. */
static void ends_between_two_returns_count(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1");
    const long long b = test_state(store, "seq") - 4;
    come_back(store, 3600000);
    begin(store);
    test_command(store, TL_COMMAND_LEAVE, "b", (tl_place)b);
    test_batch(store);
    test_redis_pass_time(store->redis, 5);
    come_back(store, 61000);
    assert_int_equal(begin(store), 0);
    assert_int_equal(call(store, "rows %" PRIu64 " 0 20 b %lld 0 0 0 0", generation, b), 20);
    assert_int_equal(test_waiting_place(store, "b"), -1);
}

static long long told(struct test_store *store)
{
    return test_redis_ask(store->redis, "XLEN tl:{q}:record");
}

/* What the archive knows is not told to it again: neither that one was moved, nor any end. */
static void what_the_archive_knows_is_not_told(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1 lanes=vip,normal");
    const long long a = test_state(store, "seq") - 5;
    come_back(store, 3600000);
    begin(store);
    const long long before = told(store);
    call(store, "rows %" PRIu64 " 0 20 a %lld -1 5 1 0 b %lld -2 0 0 0 f %lld 0 0 0 0", generation,
         a, a + 1, (long long)tl_place_make(1, (uint64_t)a + 5));
    assert_int_equal(test_waiting_place(store, "f"), (long long)tl_place_make(1, (uint64_t)a + 5));
    assert_int_equal(told(store), before);
    call(store, "rows %" PRIu64 " 20 40 g %lld 0 0 0 0", generation, a + 8);
    assert_int_equal(told(store), before + 1); /* who comes back is told */
}

/* Sessions that were due while the store was away: the archive does not know that they ended. */
static void an_end_that_nobody_knew_is_told(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1");
    const long long a = test_state(store, "seq") - 5, joined = test_state(store, "joined");
    come_back(store, 3600000);
    begin(store);
    const long long before = told(store);
    call(store, "rows %" PRIu64 " 0 20 a %lld 1000 5 1 0 b %lld 1000 5 0 0 g %lld 1000 5 0 0",
         generation, a, a + 1, a + 8);
    assert_int_equal(told(store), before + 1); /* one entry, of three */
    assert_int_equal(test_deadline(store, "a"), -1);
    assert_int_equal(test_waiting_place(store, "b"), -1);
    assert_int_equal(test_state(store, "joined"), joined + 1);
    assert_int_equal(test_state(store, "expired"), 3);
    assert_int_equal(test_state(store, "unclaimed"), 2);
    assert_int_equal(test_state(store, "admitted"), 3);
    test_invariants(store->redis, &store->keys);
}

/* A ticket or a pass of the stretch comes before the archive, which counts what has ended in it. */
static void nobody_is_counted_twice(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=3 lanes=vip,normal");
    const long long a = test_state(store, "seq") - 5, joined = test_state(store, "joined"),
                    now = test_redis_ms(store->redis);
    come_back(store, 3600000);
    const struct {
        const char *visitor;
        uint64_t numbers[3];
    } come[] = {{"g", {(uint64_t)a + 6, generation}},
                {"h", {(uint64_t)a + 7, generation, (uint64_t)now + 60000}},
                {"i", {(uint64_t)a + 8, generation}}};
    for (size_t i = 0; i < sizeof(come) / sizeof(come[0]); i++) {
        struct tl_command command = {
            .kind = TL_COMMAND_RESTORE, .visitor = come[i].visitor, .visitor_length = 1};
        memcpy(command.numbers, come[i].numbers, sizeof(come[i].numbers));
        test_add(store, &command);
    }
    test_batch(store);
    tl_reply_free(
        test_function(store->redis, TL_FN_MOVE, &store->keys, "1000 f normal me cli 100", NULL));
    begin(store);
    call(store,
         "rows %" PRIu64 " 0 20 f %lld 0 0 0 0 g %lld -2 0 0 0 h %lld -1 5 1 0 i %lld 0 0 0 0",
         generation, a + 5, a + 6, a + 7, a + 9);
    call(store, "done %" PRIu64 " 1 2 0 0 0 0 1", generation);
    assert_int_equal(test_state(store, "joined"), joined + 4);
    assert_int_equal(test_state(store, "left"), 2);
    assert_int_equal(test_state(store, "admitted"), 4);
    assert_int_equal(test_waiting_place(store, "i"), a + 9);
    assert_int_equal(test_waiting_place(store, "f"), (long long)tl_place_make(1, (uint64_t)a + 5));
    test_invariants(store->redis, &store->keys);
}

/* An operator asks while the queue recovers. */
static void assert_refused(struct test_store *store, const char *why)
{
    char error[320] = "";
    test_redis_ask(store->redis, "HSET %s recover_until %lld", store->keys.names[TL_KEY_STATE],
                   test_redis_ms(store->redis) + 60000);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_RESTORE, &store->keys, "1000 ask me cli 100", error);
    tl_reply_free(reply);
    assert_non_null(strstr(error, why));
}

/* A line that was brought back is not brought again, whatever was looked for since. */
static void a_line_returns_once(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1");
    const long long lost = (long long)generation - 5;
    test_redis_ask(store->redis, "HSET %s recover_until %lld lost_generation %lld lost_by 4",
                   store->keys.names[TL_KEY_STATE], test_redis_ms(store->redis) + 60000, lost);
    assert_int_equal(call(store, "begin %lld 9 9 1", lost), 0);
    assert_int_equal(call(store, "done %lld 0 0 0 0 0 0 0", lost), 0);
    test_redis_ask(store->redis, "HSET %s recover_until 0", store->keys.names[TL_KEY_STATE]);
    come_back(store, 61000);
    assert_int_equal(call(store, "none whole"), -1);
    assert_refused(store, "already");
    assert_int_equal(call(store, "begin %lld 9 9 1", lost), -1);
}

/* An operator may ask for what an earlier generation lost, where nothing was missing in an old copy
 * since; not where the line has gone on as of that. */
static void an_old_copy_that_lacked_something_counts(void **state)
{
    struct test_store *store = *state;
    char error[320];
    queue(store, "capacity=1");
    come_back(store, 61000);
    assert_int_equal(call(store, "none recent"), -1);
    assert_refused(store, "old copy");
    come_back(store, 61000);
    assert_int_equal(call(store, "none whole"), -1);
    test_redis_ask(store->redis, "HSET %s recover_until %lld", store->keys.names[TL_KEY_STATE],
                   test_redis_ms(store->redis) + 60000);
    tl_reply_free(
        test_function(store->redis, TL_FN_RESTORE, &store->keys, "1000 ask me cli 100", error));
    assert_string_equal(error, "");
}

static long long exists(struct test_store *store, const char *key)
{
    return test_redis_ask(store->redis, "EXISTS tl:{q}:%s", key);
}

/* The copy is from before the store lost the queue as a whole: the recovery lasts until an operator
 * chooses the line that came then, for which this one goes. */
static void a_copy_from_before_another_generation_waits(void **state)
{
    struct test_store *store = *state;
    const char *key = store->keys.names[TL_KEY_STATE];
    queue(store, "capacity=1");
    const uint64_t later = generation + 100;
    come_back(store, 3600000);
    assert_int_equal(call(store, "newer 0"), -1);
    assert_refused(store, "cannot complete");
    test_redis_ask(store->redis, "HINCRBY %s recover_until -55000", key);
    archiver_calls(store); /* it may not reach PostgreSQL now */
    assert_in_range(lasts_ms(store), 120000, 180000);
    assert_int_equal(call(store, "newer %" PRIu64, later), -1);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(call(store, "newer %" PRIu64, later), -1);
    assert_true(before == test_redis_fingerprint(store->redis)); /* nobody is told twice */
    assert_int_equal(test_admit(store, 10), 0);
    assert_int_equal(test_state(store, "waiting"), 5);
    call(store, "ask me cli 100");
    assert_true((uint64_t)test_state(store, "generation") > later);
    assert_int_equal(test_state(store, "lost_generation"), (long long)later);
    assert_int_equal(test_state(store, "waiting") + test_state(store, "active"), 0);
    assert_int_equal(exists(store, "waiting") + exists(store, "active") + exists(store, "sessions"),
                     0);
    assert_int_equal(exists(store, "record") + exists(store, "events"), 0);
    assert_int_equal(exists(store, "config") + exists(store, "ingest"), 2);
    assert_int_equal(call(store, "begin %" PRIu64 " 9 9 1", generation), -1);
    assert_int_equal(call(store, "begin %" PRIu64 " 9 9 1", later), 0);
    assert_int_equal(call(store, "rows %" PRIu64 " 0 20 x 8 0 0 0 0", later), 20);
    assert_int_equal(test_waiting_place(store, "x"), 8);
    assert_int_equal(test_admit(store, 10), 0);
    test_invariants(store->redis, &store->keys);
}

/* An operator has ended the recovery, and goes on with the copy. */
static void an_operator_goes_on_with_the_copy(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1");
    come_back(store, 3600000);
    call(store, "newer %" PRIu64, generation + 100);
    test_redis_ask(store->redis, "HSET %s recover_until 1 started 1",
                   store->keys.names[TL_KEY_STATE]);
    call(store, "newer %" PRIu64, generation + 100);
    assert_int_equal(test_state(store, "recover_until"), 1);
    assert_int_equal(test_admit(store, 10), 0);
    assert_int_equal(test_state(store, "recover_until"), 0);
    uint64_t before = test_redis_fingerprint(store->redis);
    call(store, "newer %" PRIu64, generation + 100);
    assert_true(before == test_redis_fingerprint(store->redis));
    assert_refused(store, "old copy");
}

/* Of a part of the queue any place may be missing, and the totals are there. Nobody names another
 * generation, also where an operator gives it more time. */
static void what_a_part_lacks_comes_back(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1 recovery_window=0s");
    const long long seq = test_state(store, "seq"), joined = test_state(store, "joined");
    test_redis_ask(store->redis, "HSET %s store other archive 17592186045416",
                   store->keys.names[TL_KEY_STATE]);
    test_redis_ask(store->redis, "DEL tl:{q}:waiting");
    for (int i = 0; i < 2; i++)
        tl_reply_free(test_function(store->redis, TL_FN_RECOVER, &store->keys,
                                    "1000 60000 me cli 100", NULL));
    const struct stretch back = stretch(store);
    assert_int_equal(back.found, 0);
    assert_int_equal(back.seq, seq);
    assert_int_equal(test_state(store, "lost_generation"), (long long)generation);
    assert_int_equal(begin(store), 0);
    call(store, "rows %" PRIu64 " 0 20 f %lld 0 0 0 0 g %lld 0 0 0 0", generation, seq, seq + 1);
    assert_int_equal(test_waiting_place(store, "f"), seq);
    assert_int_equal(test_waiting_place(store, "g"), seq + 1);
    assert_int_equal(test_state(store, "restored"), 2);
    assert_int_equal(test_state(store, "joined"), joined + 2);
    test_invariants(store->redis, &store->keys);
}

/* A recovery that an operator opened, or whose lost generation nobody has named yet, goes on. */
static void any_recovery_goes_on(void **state)
{
    struct test_store *store = *state;
    queue(store, "capacity=1");
    const long long until = test_redis_ms(store->redis) + 3600000;
    test_redis_ask(store->redis, "HSET %s recover_until %lld lost_generation 0",
                   store->keys.names[TL_KEY_STATE], until);
    come_back(store, 65000);
    assert_false(is_back(store));
    assert_int_equal(test_state(store, "recover_until"), until);
    assert_int_equal(test_state(store, "lost_generation"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_happened_since_comes_back, test_store_clean),
        cmocka_unit_test_setup(what_happens_meanwhile_counts, test_store_clean),
        cmocka_unit_test_setup(no_session_ends_before, test_store_clean),
        cmocka_unit_test_setup(not_every_copy_is_old, test_store_clean),
        cmocka_unit_test_setup(an_old_copy_is_lost_again, test_store_clean),
        cmocka_unit_test_setup(the_return_of_another_generation_goes_on, test_store_clean),
        cmocka_unit_test_setup(nobody_is_held_up_without_an_archiver, test_store_clean),
        cmocka_unit_test_setup(a_queue_without_visitors_is_not_held, test_store_clean),
        cmocka_unit_test_setup(a_short_window_stays_short, test_store_clean),
        cmocka_unit_test_setup(an_archiver_is_waited_for, test_store_clean),
        cmocka_unit_test_setup(an_ended_recovery_counts_no_more, test_store_clean),
        cmocka_unit_test_setup(ends_between_two_returns_count, test_store_clean),
        cmocka_unit_test_setup(what_the_archive_knows_is_not_told, test_store_clean),
        cmocka_unit_test_setup(an_end_that_nobody_knew_is_told, test_store_clean),
        cmocka_unit_test_setup(nobody_is_counted_twice, test_store_clean),
        cmocka_unit_test_setup(a_line_returns_once, test_store_clean),
        cmocka_unit_test_setup(an_old_copy_that_lacked_something_counts, test_store_clean),
        cmocka_unit_test_setup(a_copy_from_before_another_generation_waits, test_store_clean),
        cmocka_unit_test_setup(an_operator_goes_on_with_the_copy, test_store_clean),
        cmocka_unit_test_setup(what_a_part_lacks_comes_back, test_store_clean),
        cmocka_unit_test_setup(any_recovery_goes_on, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
