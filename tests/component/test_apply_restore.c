/* SPDX-License-Identifier: Apache-2.0 */
/* The apply function: places of a generation that the store has lost come back. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "ingest.h"

#define FIRST 1000 /* the seqs of the lost generation lie below those of the present one */

/* A queue that was created again, in recovery. Returns the lost generation. */
static uint64_t lost_queue(struct test_store *store, const char *settings)
{
    test_store_queue(store, settings);
    const char *key = store->keys.names[TL_KEY_STATE];
    long long now = test_redis_ms(store->redis);
    long long window =
        test_redis_ask(store->redis, "HGET %s recovery_window", store->keys.names[TL_KEY_CONFIG]);
    uint64_t lost = (uint64_t)test_state(store, "generation") - 5;
    test_redis_ask(store->redis, "HSET %s seq %d recover_since %lld recover_until %lld", key, FIRST,
                   now, now + window);
    test_redis_ask(store->redis, "HSET %s lost_generation %" PRIu64 " lost_by 1", key, lost);
    return lost;
}

/* The time of the store, in ms. */
static uint64_t store_ms(struct test_store *store)
{
    struct tl_reply *reply = test_redis_call(store->redis, "TIME");
    uint64_t ms = (uint64_t)tl_reply_integer(tl_reply_at(reply, 0)) * 1000;
    tl_reply_free(reply);
    return ms;
}

/* With what a pass says of a session, and a ticket of the front. */
static void restore_with(struct test_store *store, const char *visitor, tl_place place,
                         uint64_t generation, uint64_t deadline, uint64_t front, uint64_t event)
{
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_RESTORE,
                                         .visitor = visitor,
                                         .visitor_length = strlen(visitor),
                                         .numbers = {place, generation, deadline, front, event}});
}

static void restore(struct test_store *store, const char *visitor, tl_place place,
                    uint64_t generation)
{
    restore_with(store, visitor, place, generation, 0, 0, 0);
}

static void remember(struct test_store *store, uint64_t generation, uint64_t event, uint64_t size)
{
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_LOST,
                                         .numbers = {generation, event, 0, size}});
}

static void remember_called(struct test_store *store, uint64_t generation, uint64_t event,
                            tl_place place, uint64_t deadline)
{
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_CALLED,
                                         .numbers = {generation, event, place, deadline}});
}

/* Ends the window, and lets the admitter end the recovery. */
static void end_recovery(struct test_store *store)
{
    test_redis_ask(store->redis, "HSET %s recover_until 1", store->keys.names[TL_KEY_STATE]);
    for (int i = 0; i < 10 && test_state(store, "recover_until") > 0; i++)
        assert_int_equal(test_admit(store, 100), 0);
    assert_int_equal(test_state(store, "recover_until"), 0);
}

static void places_come_back_in_order_and_newcomers_stand_behind(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "capacity=1 lanes=vip,normal");
    test_join(store, "new", 0);
    restore(store, "cleo", 30, lost);
    restore(store, "anna", 10, lost);
    restore(store, "vip", tl_place_make(1, 5), lost);
    test_batch(store);
    restore(store, "ben", 20, lost);
    restore(store, "anna", 10, lost); /* a repeat changes nothing */
    test_batch(store);
    test_exceptions_are(store, "");
    assert_int_equal(test_waiting_place(store, "anna"), 10);
    assert_int_equal(test_waiting_place(store, "ben"), 20);
    assert_int_equal(test_waiting_place(store, "cleo"), 30);
    assert_int_equal(test_waiting_place(store, "new"), FIRST + 1);
    assert_int_equal(test_state(store, "restored"), 4);
    assert_int_equal(test_state(store, "joined"), 5);
    test_invariants(store->redis, &store->keys);

    assert_int_equal(test_admit(store, 10), 0); /* nobody while the queue recovers */
    end_recovery(store);
    assert_int_equal(test_admit(store, 10), 1);
    assert_true(test_deadline(store, "anna") > 0);
    test_invariants(store->redis, &store->keys);
}

