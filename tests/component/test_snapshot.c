/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line in memory against the line in Redis: after a seeded random history of functions, a line
 * that followed the events, a line from a new snapshot and the sorted sets agree.
 */
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
#include "common/store/snapshot.h"
#include "common/store/tail.h"
#include "ingest.h"
#include "tests/unit/random.h"

#define STEPS 300
#define LANES 3

/* ---- following ---- */

struct follower {
    struct tl_line *line;
    struct tl_tail *tail;
    enum tl_line_result last; /* of applying the last entry */
    bool inconsistent;        /* the store is: the sizes may differ */
};

static bool on_entry(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    struct follower *follower = context;
    struct tl_event_entry entry;
    struct tl_error err = {0};
    (void)keys;
    if (!tl_events_decode(payload, length, &entry, &err))
        fail_msg("%s", err.text);
    follower->last = tl_line_apply(follower->line, &entry, 1);
    tl_events_free(&entry);
    assert_true(follower->inconsistent || follower->last != TL_LINE_DIFFERS);
    return follower->last != TL_LINE_GAP;
}

/* Starts from a new snapshot. */
static void follow(struct test_store *store, struct follower *follower)
{
    struct tl_tail_head head;
    struct tl_error err = {0};
    *follower = (struct follower){0};
    follower->line = tl_snapshot(store->redis, &store->keys, &head, &err);
    if (follower->line == NULL)
        fail_msg("%s", err.text);
    follower->tail = tl_tail_new(on_entry, follower);
    assert_true(tl_tail_follow(follower->tail, &store->keys, &head, &err));
}

static void unfollow(struct follower *follower)
{
    tl_tail_free(&follower->tail);
    tl_line_free(&follower->line);
}

/* Reads all events. */
static void catch_up(struct test_store *store, struct follower *follower)
{
    struct tl_error err = {0};
    size_t entries;
    do {
        if (!tl_tail_read_one(follower->tail, store->redis, 0, &entries, &err))
            fail_msg("%s", err.text);
    } while (entries > 0);
}

/* ---- the naive model: the sorted sets ---- */

static struct tl_reply *read_set(struct test_store *store, enum tl_key key)
{
    char words[256];
    snprintf(words, sizeof(words), "ZRANGE %s 0 -1 WITHSCORES", store->keys.names[key]);
    return test_redis_call(store->redis, words);
}

static tl_place active_place(struct test_store *store, const char *visitor)
{
    char words[320];
    snprintf(words, sizeof(words), "HGET %s %s", store->keys.names[TL_KEY_SESSIONS], visitor);
    struct tl_reply *session = test_redis_call(store->redis, words);
    tl_place place = strtoull(tl_reply_string(session, NULL), NULL, 10);
    assert_int_not_equal(place, 0);
    tl_reply_free(session);
    return place;
}

/* Which event the line holds last shows in how it takes the entries around that event. */
static void compare_event(struct test_store *store, struct tl_line *line)
{
    struct tl_event_entry entry = {.generation = line->generation};
    entry.number = (uint64_t)test_state(store, "event");
    assert_int_equal(tl_line_apply(line, &entry, 0), TL_LINE_OLD);
    entry.number += 2;
    assert_int_equal(tl_line_apply(line, &entry, 0), TL_LINE_GAP);
}

static void compare(struct test_store *store, struct tl_line *line)
{
    struct tl_reply *waiting = read_set(store, TL_KEY_WAITING);
    struct tl_reply *active = read_set(store, TL_KEY_ACTIVE);
    assert_int_equal(tl_line_waiting(line), tl_reply_count(waiting) / 2);
    assert_int_equal(tl_line_active(line), tl_reply_count(active) / 2);
    compare_event(store, line);
    assert_int_equal(line->generation, test_state(store, "generation"));
    for (size_t i = 0; i < tl_reply_count(waiting); i += 2) {
        tl_place place = (tl_place)tl_reply_integer(tl_reply_at(waiting, i + 1));
        struct tl_line_view view = tl_line_look(line, place);
        assert_int_equal(view.status, TL_LINE_WAITING);
        assert_int_equal(view.ahead, i / 2);
    }
    for (size_t i = 0; i < tl_reply_count(active); i += 2) {
        const char *visitor = tl_reply_string(tl_reply_at(active, i), NULL);
        struct tl_line_view view = tl_line_look(line, active_place(store, visitor));
        assert_int_equal(view.status, TL_LINE_ACTIVE);
        assert_int_equal(view.deadline_ms, tl_reply_integer(tl_reply_at(active, i + 1)));
    }
    tl_reply_free(waiting);
    tl_reply_free(active);
}

