/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: two rosters on one store, like two replicas of a role. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/config/config.h"
#include "common/config/queue_settings.h"
#include "common/role/roster.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "redis_server.h"

#define LEASE_MS         1500
#define ROUND_MS         500
#define CHECKS_PER_ROUND 16
#define MANY             100
#define GIVE_UP_MS       300000

static const char yaml[] = "queues:\n  alpha: {capacity: 3}\n  beta: {}\n";

/* One replica: its own connection, its own roster. */
struct side {
    struct tl_store *store;
    struct tl_roster *roster;
    struct tl_troubles *troubles;
    unsigned acquired, lost;
    bool refuse; /* acquired fails */
    int64_t now_ms;
};

struct fixture {
    struct test_redis *server;
    struct tl_redis *redis; /* of the test itself */
    const struct tl_config *config;
    struct side a, b;
};

static bool acquired(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct side *side = context;
    if (side->refuse)
        return tl_error_set(err, TL_ERR_NOMEM, "not now");
    held->state = malloc(1); /* a leak or a double free shows a wrong number of calls of lost */
    assert_non_null(held->state);
    side->acquired++;
    return true;
}

static void lost(void *context, struct tl_held_queue *held)
{
    struct side *side = context;
    free(held->state);
    side->lost++;
}

static void open_side(struct fixture *fixture, struct side *side, const char *owner, bool fenced)
{
    const struct tl_redis_settings redis = {.url = test_redis_url(fixture->server),
                                            .timeout_ms = 60000};
    *side = (struct side){.now_ms = 1000};
    side->troubles = tl_troubles_new();
    assert_non_null(side->troubles);
    side->store = tl_store_new(&redis, NULL);
    assert_non_null(side->store);
    assert_true(tl_store_connect(side->store, NULL));
    const struct tl_roster_settings settings = {.role = "dispatcher",
                                                .owner = owner,
                                                .fenced = fenced,
                                                .store = side->store,
                                                .troubles = side->troubles,
                                                .context = side,
                                                .take = acquired,
                                                .drop = lost};
    side->roster = tl_roster_new(&settings, fixture->config, NULL);
    assert_non_null(side->roster);
}

static void close_side(struct side *side)
{
    tl_roster_free(&side->roster);
    tl_store_free(&side->store);
    tl_troubles_free(&side->troubles);
    assert_int_equal(side->acquired, side->lost);
}

static int start(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->server = test_redis_start_kept();
    fixture->redis = test_redis_connect(fixture->server);
    fixture->config = tl_config_parse("test.yaml", yaml, strlen(yaml), NULL);
    assert_non_null(fixture->config);
    open_side(fixture, &fixture->a, "a", true);
    open_side(fixture, &fixture->b, "b", true);
    *state = fixture;
    return 0;
}

static int stop(void **state)
{
    struct fixture *fixture = *state;
    close_side(&fixture->a);
    close_side(&fixture->b);
    tl_config_free(&fixture->config);
    tl_redis_free(&fixture->redis);
    test_redis_stop(&fixture->server);
    free(fixture);
    return 0;
}

/* A round that is due. */
static bool round_of(struct side *side, struct tl_error *err)
{
    side->now_ms += ROUND_MS;
    return tl_store_connect(side->store, err) && tl_roster_round(side->roster, side->now_ms, err);
}

static size_t held_after_round(struct side *side)
{
    struct tl_error err = {0};
    if (!round_of(side, &err))
        fail_msg("%s", err.text);
    return tl_roster_count(side->roster);
}

/* A queue is created with this fence. */
static long long first_fence(struct side *side, const char *queue)
{
    return test_redis_ask(tl_store_common(side->store), "HGET tl:{%s}:state base_seq", queue);
}

/* How often the fence of the lease on this queue was counted, 0 for a lease without one, -1 if it
 * is not held. */
static long long fence_of(struct side *side, const char *queue)
{
    for (size_t i = 0; i < tl_roster_count(side->roster); i++) {
        const struct tl_held_queue *held = tl_roster_at(side->roster, i);
        if (strcmp(held->keys.queue, queue) == 0)
            return held->fence == 0 ? 0 : (long long)held->fence - first_fence(side, queue);
    }
    return -1;
}