static void readers_learn_of_a_place_that_came_back(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    uint64_t lost = lost_queue(store, "");
    restore(store, "a", 11, lost);
    restore(store, "b", 10, lost);
    restore(store, "c", 20, lost);
    test_batch(store);
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "10+2 20+1");
    test_entry_free(&last);
}

static void another_generation_gets_nothing(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "");
    restore(store, "older", 10, lost - 1);
    restore(store, "present", 11, (uint64_t)test_state(store, "generation"));
    restore(store, "younger", 12, (uint64_t)test_state(store, "generation") + 1);
    test_batch(store);
    test_exceptions_are(store, "0:3:10 1:3:11 2:3:12");
    assert_int_equal(test_state(store, "waiting"), 0);
    assert_int_equal(test_state(store, "restored"), -1);
}

static void a_place_up_to_the_front_is_used_up(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "lanes=vip,normal");
    remember(store, lost, 77, 3);
    remember_called(store, lost, 77, 20, 0);
    restore(store, "used", 20, lost);
    restore(store, "first", 21, lost);
    restore(store, "other-lane", tl_place_make(1, 20), lost);
    test_batch(store);
    test_exceptions_are(store, "2:3:20");
    assert_int_equal(test_state(store, "waiting"), 2);

    restore_with(store, "late", 40, lost, 0, 30, 0); /* a ticket knows of a later front */
    restore(store, "between", 30, lost);
    test_batch(store);
    test_exceptions_are(store, "1:3:30");
    assert_int_equal(test_waiting_place(store, "first"), 21); /* until the end of the window */
    end_recovery(store);
    assert_int_equal(test_waiting_place(store, "first"), -1);
    assert_int_equal(test_end_reason(store, "first"), TL_REASON_EXPIRED);
    assert_int_equal(test_waiting_place(store, "late"), 40);
    assert_int_equal(test_waiting_place(store, "other-lane"), (long long)tl_place_make(1, 20));
    test_invariants(store->redis, &store->keys);
}

static void sessions_come_back_with_the_time_that_was_left(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "capacity=2 session_ttl=60s");
    uint64_t now = store_ms(store);
    remember(store, lost, 77, 3);
    remember_called(store, lost, 77, 20, 0);
    remember_called(store, lost, 77, 15, now + 30000);
    remember_called(store, lost, 77, 16, now + 20000);
    remember_called(store, lost, 77, 17, now - 10000);
    restore(store, "by-ticket", 15, lost);
    restore_with(store, "by-pass", 16, lost, now + 20000, 0, 60);
    restore_with(store, "over", 17, lost, 0, 0, 0);
    restore_with(store, "completed", 18, lost, now + 50000, 0, 60); /* its session had ended */
    restore_with(store, "younger", 19, lost, now + 50000, 0, 78);   /* than all memories */
    test_batch(store);
    test_exceptions_are(store, "7:3:17 8:3:18 9:3:19"); /* two slots only */
    assert_int_equal(test_deadline(store, "by-ticket"), (long long)now + 30000);
    assert_int_equal(test_deadline(store, "by-pass"), (long long)now + 20000);
    assert_int_equal(test_state(store, "active"), 2);
    assert_int_equal(test_state(store, "admitted"), 2);
    test_invariants(store->redis, &store->keys);

    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 3); /* APPLIED, and ADMITTED for each deadline */
    test_entry_free(&last);
    test_redis_ask(store->redis, "HSET %s capacity 3", store->keys.names[TL_KEY_CONFIG]);
    restore_with(store, "younger", 19, lost, now + 50000, 0, 78);
    restore_with(store, "younger", 19, lost, now + 50000, 0, 78); /* a repeat */
    test_batch(store);
    test_exceptions_are(store, "1:2:19");
    assert_int_equal(test_state(store, "active"), 3);
    test_invariants(store->redis, &store->keys);
}

static void a_session_lasts_no_longer_than_any_can(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "session_ttl=5s claim_ttl=1s");
    uint64_t now = store_ms(store);
    restore_with(store, "anna", 15, lost, now + 3600000, 0, 1);
    test_batch(store);
    assert_in_range(test_deadline(store, "anna"), now, now + 7000);
}