static void compare_with_snapshot(struct test_store *store)
{
    struct tl_tail_head head;
    struct tl_error err = {0};
    struct tl_line *line = tl_snapshot(store->redis, &store->keys, &head, &err);
    if (line == NULL) {
        fail_msg("%s", err.text);
        return;
    }
    compare(store, line);
    tl_line_free(&line);
}

/* ---- the history ---- */

struct history {
    uint64_t random;
    unsigned visitors; /* created so far */
};

/* A random member of a sorted set and its place; false if it is empty. */
static bool pick(struct test_store *store, struct history *history, enum tl_key key,
                 char visitor[TL_VISITOR_MAX + 1], tl_place *place)
{
    char words[256];
    long long n = test_redis_ask(store->redis, "ZCARD %s", store->keys.names[key]);
    if (n == 0)
        return false;
    uint64_t rank = random_below(&history->random, (uint64_t)n);
    snprintf(words, sizeof(words), "ZRANGE %s %" PRIu64 " %" PRIu64 " WITHSCORES",
             store->keys.names[key], rank, rank);
    struct tl_reply *reply = test_redis_call(store->redis, words);
    snprintf(visitor, TL_VISITOR_MAX + 1, "%s", tl_reply_string(tl_reply_at(reply, 0), NULL));
    *place = key == TL_KEY_ACTIVE ? active_place(store, visitor)
                                  : (tl_place)tl_reply_integer(tl_reply_at(reply, 1));
    tl_reply_free(reply);
    return true;
}

/* A batch of random commands and length; now and then one without effect. */
static void random_batch(struct test_store *store, struct history *history)
{
    static const enum tl_command_kind kinds[] = {TL_COMMAND_LEAVE, TL_COMMAND_COMPLETE,
                                                 TL_COMMAND_RENEW};
    uint64_t n = 1 + random_below(&history->random, 20);
    for (uint64_t i = 0; i < n; i++) {
        char visitor[TL_VISITOR_MAX + 1];
        tl_place place;
        unsigned lane = (unsigned)random_below(&history->random, LANES);
        uint64_t choice = random_below(&history->random, 10);
        enum tl_key key = choice % 2 == 0 ? TL_KEY_WAITING : TL_KEY_ACTIVE;
        if (choice < 6) {
            snprintf(visitor, sizeof(visitor), "v%u", history->visitors++);
            test_join(store, visitor, lane);
        } else if (pick(store, history, key, visitor, &place)) {
            uint64_t kind = random_below(&history->random, 4);
            if (kind == 3)
                test_join(store, visitor, lane);
            else
                test_command(store, kinds[kind], visitor, place);
        }
    }
    test_batch(store);
}

/* Makes up to n sessions overdue and ends them. */
static void random_expiry(struct test_store *store, struct history *history, unsigned n)
{
    char visitor[TL_VISITOR_MAX + 1];
    tl_place place;
    for (unsigned i = 0; i < n && pick(store, history, TL_KEY_ACTIVE, visitor, &place); i++)
        test_redis_ask(store->redis, "ZADD %s XX 1 %s", store->keys.names[TL_KEY_ACTIVE], visitor);
    tl_reply_free(test_function(store->redis, TL_FN_EXPIRE, &store->keys, "1000 10000", NULL));
}

/* Drops a waiting visitor as absent; a bucket lasts for days here. */
static void random_absence(struct test_store *store, struct history *history)
{
    char visitor[TL_VISITOR_MAX + 1], arguments[64];
    tl_place place;
    if (!pick(store, history, TL_KEY_WAITING, visitor, &place))
        return;
    struct tl_reply *reply = test_function(store->redis, TL_FN_PRESENCE, &store->keys, "", NULL);
    snprintf(arguments, sizeof(arguments), "%lld 10000 %" PRIu64,
             (long long)tl_reply_integer(tl_reply_at(reply, 0)), place);
    tl_reply_free(reply);
    tl_reply_free(test_function(store->redis, TL_FN_ABSENT, &store->keys, arguments, NULL));
}