static void one_replica_acquires_a_lease_and_the_other_does_not(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    assert_int_equal(held_after_round(&fixture->b), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(held_after_round(&fixture->a), 2);
        assert_int_equal(held_after_round(&fixture->b), 0);
    }
    assert_int_equal(fixture->a.acquired, 2);
    assert_int_equal(fixture->a.lost, 0);
    assert_int_equal(fence_of(&fixture->a, "alpha"), 1);
    assert_int_equal(test_redis_number(fixture->redis, "HGET tl:{alpha}:state fence"),
                     first_fence(&fixture->a, "alpha") + 1);
    assert_int_equal(test_redis_number(fixture->redis, "HGET tl:{alpha}:config capacity"), 3);
    assert_in_range(test_redis_number(fixture->redis, "PTTL tl:{beta}:dispatcher"), 1, LEASE_MS);
}

static void a_round_happens_only_when_it_is_due(void **state)
{
    struct fixture *fixture = *state;
    struct side *a = &fixture->a;
    assert_int_equal(held_after_round(a), 2);
    assert_int_equal(tl_roster_due(a->roster), a->now_ms + ROUND_MS);
    tl_reply_free(test_redis_call(fixture->redis, "DEL tl:{alpha}:dispatcher"));
    assert_true(tl_roster_round(a->roster, a->now_ms + ROUND_MS - 1, NULL));
    assert_int_equal(test_redis_number(fixture->redis, "EXISTS tl:{alpha}:dispatcher"), 0);
    tl_roster_recheck_now(a->roster);
    assert_true(tl_roster_due(a->roster) <= a->now_ms);
    assert_true(tl_roster_round(a->roster, a->now_ms, NULL));
    assert_int_equal(test_redis_number(fixture->redis, "EXISTS tl:{alpha}:dispatcher"), 1);
}

/* Although it is in the configuration, and also for a program that starts afterwards. */
static void a_queue_that_an_operator_deleted_stays_away(void **state)
{
    struct fixture *fixture = *state;
    struct side late;
    struct tl_queue_settings settings;
    assert_int_equal(held_after_round(&fixture->a), 2);
    test_redis_ask(fixture->redis, "HSET tl:{alpha}:retired generation 5 away 1");
    test_redis_ask(fixture->redis, "UNLINK tl:{alpha}:state tl:{alpha}:config tl:{alpha}:events "
                                   "tl:{alpha}:ingest tl:{alpha}:dispatcher");
    assert_int_equal(held_after_round(&fixture->a), 1); /* it is still on the list */
    test_redis_ask(fixture->redis, "SREM tl:queues alpha");
    assert_int_equal(held_after_round(&fixture->a), 1);
    tl_roster_recheck_now(fixture->a.roster);
    assert_int_equal(held_after_round(&fixture->a), 1);
    tl_reply_free(test_redis_call(fixture->redis, "DEL tl:{alpha}:retired")); /* is lost */
    tl_roster_recheck_now(fixture->a.roster);
    assert_int_equal(held_after_round(&fixture->a), 1);
    test_redis_ask(fixture->redis, "HSET tl:{alpha}:retired generation 5 away 1");
    open_side(fixture, &late, "late", true);
    assert_int_equal(held_after_round(&late), 0);
    assert_int_equal(tl_roster_listed(late.roster), 1);
    assert_int_equal(test_redis_number(fixture->redis, "EXISTS tl:{alpha}:state"), 0);
    close_side(&late);
    tl_queue_settings_defaults(&settings);
    assert_true(tl_queue_create(TEST_SITE(fixture->redis), "tl:", "alpha", &settings, &test_actor,
                                NULL, NULL));
    assert_int_equal(held_after_round(&fixture->a), 2);
}

/* Creates queues besides the configured ones, so that there are MANY. */
static void make_many(struct fixture *fixture)
{
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    for (int i = 0; i < MANY - 2; i++) {
        char name[32];
        snprintf(name, sizeof(name), "queue-%02d", i);
        assert_true(tl_queue_ensure(TEST_SITE(fixture->redis), "tl:", name, &settings, &test_actor,
                                    NULL, NULL));
    }
}

/* How often the store has run this command so far. */
static long long calls_of(struct fixture *fixture, const char *command)
{
    char field[64];
    struct tl_reply *reply = test_redis_call(fixture->redis, "INFO commandstats");
    snprintf(field, sizeof(field), "cmdstat_%s:calls=", command);
    const char *found = strstr(tl_reply_string(reply, NULL), field);
    long long calls = found != NULL ? strtoll(found + strlen(field), NULL, 10) : 0;
    tl_reply_free(reply);
    return calls;
}