/* Without a worker that remembers anything, what a pass says is believed up to the capacity. */
static void passes_alone_never_exceed_the_capacity(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "capacity=2");
    uint64_t now = store_ms(store);
    for (unsigned i = 1; i <= 5; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", i);
        restore_with(store, visitor, i, lost, now + 60000, i, 10 + i);
    }
    test_batch(store);
    test_exceptions_are(store, "2:3:3 3:3:4 4:3:5");
    assert_int_equal(test_state(store, "active"), 2);
}

static void the_worker_that_knows_more_is_believed(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "capacity=5");
    uint64_t now = store_ms(store);
    remember(store, lost, 50, 2);
    remember_called(store, lost, 50, 3, now + 60000);
    remember(store, lost, 60, 2); /* place 3 had completed by then */
    remember_called(store, lost, 60, 4, 0);
    remember_called(store, lost, 60, 2, now + 60000);
    remember(store, lost, 50, 2); /* again, from a worker that lags behind */
    remember_called(store, lost, 50, 3, now + 60000);
    restore(store, "two", 2, lost);
    restore(store, "three", 3, lost);
    test_batch(store);
    test_exceptions_are(store, "8:3:3");
    assert_true(test_deadline(store, "two") > 0);
}

static void who_ended_does_not_come_back_twice(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "");
    restore(store, "anna", 10, lost);
    test_batch(store);
    test_command(store, TL_COMMAND_LEAVE, "anna", 10);
    restore(store, "anna", 10, lost);
    test_batch(store);
    test_exceptions_are(store, "1:3:10");
    assert_int_equal(test_state(store, "waiting"), 0);
    assert_int_equal(test_end_reason(store, "anna"), TL_REASON_LEFT);
    test_invariants(store->redis, &store->keys);
}

static void the_older_place_wins(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    uint64_t lost = lost_queue(store, "");
    test_join(store, "anna", 0);
    test_batch(store);
    restore(store, "anna", 10, lost);
    test_batch(store);
    test_exceptions_are(store, "");
    assert_int_equal(test_waiting_place(store, "anna"), 10);
    assert_int_equal(test_state(store, "waiting"), 1);
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "10+1");
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, TL_REASON_LEFT), "1001+1");
    test_entry_free(&last);
    test_invariants(store->redis, &store->keys);

    restore(store, "anna", 12, lost); /* a younger ticket of the same visitor */
    test_join(store, "anna", 0);
    test_batch(store);
    test_exceptions_are(store, "0:1:10 1:1:10");
    test_invariants(store->redis, &store->keys);
}

static void a_place_has_one_holder(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "");
    restore(store, "anna", 10, lost);
    restore(store, "mallory", 10, lost);
    test_batch(store);
    test_exceptions_are(store, "1:3:10");
    assert_int_equal(test_state(store, "waiting"), 1);
}

/* There was no worker yet to whom they could have come. */
static void the_window_begins_with_the_first_batch(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "capacity=1 recovery_window=60s");
    test_redis_ask(store->redis, "HSET %s recover_until 1 lost_generation 0",
                   store->keys.names[TL_KEY_STATE]);
    assert_int_equal(test_admit(store, 1), 0);
    assert_int_equal(test_state(store, "recover_until"), 1);
    restore(store, "anna", 10, lost);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "anna"), 10);
    assert_int_equal(test_state(store, "lost_generation"), lost);
    assert_true(test_state(store, "recover_until") > (long long)store_ms(store));
}

/* A worker that remembers nothing names its own generation. */
static void the_window_begins_with_a_worker_that_remembers_nothing(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "capacity=1 recovery_window=60s");
    test_redis_ask(store->redis, "HSET %s recover_until 1", store->keys.names[TL_KEY_STATE]);
    remember(store, (uint64_t)test_state(store, "generation"), 0, 0);
    test_batch(store);
    assert_int_equal(test_state(store, "lost_generation"), lost);
    assert_true(test_state(store, "started") > 0);
    assert_true(test_state(store, "recover_until") > (long long)store_ms(store));
    end_recovery(store);
}