static void random_step(struct test_store *store, struct history *history)
{
    switch (random_below(&history->random, 8)) {
    case 0:
        test_admit(store, (unsigned)(1 + random_below(&history->random, 30)));
        break;
    case 1:
        random_expiry(store, history, (unsigned)random_below(&history->random, 5));
        break;
    case 2:
        random_absence(store, history);
        break;
    default:
        random_batch(store, history);
    }
}

static void a_random_history_is_followed_exactly(void **state)
{
    struct test_store *store = *state;
    struct history history = {.random = random_seed("a_random_history_is_followed_exactly")};
    struct follower follower;
    test_store_queue(store, "lanes=a,b,c capacity=40 waiting_ttl=7d session_sliding=true");
    follow(store, &follower);
    for (int step = 0; step < STEPS; step++) {
        random_step(store, &history);
        if (random_below(&history.random, 4) != 0)
            continue;
        catch_up(store, &follower);
        assert_int_equal(follower.last, TL_LINE_APPLIED);
        compare(store, follower.line);
        if (random_below(&history.random, 4) == 0)
            compare_with_snapshot(store);
        test_invariants(store->redis, &store->keys);
    }
    catch_up(store, &follower);
    compare(store, follower.line);
    compare_with_snapshot(store);
    unfollow(&follower);
}

static void a_snapshot_taken_during_changes_catches_up(void **state)
{
    struct test_store *store = *state;
    struct history history = {.random = random_seed("a_snapshot_taken_during_changes_catches_up")};
    struct tl_error err = {0};
    test_store_queue(store, "lanes=a,b,c capacity=3000 waiting_ttl=7d session_sliding=true");
    for (unsigned lane = 0; lane < LANES; lane++) {
        char name[8];
        snprintf(name, sizeof(name), "l%u-", lane);
        test_join_many(store, name, 20000, lane);
    }
    assert_int_equal(test_admit(store, 2500), 2500);
    struct follower follower = {0};
    struct tl_snapshot *snapshot = tl_snapshot_begin(store->redis, &store->keys, &err);
    assert_non_null(snapshot);
    unsigned pages = 0;
    for (bool done = false; !done; pages++) {
        random_batch(store, &history);
        test_admit(store, (unsigned)random_below(&history.random, 400));
        random_expiry(store, &history, 20);
        random_absence(store, &history);
        if (!tl_snapshot_step(snapshot, store->redis, &done, &err))
            fail_msg("%s", err.text);
    }
    assert_true(pages >= 5);
    random_batch(store, &history);
    struct tl_tail_head head;
    follower.line = tl_snapshot_finish(&snapshot, &head);
    assert_null(snapshot);
    follower.tail = tl_tail_new(on_entry, &follower);
    assert_true(tl_tail_follow(follower.tail, &store->keys, &head, &err));
    catch_up(store, &follower);
    assert_int_equal(follower.last, TL_LINE_APPLIED);
    compare(store, follower.line);
    unfollow(&follower);
}

/* ---- pages ---- */

static long long calls(struct test_store *store, const char *command)
{
    char name[64];
    snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
    struct tl_reply *info = test_redis_call(store->redis, "INFO commandstats");
    const char *at = strstr(tl_reply_string(info, NULL), name);
    long long n = at != NULL ? strtoll(at + strlen(name), NULL, 10) : 0;
    tl_reply_free(info);
    return n;
}

static void a_line_without_gaps_is_counted_and_not_read(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only waiting_ttl=7d");
    test_join_many(store, "v", 40000, 0);
    long long read = calls(store, "zrange");
    long long counted = calls(store, "zcount");
    compare_with_snapshot(store); /* reads both sorted sets itself */
    assert_true(calls(store, "zrange") - read <= 2 + 3);
    assert_in_range(calls(store, "zcount") - counted, 36000 / 128, 400);
}

static void remove_places(struct test_store *store, unsigned lane, uint64_t first, uint64_t count)
{
    tl_place place = tl_place_make(lane, first);
    test_redis_ask(store->redis, "ZREMRANGEBYSCORE %s %" PRIu64 " %" PRIu64,
                   store->keys.names[TL_KEY_WAITING], place, place + count - 1);
}

/* Single holes, holes as long as blocks and pages and at each of their borders, stretches with few
 * visitors left, and the end of a lane. */