static void a_replica_that_stops_renewing_is_replaced_within_two_seconds(void **state)
{
    struct fixture *fixture = *state;
    make_many(fixture);
    int64_t began_ms = tl_clock_ms();
    assert_int_equal(held_after_round(&fixture->a), MANY);
    assert_in_range(test_redis_number(fixture->redis, "PTTL tl:{beta}:dispatcher"), 1, 2000);
    int64_t taken_ms = 0;
    do {
        struct tl_error err = {0};
        if (!tl_roster_round(fixture->b.roster, tl_clock_ms(), &err))
            fail_msg("%s", err.text);
        taken_ms = tl_clock_ms() - began_ms;
    } while (tl_roster_count(fixture->b.roster) < MANY && taken_ms < GIVE_UP_MS);
    assert_int_equal(fixture->b.acquired, MANY);
    assert_true(taken_ms >= 1000);
    assert_int_equal(fence_of(&fixture->b, "alpha"), 2);
    assert_int_equal(tl_roster_count(fixture->a.roster), MANY); /* it does not know yet */
    assert_int_equal(held_after_round(&fixture->a), 0);         /* it woke up */
    assert_int_equal(fixture->a.lost, MANY);
}

static void keeping_a_lease_is_one_plain_command(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    long long calls = calls_of(fixture, "fcall");
    long long renewals = calls_of(fixture, "getex");
    for (int i = 1; i <= 5; i++) {
        tl_reply_free(test_redis_call(fixture->redis, "PEXPIRE tl:{alpha}:dispatcher 1000"));
        assert_int_equal(held_after_round(&fixture->a), 2);
        assert_in_range(test_redis_number(fixture->redis, "PTTL tl:{alpha}:dispatcher"), 1001,
                        LEASE_MS);
        assert_int_equal(calls_of(fixture, "getex"), renewals + 2 * i);
    }
    assert_int_equal(calls_of(fixture, "fcall"), calls);
    assert_int_equal(fixture->a.acquired, 2);
}

static void a_replica_that_slept_does_not_extend_the_lease_of_its_successor(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    tl_reply_free(test_redis_call(fixture->redis, "SET tl:{alpha}:dispatcher b PX 1000"));
    fixture->a.now_ms += LEASE_MS - ROUND_MS;
    assert_int_equal(held_after_round(&fixture->a), 1);
    assert_int_equal(fence_of(&fixture->a, "alpha"), -1);
    assert_in_range(test_redis_number(fixture->redis, "PTTL tl:{alpha}:dispatcher"), 0, 1000);
    assert_int_equal(fence_of(&fixture->a, "beta"), 1);
}

/* Rounds of a holder whose turns take so long, because the store is far away or busy. */
static void renew_every(struct side *side, int64_t turn_ms, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        side->now_ms += turn_ms - ROUND_MS;
        assert_int_equal(held_after_round(side), 2);
    }
}

/* A turn of nine commands takes 3.6 s at 400 ms each. With a lease that is shorter than that, two
 * replicas hand it to and fro. */
static void a_lease_lasts_longer_than_the_turns_of_its_holder(void **state)
{
    struct fixture *fixture = *state;
    renew_every(&fixture->a, 3600, 3);
    assert_in_range(test_redis_number(fixture->redis, "PTTL tl:{alpha}:dispatcher"), 5000, 7200);
    assert_int_equal(held_after_round(&fixture->b), 0);
    fixture->b.now_ms += LEASE_MS;
    assert_int_equal(held_after_round(&fixture->b), 0); /* it is no damaged lease */
    long long calls = calls_of(fixture, "fcall");
    renew_every(&fixture->a, 3600, 3);
    assert_int_equal(calls_of(fixture, "fcall"), calls); /* renewed by one plain command */
    assert_int_equal(fence_of(&fixture->a, "alpha"), 1);
    renew_every(&fixture->a, ROUND_MS, 10); /* the store is near again */
    assert_in_range(test_redis_number(fixture->redis, "PTTL tl:{alpha}:dispatcher"), 1, LEASE_MS);
}

/* A holder that was stopped for an hour must not keep the lease for another one when it ends. */
static void a_lease_has_a_longest_time(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    renew_every(&fixture->a, 3600000, 1);
    assert_in_range(test_redis_number(fixture->redis, "PTTL tl:{alpha}:dispatcher"), 5000, 10000);
    tl_reply_free(test_redis_call(fixture->redis, "PEXPIRE tl:{alpha}:dispatcher 10100"));
    assert_int_equal(held_after_round(&fixture->b), 1); /* set before the clock went back */
}