static bool newest_event_has_config(struct test_store *store)
{
    struct tl_reply *reply =
        test_eval(store->redis,
                  "local entry = redis.call('XREVRANGE', KEYS[7], '+', '-', 'COUNT', 1)[1] "
                  "return string.find(entry[2][2], string.char(0x91, 7), 1, true)",
                  &store->keys, NULL);
    bool has = tl_reply_type(reply) == TL_REPLY_INTEGER;
    tl_reply_free(reply);
    return has;
}

/* It is named late, by a worker that remembers it. Readers are told once. */
static void a_memory_may_name_the_lost_generation(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "capacity=1 recovery_window=60s");
    test_redis_ask(store->redis, "HSET %s recover_until 1 lost_generation 0",
                   store->keys.names[TL_KEY_STATE]);
    remember(store, lost + 5, 0, 0); /* the present one */
    remember(store, lost, 4, 1);
    test_batch(store);
    test_exceptions_are(store, "0:3:0");
    assert_int_equal(test_state(store, "lost_generation"), lost);
    assert_true(test_state(store, "recover_until") > (long long)store_ms(store));
    assert_true(newest_event_has_config(store));
    remember(store, lost, 5, 1);
    remember(store, lost - 1, 6, 1);
    test_batch(store);
    test_exceptions_are(store, "1:3:0");
    assert_int_equal(test_state(store, "lost_generation"), lost);
    assert_false(newest_event_has_config(store));
}

static void after_the_window_tickets_come_too_late(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "");
    restore(store, "anna", 10, lost);
    test_batch(store);
    end_recovery(store);
    restore(store, "late", 9, lost);
    restore(store, "anna", 10, lost);
    test_batch(store);
    test_exceptions_are(store, "0:3:9");
    assert_int_equal(test_waiting_place(store, "anna"), 10);
}

/* All workers are gone: a ticket names the lost generation. */
static void a_ticket_may_name_the_lost_generation(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "");
    test_redis_ask(store->redis, "HSET %s seq %d", store->keys.names[TL_KEY_STATE], FIRST);
    uint64_t present = (uint64_t)test_state(store, "generation");
    restore(store, "anna", 10, present - 7);
    restore(store, "other", 11, present - 8);
    restore(store, "future", 12, present + 1);
    test_batch(store);
    test_exceptions_are(store, "1:3:11 2:3:12");
    assert_true(test_state(store, "recover_until") > 0);

    remember(store, present - 6, 4, 1); /* a worker knows better */
    restore(store, "ben", 13, present - 6);
    test_batch(store);
    test_exceptions_are(store, "");
    assert_int_equal(test_state(store, "lost_generation"), present - 6);
}

/* An old tab names a generation that was lost before the last one. */
static void a_later_generation_replaces_the_name(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "");
    test_redis_ask(store->redis, "HSET %s seq %d", store->keys.names[TL_KEY_STATE], FIRST);
    uint64_t present = (uint64_t)test_state(store, "generation");
    restore(store, "old-tab", 5, present - 9);
    test_batch(store);
    assert_int_equal(test_state(store, "lost_generation"), present - 9);
    remember(store, present - 8, 4, 1); /* a worker that was away for long */
    remember_called(store, present - 8, 4, 10, store_ms(store) + 60000);
    restore(store, "anna", 10, present - 7);
    restore(store, "ben", 11, present - 7);
    restore(store, "another-old-tab", 6, present - 9);
    test_batch(store);
    test_exceptions_are(store, "4:3:6");
    assert_int_equal(test_state(store, "lost_generation"), present - 7);
    assert_int_equal(test_waiting_place(store, "anna"), 10);
    assert_int_equal(test_waiting_place(store, "ben"), 11);
    assert_int_equal(test_state(store, "lost_size"), 0);

    remember(store, present - 8, 5, 1);
    restore(store, "cleo", 12, present - 7);
    test_batch(store);
    test_exceptions_are(store, "0:3:0");
    assert_int_equal(test_state(store, "lost_generation"), present - 7);
    test_invariants(store->redis, &store->keys);
}