static void holes_of_all_kinds_are_seen(void **state)
{
    struct test_store *store = *state;
    uint64_t random = random_seed("holes_of_all_kinds_are_seen");
    test_store_queue(store, "lanes=a,b waiting_ttl=7d");
    test_join_many(store, "v", 40000, 0);
    test_join_many(store, "w", 20000, 1);
    for (int round = 0; round < 8; round++) {
        uint64_t first = 1 + random_below(&random, 38000);
        remove_places(store, 0, first, 1); /* few enough gaps that counting goes on */
        remove_places(store, 1, 40001 + random_below(&random, 20000), 1);
        if (round % 4 == 1)
            remove_places(store, 0, 4001 + random_below(&random, 50) * 128, 128);
        if (round % 4 == 2)
            remove_places(store, 0, first, random_below(&random, 9000));
        if (round % 4 == 3)
            for (uint64_t i = 0; i < 600; i++)
                remove_places(store, 0, first + i * 3, 1 + random_below(&random, 3));
        compare_with_snapshot(store);
    }
}

static void a_score_that_is_not_a_place_is_refused(void **state)
{
    static const char *const scores[] = {"6000.5", "-3", "0", "1e300", "inf", "9007199254740992"};
    struct test_store *store = *state;
    struct tl_tail_head head;
    test_store_queue(store, "lanes=only waiting_ttl=7d");
    test_join_many(store, "v", 9000, 0);
    remove_places(store, 0, 6000, 2); /* the block of the first score is read out */
    for (size_t i = 0; i < sizeof(scores) / sizeof(scores[0]); i++) {
        struct tl_error err = {0};
        test_redis_ask(store->redis, "ZADD %s %s odd", store->keys.names[TL_KEY_WAITING],
                       scores[i]);
        struct tl_line *line = tl_snapshot(store->redis, &store->keys, &head, &err);
        if (strtod(scores[i], NULL) < 1) { /* below all places: never requested */
            assert_non_null(line);
            tl_line_free(&line);
            continue;
        }
        assert_null(line);
        assert_int_equal(err.kind, TL_ERR_PROTOCOL);
        assert_true(tl_redis_connect(store->redis, &err)); /* it can go on either way */
        test_redis_ask(store->redis, "ZREM %s odd", store->keys.names[TL_KEY_WAITING]);
        compare_with_snapshot(store);
    }
}

/* ---- gaps ---- */

static void a_trimmed_stream_is_a_gap(void **state)
{
    struct test_store *store = *state;
    struct follower follower;
    test_store_queue(store, "lanes=only");
    follow(store, &follower);
    for (int i = 0; i < 5; i++)
        test_join_many(store, i % 2 == 0 ? "a" : "b", 2, 0);
    test_redis_ask(store->redis, "XTRIM %s MAXLEN 4", store->keys.names[TL_KEY_EVENTS]);
    catch_up(store, &follower);
    assert_int_equal(follower.last, TL_LINE_GAP);
    assert_int_equal(tl_line_waiting(follower.line), 0); /* the entry was not applied */
    unfollow(&follower);
    follow(store, &follower);
    compare(store, follower.line);
    test_join_many(store, "c", 2, 0);
    catch_up(store, &follower);
    assert_int_equal(follower.last, TL_LINE_APPLIED);
    compare(store, follower.line);
    unfollow(&follower);
}

static void a_stream_trimmed_up_to_our_position_is_no_gap(void **state)
{
    struct test_store *store = *state;
    struct follower follower;
    test_store_queue(store, "lanes=only");
    test_join_many(store, "a", 2, 0);
    follow(store, &follower);
    test_redis_ask(store->redis, "XTRIM %s MAXLEN 0", store->keys.names[TL_KEY_EVENTS]);
    compare_with_snapshot(store); /* an empty stream has a head as well */
    test_join_many(store, "b", 2, 0);
    catch_up(store, &follower);
    assert_int_equal(follower.last, TL_LINE_APPLIED);
    compare(store, follower.line);
    unfollow(&follower);
}

static void a_line_with_other_sizes_than_the_store_is_noticed(void **state)
{
    struct test_store *store = *state;
    struct follower follower;
    test_store_queue(store, "lanes=only");
    test_join_many(store, "a", 5, 0);
    follow(store, &follower);
    follower.inconsistent = true;
    test_redis_ask(store->redis, "ZREM %s a3", store->keys.names[TL_KEY_WAITING]);
    test_redis_ask(store->redis, "HINCRBY %s waiting -1", store->keys.names[TL_KEY_STATE]);
    test_join_many(store, "b", 1, 0);
    catch_up(store, &follower);
    assert_int_equal(follower.last, TL_LINE_DIFFERS);
    unfollow(&follower);
    follow(store, &follower);
    test_join_many(store, "c", 1, 0);
    catch_up(store, &follower);
    assert_int_equal(follower.last, TL_LINE_APPLIED);
    unfollow(&follower);
}