static void a_lease_taken_by_another_replica_is_lost(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    tl_reply_free(test_redis_call(fixture->redis, "SET tl:{alpha}:dispatcher b PX 60000"));
    assert_int_equal(held_after_round(&fixture->a), 1);
    assert_int_equal(fence_of(&fixture->a, "alpha"), -1);
    assert_int_equal(fixture->a.lost, 1);
}

static void leases_of_another_replica_are_checked_rarely(void **state)
{
    struct fixture *fixture = *state;
    make_many(fixture);
    assert_int_equal(held_after_round(&fixture->a), MANY);
    assert_int_equal(held_after_round(&fixture->b), 0);
    fixture->b.now_ms += ROUND_MS;
    assert_int_equal(held_after_round(&fixture->b), 0); /* checks all of them now */
    long long before = calls_of(fixture, "pttl");
    long long calls = calls_of(fixture, "fcall");
    assert_int_equal(held_after_round(&fixture->b), 0);
    assert_int_equal(calls_of(fixture, "pttl"), before + CHECKS_PER_ROUND);
    assert_int_equal(calls_of(fixture, "fcall"), calls);
    /* Released leases are taken in the next round nevertheless. */
    tl_roster_release_all(fixture->a.roster);
    assert_int_equal(held_after_round(&fixture->b), MANY);
    assert_int_equal(fence_of(&fixture->b, "queue-00"), 2);
}

static void a_recheck_finds_a_changed_fence(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    test_redis_ask(fixture->redis, "HSET tl:{alpha}:state fence %lld",
                   first_fence(&fixture->a, "alpha") + 7);
    tl_roster_recheck_now(fixture->a.roster); /* as after STALE */
    assert_int_equal(held_after_round(&fixture->a), 2);
    assert_int_equal(fence_of(&fixture->a, "alpha"), 7);
    assert_int_equal(fixture->a.lost, 1);
}

static void released_leases_are_taken_over_at_once(void **state)
{
    struct fixture *fixture = *state;
    for (long long fence = 1; fence <= 5; fence++) {
        struct side *holder = fence % 2 == 1 ? &fixture->a : &fixture->b;
        struct side *other = fence % 2 == 1 ? &fixture->b : &fixture->a;
        assert_int_equal(held_after_round(holder), 2);
        assert_int_equal(held_after_round(other), 0);
        assert_int_equal(fence_of(holder, "alpha"), fence); /* counts up */
        tl_roster_release_all(holder->roster);
        assert_int_equal(test_redis_number(fixture->redis, "EXISTS tl:{alpha}:dispatcher"), 0);
    }
}

static void releasing_leaves_the_leases_of_others(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    tl_reply_free(test_redis_call(fixture->redis, "SET tl:{alpha}:dispatcher b PX 60000"));
    tl_roster_release_all(fixture->a.roster);
    assert_int_equal(test_redis_number(fixture->redis, "EXISTS tl:{alpha}:dispatcher"), 1);
    assert_int_equal(test_redis_number(fixture->redis, "EXISTS tl:{beta}:dispatcher"), 0);
    assert_int_equal(held_after_round(&fixture->a), 1);
    assert_int_equal(held_after_round(&fixture->b), 1);
}

static void a_lease_that_ran_out_is_taken_again_with_another_fence(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    tl_reply_free(test_redis_call(fixture->redis, "DEL tl:{alpha}:dispatcher"));
    assert_int_equal(held_after_round(&fixture->a), 2);
    assert_int_equal(fixture->a.lost, 1); /* what it knew may be out of date */
    assert_int_equal(fixture->a.acquired, 3);
    assert_int_equal(fence_of(&fixture->a, "alpha"), 2);
    assert_int_equal(fence_of(&fixture->a, "beta"), 1);
}

static void a_role_without_fence_has_none(void **state)
{
    struct fixture *fixture = *state;
    close_side(&fixture->a);
    open_side(fixture, &fixture->a, "a", false);
    assert_int_equal(held_after_round(&fixture->a), 2);
    assert_int_equal(fence_of(&fixture->a, "alpha"), 0);
    assert_int_equal(test_redis_number(fixture->redis, "HGET tl:{alpha}:state fence"),
                     first_fence(&fixture->a, "alpha"));
}