static void no_ticket_names_one_later(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "recovery_window=10s");
    uint64_t present = (uint64_t)test_state(store, "generation");
    test_join(store, "first", 0);
    test_batch(store);
    test_redis_ask(store->redis, "HSET %s started %llu", store->keys.names[TL_KEY_STATE],
                   (unsigned long long)store_ms(store) - 11000);
    restore(store, "anna", 10, present - 7);
    test_batch(store);
    test_exceptions_are(store, "0:3:10");
}

static void without_a_window_nothing_comes_back(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "recovery_window=0s");
    uint64_t present = (uint64_t)test_state(store, "generation");
    remember(store, present - 5, 4, 1);
    restore(store, "anna", 10, present - 5);
    test_batch(store);
    test_exceptions_are(store, "0:3:0 1:3:10");
}

static void an_operator_ends_the_recovery_and_opens_it_again(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    uint64_t lost = lost_queue(store, "capacity=1");
    restore(store, "anna", 10, lost);
    test_batch(store);
    assert_true(tl_recovery_end_in(store->redis, &store->keys, 0, &test_actor, &err));
    assert_int_equal(test_admit(store, 10), 0); /* ends the recovery */
    assert_int_equal(test_admit(store, 10), 1);
    assert_true(tl_recovery_end_in(store->redis, &store->keys, 60000, &test_actor, &err));
    restore(store, "ben", 20, lost);
    test_batch(store);
    test_exceptions_are(store, "");
    assert_int_equal(test_waiting_place(store, "ben"), 20);
}

static void an_operator_rules_a_recovery_out(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    test_store_queue(store, "capacity=1");
    uint64_t present = (uint64_t)test_state(store, "generation");
    assert_true(tl_recovery_end_in(store->redis, &store->keys, 0, &test_actor, &err));
    remember(store, present - 5, 4, 1);
    restore(store, "anna", 10, present - 5);
    test_batch(store);
    test_exceptions_are(store, "0:3:0 1:3:10");
    assert_int_equal(test_state(store, "recover_until"), 0);
}

static void it_ends_early_when_all_are_back(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "capacity=1");
    remember(store, lost, 77, 2);
    restore(store, "anna", 10, lost);
    test_batch(store);
    test_redis_ask(store->redis, "HSET %s recover_since 1", store->keys.names[TL_KEY_STATE]);
    assert_int_equal(test_admit(store, 10), 0);
    assert_true(test_state(store, "recover_until") > 0);
    restore(store, "ben", 11, lost);
    test_batch(store);
    assert_int_equal(test_admit(store, 10), 0); /* ends the recovery */
    assert_int_equal(test_admit(store, 10), 1);
}

/* Created by a program that knew the queue: nobody is admitted before a worker came. */
static void a_queue_that_is_known_is_created_in_recovery(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    tl_keys_init(&store->keys, "tl:", "q");
    assert_true(tl_queue_bring_back(TEST_SITE(store->redis), "tl:", "q", &settings, &test_actor,
                                    NULL, &err));
    test_redis_ask(store->redis, "HSET %s fence 1", store->keys.names[TL_KEY_STATE]);
    assert_true(test_state(store, "recover_until") > 0);
    test_redis_ask(store->redis, "HSET %s recover_until 1", store->keys.names[TL_KEY_STATE]);
    assert_int_equal(test_admit(store, 10), 0);
    assert_int_equal(test_state(store, "recover_until"), 1); /* there was no worker yet */
    test_join(store, "new", 0);
    test_batch(store);
    assert_in_range(test_state(store, "recover_until"), store_ms(store) + 50000,
                    store_ms(store) + 61000);
    assert_int_equal(test_admit(store, 10), 0);
}