static void a_new_incarnation_is_a_gap(void **state)
{
    struct test_store *store = *state;
    struct follower follower;
    struct tl_tail_head before, head;
    test_store_queue(store, "lanes=only");
    test_join_many(store, "a", 3, 0);
    follow(store, &follower);
    assert_true(tl_tail_head(store->redis, &store->keys, &before, NULL));
    test_redis_ask(store->redis, "HSET %s store another", store->keys.names[TL_KEY_STATE]);
    (void)test_admit(store, 1);
    catch_up(store, &follower);
    assert_int_equal(follower.last, TL_LINE_GAP);
    assert_true(tl_tail_head(store->redis, &store->keys, &head, NULL));
    assert_true(head.base_seq > before.base_seq);
    unfollow(&follower);
}

static void a_store_that_came_back_empty_is_a_gap(void **state)
{
    struct test_store *store = *state;
    struct follower follower;
    struct tl_error err = {0};
    struct tl_tail_head head;
    test_store_queue(store, "lanes=only");
    test_join_many(store, "a", 3, 0);
    follow(store, &follower);
    tl_reply_free(test_redis_call(store->redis, "FLUSHALL"));
    assert_null(tl_snapshot(store->redis, &store->keys, &head, &err));
    assert_int_equal(err.kind, TL_ERR_NOQUEUE);
    test_store_queue(store, "lanes=only");
    for (int i = 0; i < 2; i++) /* until the number of the next event would fit */
        test_join_many(store, i == 0 ? "b" : "c", 1, 0);
    catch_up(store, &follower);
    assert_int_equal(follower.last, TL_LINE_GAP);
    assert_int_equal(tl_line_waiting(follower.line), 3);
    unfollow(&follower);
}

static void a_stopped_queue_does_not_stop_the_tail(void **state)
{
    struct test_store *store = *state;
    struct follower follower;
    struct tl_error err = {0};
    size_t entries;
    test_store_queue(store, "lanes=only");
    follow(store, &follower);
    assert_int_equal(tl_tail_count(follower.tail), 1);
    test_join_many(store, "a", 1, 0);
    test_redis_ask(store->redis, "XTRIM %s MAXLEN 0", store->keys.names[TL_KEY_EVENTS]);
    test_join_many(store, "b", 1, 0);
    assert_true(tl_tail_read_one(follower.tail, store->redis, 0, &entries, &err));
    assert_int_equal(follower.last, TL_LINE_GAP);
    test_join_many(store, "c", 1, 0);
    assert_true(tl_tail_read_one(follower.tail, store->redis, 0, &entries, &err));
    assert_int_equal(entries, 0); /* stopped until the next follow */
    tl_tail_forget(follower.tail, &store->keys);
    assert_int_equal(tl_tail_count(follower.tail), 0);
    assert_true(tl_tail_read_one(follower.tail, store->redis, 10000, &entries, &err)); /* at once */
    unfollow(&follower);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_random_history_is_followed_exactly, test_store_clean),
        cmocka_unit_test_setup(a_snapshot_taken_during_changes_catches_up, test_store_clean),
        cmocka_unit_test_setup(a_line_without_gaps_is_counted_and_not_read, test_store_clean),
        cmocka_unit_test_setup(holes_of_all_kinds_are_seen, test_store_clean),
        cmocka_unit_test_setup(a_score_that_is_not_a_place_is_refused, test_store_clean),
        cmocka_unit_test_setup(a_trimmed_stream_is_a_gap, test_store_clean),
        cmocka_unit_test_setup(a_stream_trimmed_up_to_our_position_is_no_gap, test_store_clean),
        cmocka_unit_test_setup(a_line_with_other_sizes_than_the_store_is_noticed, test_store_clean),
        cmocka_unit_test_setup(a_new_incarnation_is_a_gap, test_store_clean),
        cmocka_unit_test_setup(a_store_that_came_back_empty_is_a_gap, test_store_clean),
        cmocka_unit_test_setup(a_stopped_queue_does_not_stop_the_tail, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