static void a_new_queue_is_found_and_a_deleted_one_lost(void **state)
{
    struct fixture *fixture = *state;
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    assert_int_equal(held_after_round(&fixture->a), 2);
    tl_queue_settings_defaults(&settings);
    assert_true(tl_queue_ensure(TEST_SITE(fixture->redis), "tl:", "gamma", &settings, &test_actor,
                                NULL, &err));
    assert_int_equal(held_after_round(&fixture->a), 3);
    assert_int_equal(fence_of(&fixture->a, "gamma"), 1);
    test_redis_ask(fixture->redis, "HSET tl:{gamma}:retired away 1");
    tl_reply_free(test_redis_call(fixture->redis, "SREM tl:queues gamma"));
    assert_int_equal(held_after_round(&fixture->a), 2);
    assert_int_equal(fence_of(&fixture->a, "gamma"), -1);
    tl_reply_free(test_redis_call(fixture->redis, "SADD tl:queues delta"));
    assert_int_equal(held_after_round(&fixture->a), 2); /* listed, but it does not exist */
    assert_int_equal(fence_of(&fixture->a, "alpha"), 1);
}

static void configured_queues_are_restored_in_an_empty_store(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    long long before = test_redis_number(fixture->redis, "HGET tl:{alpha}:state generation");
    tl_reply_free(test_redis_call(fixture->redis, "FLUSHALL"));
    assert_int_equal(held_after_round(&fixture->a), 2);
    assert_true(test_redis_number(fixture->redis, "HGET tl:{alpha}:state generation") > before);
    assert_int_equal(test_redis_number(fixture->redis, "HGET tl:{alpha}:config capacity"), 3);
    assert_int_equal(fence_of(&fixture->a, "alpha"), 1);
    struct tl_reply *groups = test_redis_call(fixture->redis, "XINFO GROUPS tl:{alpha}:ingest");
    assert_int_equal(tl_reply_count(groups), 1);
    tl_reply_free(groups);
}

static void set(struct fixture *fixture, const char *queue, const char *name, const char *value)
{
    struct tl_keys keys;
    struct tl_error err = {0};
    tl_keys_init(&keys, "tl:", queue);
    if (!test_queue_set(fixture->redis, &keys, name, value, &err))
        fail_msg("%s", err.text);
}

static void assert_mode(struct fixture *fixture, const char *queue, const char *mode)
{
    char words[64];
    snprintf(words, sizeof(words), "HGET tl:{%s}:config mode", queue);
    struct tl_reply *reply = test_redis_call(fixture->redis, words);
    assert_string_equal(tl_reply_string(reply, NULL), mode);
    tl_reply_free(reply);
}

/* Whichever program makes the queues again, and also for one that no file has. */
static void what_operators_set_is_in_force_again_after_a_total_loss(void **state)
{
    struct fixture *fixture = *state;
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    assert_true(tl_queue_create(TEST_SITE(fixture->redis), "tl:", "gamma", &settings, &test_actor,
                                NULL, NULL));
    assert_int_equal(held_after_round(&fixture->a), 3);
    set(fixture, "alpha", "mode", "sold_out");
    set(fixture, "gamma", "mode", "closed");
    assert_int_equal(held_after_round(&fixture->a), 3);
    tl_reply_free(test_redis_call(fixture->redis, "FLUSHALL"));
    assert_int_equal(held_after_round(&fixture->a), 3);
    assert_mode(fixture, "alpha", "sold_out");
    assert_mode(fixture, "gamma", "closed");

    tl_reply_free(test_redis_call(fixture->redis, "FLUSHALL"));
    assert_int_equal(held_after_round(&fixture->b), 2); /* has just started: it knows the file */
    assert_mode(fixture, "alpha", "open");
    (void)held_after_round(&fixture->a);
    assert_mode(fixture, "alpha", "sold_out");
    assert_mode(fixture, "gamma", "closed");
}

static void a_new_connection_starts_a_round_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct side *a = &fixture->a;
    assert_int_equal(held_after_round(a), 2);
    tl_reply_free(test_redis_call(fixture->redis, "XGROUP DESTROY tl:{beta}:ingest dispatchers"));
    tl_redis_close(tl_store_common(a->store));
    assert_true(tl_store_connect(a->store, NULL));
    assert_true(tl_roster_round(a->roster, a->now_ms, NULL)); /* not due */
    struct tl_reply *groups = test_redis_call(fixture->redis, "XINFO GROUPS tl:{beta}:ingest");
    assert_int_equal(tl_reply_count(groups), 1); /* what is missing is restored */
    tl_reply_free(groups);
}