/* A program that was just started has created the queue, and knows nothing. */
static void an_admitter_that_remembers_another_generation_admits_nobody(void **state)
{
    struct test_store *store = *state;
    char arguments[64];
    test_store_queue(store, "capacity=1");
    uint64_t present = (uint64_t)test_state(store, "generation");
    test_join(store, "new", 0);
    test_batch(store);
    snprintf(arguments, sizeof(arguments), "10 10000 %llu", (unsigned long long)present - 5);
    for (int i = 0; i < 2; i++) {
        struct tl_reply *reply =
            test_function(store->redis, TL_FN_ADMIT, &store->keys, arguments, NULL);
        assert_int_equal(tl_reply_integer(tl_reply_at(reply, 0)), 0);
        assert_int_equal(tl_reply_integer(tl_reply_at(reply, 5)), present);
        tl_reply_free(reply);
    }
    assert_int_equal(test_state(store, "lost_generation"), present - 5);
    end_recovery(store);
    snprintf(arguments, sizeof(arguments), "10 10000 %llu", (unsigned long long)present - 6);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_ADMIT, &store->keys, arguments, NULL);
    assert_int_equal(tl_reply_integer(tl_reply_at(reply, 0)), 1); /* a later one was named */
    tl_reply_free(reply);
}

/* Another server with a clock that is behind: new places must lie above the lost ones. */
static void new_places_lie_above_all_that_workers_remember(void **state)
{
    struct test_store *store = *state;
    uint64_t lost = lost_queue(store, "");
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_LOST, .numbers = {lost, 9, 5000, 1}});
    test_join(store, "same-batch", 0); /* whose seqs are consecutive */
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "same-batch"), FIRST + 1);
    test_join(store, "new", 0);
    test_batch(store);
    assert_true(test_waiting_place(store, "new") > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(places_come_back_in_order_and_newcomers_stand_behind,
                               test_store_clean),
        cmocka_unit_test_setup(readers_learn_of_a_place_that_came_back, test_store_clean),
        cmocka_unit_test_setup(another_generation_gets_nothing, test_store_clean),
        cmocka_unit_test_setup(a_place_up_to_the_front_is_used_up, test_store_clean),
        cmocka_unit_test_setup(sessions_come_back_with_the_time_that_was_left, test_store_clean),
        cmocka_unit_test_setup(a_session_lasts_no_longer_than_any_can, test_store_clean),
        cmocka_unit_test_setup(passes_alone_never_exceed_the_capacity, test_store_clean),
        cmocka_unit_test_setup(the_worker_that_knows_more_is_believed, test_store_clean),
        cmocka_unit_test_setup(who_ended_does_not_come_back_twice, test_store_clean),
        cmocka_unit_test_setup(the_older_place_wins, test_store_clean),
        cmocka_unit_test_setup(a_place_has_one_holder, test_store_clean),
        cmocka_unit_test_setup(the_window_begins_with_the_first_batch, test_store_clean),
        cmocka_unit_test_setup(the_window_begins_with_a_worker_that_remembers_nothing,
                               test_store_clean),
        cmocka_unit_test_setup(a_memory_may_name_the_lost_generation, test_store_clean),
        cmocka_unit_test_setup(after_the_window_tickets_come_too_late, test_store_clean),
        cmocka_unit_test_setup(a_ticket_may_name_the_lost_generation, test_store_clean),
        cmocka_unit_test_setup(a_later_generation_replaces_the_name, test_store_clean),
        cmocka_unit_test_setup(no_ticket_names_one_later, test_store_clean),
        cmocka_unit_test_setup(without_a_window_nothing_comes_back, test_store_clean),
        cmocka_unit_test_setup(an_operator_ends_the_recovery_and_opens_it_again, test_store_clean),
        cmocka_unit_test_setup(an_operator_rules_a_recovery_out, test_store_clean),
        cmocka_unit_test_setup(it_ends_early_when_all_are_back, test_store_clean),
        cmocka_unit_test_setup(a_queue_that_is_known_is_created_in_recovery, test_store_clean),
        cmocka_unit_test_setup(an_admitter_that_remembers_another_generation_admits_nobody,
                               test_store_clean),
        cmocka_unit_test_setup(new_places_lie_above_all_that_workers_remember, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