static void a_round_survives_that_the_library_is_gone(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    assert_int_equal(held_after_round(&fixture->a), 2);
    tl_reply_free(test_redis_call(fixture->redis, "FUNCTION FLUSH"));
    if (!round_of(&fixture->a, &err))
        assert_int_equal(err.kind, TL_ERR_NOFUNCTION);
    assert_int_equal(held_after_round(&fixture->a), 2);
}

static void a_broken_store_does_not_lose_a_queue_twice(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    assert_int_equal(held_after_round(&fixture->a), 2);
    test_redis_kill(fixture->server);
    assert_false(round_of(&fixture->a, &err));
    assert_int_equal(err.kind, TL_ERR_CONNECT);
    assert_false(round_of(&fixture->a, &err));
    tl_roster_release_all(fixture->a.roster); /* ignores the error */
    test_redis_restart(fixture->server);
    assert_int_equal(held_after_round(&fixture->a), 2);
}

static void a_lease_the_role_refuses_is_left_to_others(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    fixture->a.refuse = true;
    assert_false(round_of(&fixture->a, &err));
    assert_int_equal(err.kind, TL_ERR_NOMEM);
    assert_int_equal(tl_roster_count(fixture->a.roster), 0);
    assert_int_equal(held_after_round(&fixture->b), 2);
    fixture->a.refuse = false;
    tl_roster_release_all(fixture->b.roster);
    assert_int_equal(held_after_round(&fixture->a), 2);
}

/* A role that is restarted at the memory limit must be able to serve: what frees memory is its
 * work.
 */
static void at_the_memory_limit_a_lease_is_taken(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_after_round(&fixture->a), 2);
    tl_roster_release_all(fixture->a.roster);
    tl_reply_free(test_redis_call(fixture->redis, "CONFIG SET maxmemory 1"));
    assert_int_equal(test_redis_refusal(fixture->redis, "SET x y"), TL_ERR_OOM);
    assert_int_equal(held_after_round(&fixture->b), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at_the_memory_limit_a_lease_is_taken, start, stop),
        cmocka_unit_test_setup_teardown(one_replica_acquires_a_lease_and_the_other_does_not, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_round_happens_only_when_it_is_due, start, stop),
        cmocka_unit_test_setup_teardown(
            a_replica_that_stops_renewing_is_replaced_within_two_seconds, start, stop),
        cmocka_unit_test_setup_teardown(keeping_a_lease_is_one_plain_command, start, stop),
        cmocka_unit_test_setup_teardown(
            a_replica_that_slept_does_not_extend_the_lease_of_its_successor, start, stop),
        cmocka_unit_test_setup_teardown(a_lease_lasts_longer_than_the_turns_of_its_holder, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_lease_has_a_longest_time, start, stop),
        cmocka_unit_test_setup_teardown(a_lease_taken_by_another_replica_is_lost, start, stop),
        cmocka_unit_test_setup_teardown(leases_of_another_replica_are_checked_rarely, start, stop),
        cmocka_unit_test_setup_teardown(a_recheck_finds_a_changed_fence, start, stop),
        cmocka_unit_test_setup_teardown(released_leases_are_taken_over_at_once, start, stop),
        cmocka_unit_test_setup_teardown(releasing_leaves_the_leases_of_others, start, stop),
        cmocka_unit_test_setup_teardown(a_lease_that_ran_out_is_taken_again_with_another_fence,
                                        start, stop),
        cmocka_unit_test_setup_teardown(a_role_without_fence_has_none, start, stop),
        cmocka_unit_test_setup_teardown(a_new_queue_is_found_and_a_deleted_one_lost, start, stop),
        cmocka_unit_test_setup_teardown(configured_queues_are_restored_in_an_empty_store, start,
                                        stop),
        cmocka_unit_test_setup_teardown(what_operators_set_is_in_force_again_after_a_total_loss,
                                        start, stop),
        cmocka_unit_test_setup_teardown(a_new_connection_starts_a_round_at_once, start, stop),
        cmocka_unit_test_setup_teardown(a_queue_that_an_operator_deleted_stays_away, start, stop),
        cmocka_unit_test_setup_teardown(a_round_survives_that_the_library_is_gone, start, stop),
        cmocka_unit_test_setup_teardown(a_broken_store_does_not_lose_a_queue_twice, start, stop),
        cmocka_unit_test_setup_teardown(a_lease_the_role_refuses_is_left_to_others, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
