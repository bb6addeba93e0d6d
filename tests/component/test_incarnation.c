/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when the store comes back without the end of its history: a new incarnation of the
 * queue begins with the next step, and no number is used twice. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/role/roster.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/troubles.h"
#include "ingest.h"

/* Makes the queue as a program does, with the numbers it then starts with, and with the fence of
 * test_batch. */
static void make_queue(struct test_store *store)
{
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    tl_keys_init(&store->keys, "tl:", "q");
    assert_true(
        tl_queue_ensure(TEST_SITE(store->redis), "tl:", "q", &settings, &test_actor, NULL, NULL));
    test_redis_ask(store->redis, "HSET %s fence 1", store->keys.names[TL_KEY_STATE]);
}

/* The store loses all that was done since its history had this length. */
static void lose_tail(struct test_store *store, long long history)
{
    test_redis_lose_tail(store->server, history);
    tl_redis_free(&store->redis);
    store->redis = test_redis_connect(store->server);
    tl_apply_free(&store->apply); /* with the functions that the former server knew */
    store->apply = tl_apply_new(10000);
    assert_non_null(store->apply);
}

static void set_fence(struct test_store *store, long long fence)
{
    test_redis_ask(store->redis, "HSET %s fence %lld", store->keys.names[TL_KEY_STATE], fence);
}

struct numbers {
    long long incarnation, seq, event, fence, generation;
};

static struct numbers read_numbers(struct test_store *store)
{
    return (struct numbers){.incarnation = test_state(store, "incarnation"),
                            .seq = test_state(store, "seq"),
                            .event = test_state(store, "event"),
                            .fence = test_state(store, "fence"),
                            .generation = test_state(store, "generation")};
}

/* Each of the functions that write. What it answers depends on the queue and does not matter here.
 */
static const struct {
    const char *name, *source, *arguments;
} steps[] = {
    {"apply", TL_FN_APPLY, "1 1000 0 1-1 w 1 1 0 1 zoe"},
    {"poison", TL_FN_POISON, "1 1-1 why payload"},
    {"admit", TL_FN_ADMIT, "10 1000"},
    {"adapt", TL_FN_ADAPT, "1000"},
    {"expire", TL_FN_EXPIRE, "10 1000"},
    {"absent", TL_FN_ABSENT, "0 1000 4"},
    {"configure", TL_FN_CONFIGURE, "1000 notice soon"},
};
#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

static void run(struct test_store *store, size_t step)
{
    char error[320];
    tl_reply_free(test_function(store->redis, steps[step].source, &store->keys,
                                steps[step].arguments, error));
}

/* The entry that tells all readers to rebuild: its number is the base of the new incarnation. */
static void entry_without_events_is(struct test_store *store, const struct numbers *now)
{
    bool found = false;
    struct tl_reply *entries = test_redis_call(store->redis, "XRANGE tl:{q}:events - +");
    for (size_t i = 0; i < tl_reply_count(entries); i++) {
        size_t length;
        struct tl_event_entry entry;
        const struct tl_reply *fields = tl_reply_at(tl_reply_at(entries, i), 1);
        const char *payload = tl_reply_string(tl_reply_at(fields, 1), &length);
        assert_true(tl_events_decode(payload, length, &entry, NULL));
        if (entry.n_events == 0) {
            assert_false(found);
            found = true;
            assert_int_equal(entry.generation, now->generation);
            assert_int_equal(entry.waiting, 1);
            assert_int_equal(entry.active, 0);
            assert_in_range(now->event - (long long)entry.number, 0, 1); /* a step may follow */
        }
        tl_events_free(&entry);
    }
    tl_reply_free(entries);
    assert_true(found);
}

static void every_step_after_a_restart_begins_an_incarnation(void **state)
{
    struct test_store *store = *state;
    for (size_t step = 0; step < N_STEPS; step++) {
        test_store_clean(state);
        make_queue(store);
        test_join_many(store, "v", 1, 0);
        test_redis_ask(store->redis, "HSET %s mode paused", store->keys.names[TL_KEY_CONFIG]);
        long long history = test_redis_history(store->server);
        test_join_many(store, "lost", 3, 0);
        struct numbers lost = read_numbers(store);
        lose_tail(store, history);
        struct numbers found = read_numbers(store);
        assert_int_equal(found.seq, lost.seq - 3);
        run(store, step);
        struct numbers now = read_numbers(store);
        if (now.incarnation != found.incarnation + 1 || now.seq <= lost.seq ||
            now.event <= lost.event || now.fence <= lost.fence)
            fail_msg("%s did not begin a new incarnation", steps[step].name);
        assert_int_equal(now.generation, found.generation);
        assert_int_equal(test_state(store, "found_seq"), found.seq);
        assert_int_equal(test_state(store, "found_event"), found.event);
        assert_int_equal(test_state(store, "base_seq"), now.seq);
        entry_without_events_is(store, &now);
        run(store, step);
        assert_int_equal(read_numbers(store).incarnation, now.incarnation); /* it began once */
        assert_int_equal(read_numbers(store).seq, now.seq);
        test_invariants(store->redis, &store->keys);
    }
}

static void reading_begins_none(void **state)
{
    struct test_store *store = *state;
    static const struct {
        const char *source, *arguments;
    } calls[] = {
        {TL_FN_HEAD, ""}, {TL_FN_SNAPSHOT_ACTIVE, "0 100"}, {TL_FN_PRESENCE, ""}, {TL_FN_LAG, ""}};
    make_queue(store);
    test_join_many(store, "v", 1, 0);
    lose_tail(store, test_redis_history(store->server));
    uint64_t before = test_redis_fingerprint(store->redis);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        tl_reply_free(
            test_function(store->redis, calls[i].source, &store->keys, calls[i].arguments, NULL));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

static void a_lost_place_is_not_given_again(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_apply_counts counts = {0};
    make_queue(store);
    test_join_many(store, "v", 2, 0);
    long long history = test_redis_history(store->server);
    test_join_many(store, "lost", 10, 0);
    long long lost = test_waiting_place(store, "lost10");
    lose_tail(store, history);
    assert_int_equal(test_waiting_place(store, "lost10"), -1);

    /* The earlier holder of the lease is refused: others may have taken it in the lost time. */
    test_join(store, "new", 0);
    test_send(store, "w", 100, NULL);
    assert_int_equal(test_deliver(store), 1);
    assert_false(test_apply_pending(store, 1, &counts, &err));
    assert_int_equal(err.kind, TL_ERR_STALE);
    assert_int_equal(counts.applied, 0);
    assert_true(test_apply_pending(store, (uint64_t)test_state(store, "fence"), &counts, &err));
    assert_int_equal(counts.applied, 1);
    assert_true(test_waiting_place(store, "new") > lost);
    assert_int_equal(test_waiting_place(store, "new"), test_state(store, "base_seq") + 1);
    assert_int_equal(test_state(store, "waiting"), 3);
    test_invariants(store->redis, &store->keys);
}

/* Each loss takes the whole incarnation before with it, and finds the numbers from before. */
static void lose_incarnations(struct test_store *store)
{
    test_join_many(store, "v", 1, 0);
    long long history = test_redis_history(store->server);
    long long last = test_state(store, "seq"), event = test_state(store, "event"), fence = 1;
    for (int round = 0; round < 4; round++) {
        lose_tail(store, history);
        assert_int_equal(test_state(store, "incarnation"), 1);
        run(store, 2);
        set_fence(store, test_state(store, "fence")); /* as it is */
        assert_true(test_state(store, "base_seq") > last);
        assert_true(test_state(store, "event") > event);
        assert_true(test_state(store, "fence") > fence);
        fence = test_state(store, "fence");
        set_fence(store, 1);
        test_join_many(store, "lost", 1000, 0);
        last = test_state(store, "seq");
        event = test_state(store, "event");
    }
}

static void an_incarnation_that_is_lost_itself_is_not_repeated(void **state)
{
    struct test_store *store = *state;
    make_queue(store);
    lose_incarnations(store);
    /* Also after the clock was ahead, for as long. */
    test_store_clean(state);
    make_queue(store);
    test_redis_ask(store->redis, "HSET %s seq %lld event %lld", store->keys.names[TL_KEY_STATE],
                   1LL << 46, 1LL << 46);
    lose_incarnations(store);
}

/* Asks for a place of the present generation, by a ticket of it, or by a pass. */
static void restore(struct test_store *store, const char *visitor, long long place,
                    uint64_t deadline)
{
    const struct tl_command command = {
        .kind = TL_COMMAND_RESTORE,
        .visitor = visitor,
        .visitor_length = strlen(visitor),
        .numbers = {(tl_place)place, (uint64_t)test_state(store, "generation"), deadline}};
    test_add(store, &command);
}

/* The end that the store knows is that of an earlier place. */
static void a_lost_place_comes_back_to_who_had_an_earlier_one(void **state)
{
    struct test_store *store = *state;
    make_queue(store);
    test_join_many(store, "v", 2, 0);
    for (int i = 1; i <= 2; i++) {
        char visitor[16];
        snprintf(visitor, sizeof(visitor), "v%d", i);
        test_command(store, TL_COMMAND_LEAVE, visitor,
                     (tl_place)test_waiting_place(store, visitor));
    }
    test_batch(store);
    long long history = test_redis_history(store->server);
    test_join_many(store, "v", 2, 0);
    long long first = test_waiting_place(store, "v1"), second = test_waiting_place(store, "v2");
    lose_tail(store, history);
    assert_int_equal(test_end_reason(store, "v1"), TL_REASON_LEFT);
    run(store, 2);
    set_fence(store, 1);
    restore(store, "v1", first, 0);
    restore(store, "v2", second, 0);
    test_batch(store);
    test_exceptions_are(store, "");
    assert_int_equal(test_waiting_place(store, "v1"), first);
    assert_int_equal(test_waiting_place(store, "v2"), second);
    test_invariants(store->redis, &store->keys);

    test_command(store, TL_COMMAND_LEAVE, "v1", (tl_place)first);
    test_batch(store);
    restore(store, "v1", first, 0);
    test_batch(store);
    char refused[64];
    snprintf(refused, sizeof(refused), "0:3:%lld", first);
    test_exceptions_are(store, refused); /* it has ended since */
    test_invariants(store->redis, &store->keys);
}

/* An incarnation that begins now, or began before: what lies after seq 10 is lost. Returns its
 * base.
 */
static uint64_t incarnation(struct test_store *store, uint64_t began_ms)
{
    uint64_t base = (uint64_t)((double)(began_ms - TL_SEQ_EPOCH_MS) * TL_SEQ_PER_MS);
    test_redis_ask(store->redis, "HSET %s found_seq 10 base_seq %llu seq %llu base_ms %llu",
                   store->keys.names[TL_KEY_STATE], (unsigned long long)base,
                   (unsigned long long)base, (unsigned long long)began_ms);
    return base;
}

static void the_lost_end_of_the_history_comes_back(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "capacity=5 session_ttl=60s");
    uint64_t base = incarnation(store, (uint64_t)test_redis_ms(store->redis));
    char refused[64];
    restore(store, "found", 10, 0);
    restore(store, "lost", 11, 0);
    restore(store, "active", 12, (uint64_t)test_redis_ms(store->redis) + 30000);
    restore(store, "mallory", 11, 0);
    restore(store, "beyond", (long long)base + 1, 0);
    test_batch(store);
    snprintf(refused, sizeof(refused), "0:3:10 3:3:11 4:3:%" PRIu64, base + 1);
    test_exceptions_are(store, refused);
    assert_int_equal(test_waiting_place(store, "lost"), 11);
    assert_true(test_deadline(store, "active") > 0);
    test_invariants(store->redis, &store->keys);
}

/* Nobody remembers by then whether the place came back and has ended. */
static void an_hour_later_the_lost_end_stays_lost(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "capacity=5 session_ttl=60s");
    (void)incarnation(store, (uint64_t)test_redis_ms(store->redis) - 3660000);
    restore(store, "late", 11, 0);
    test_batch(store);
    test_exceptions_are(store, "0:3:11");
    test_invariants(store->redis, &store->keys);
}

/* On a server whose clock is behind, the numbers still go up. */
static void numbers_ahead_of_the_clock_go_on_from_there(void **state)
{
    struct test_store *store = *state;
    long long ahead = 1LL << 46;
    make_queue(store);
    test_redis_ask(store->redis, "HSET %s seq %lld event %lld fence %lld",
                   store->keys.names[TL_KEY_STATE], ahead, ahead, ahead);
    lose_tail(store, test_redis_history(store->server));
    run(store, 2);
    struct numbers now = read_numbers(store);
    const long long least = ahead + (1LL << 26), most = least + (1LL << 32) + 1;
    assert_in_range(now.seq, least, most);
    assert_in_range(now.event, least, most);
    assert_in_range(now.fence, least, most);
}

/* ---- a part of a queue ---- */

/* A store that is another one, and lacks this key: v1 is active in it, two wait. */
static void lose_key(struct test_store *store, const char *key)
{
    make_queue(store);
    test_redis_ask(store->redis, "HSET %s capacity 1", store->keys.names[TL_KEY_CONFIG]);
    test_join_many(store, "v", 3, 0);
    assert_int_equal(test_admit(store, 1), 1);
    test_redis_ask(store->redis, "RENAME tl:{q}:%s tl:{q}:kept", key);
    lose_tail(store, test_redis_history(store->server));
}

/* No function writes to it, and the operator is told which key. */
static void it_rests(struct test_store *store, const char *key)
{
    uint64_t before = test_redis_fingerprint(store->redis);
    struct tl_error err = {0};
    char error[320], wrong[320];
    for (size_t i = 0; i < N_STEPS; i++)
        run(store, i);
    tl_reply_free(test_function(store->redis, TL_FN_HEAD, &store->keys, "", error));
    if (strstr(error, "DAMAGED") == NULL)
        fail_msg("without %s: %s", key, error);
    struct tl_queue_settings settings;
    struct tl_troubles *troubles = tl_troubles_new();
    tl_queue_settings_defaults(&settings);
    const struct tl_mend_offer offer = {
        .from_memory = true, .settings = &settings, .actor = &test_actor};
    err.kind = TL_ERR_STORE;
    assert_true(tl_queue_set_aside(troubles, store->redis, &store->keys, &offer, &err, 0));
    tl_troubles_free(&troubles);
    (void)tl_queue_ensure(TEST_SITE(store->redis), "tl:", "q", &settings, &test_actor, NULL, NULL);
    assert_int_equal(test_redis_fingerprint(store->redis), before);
    assert_true(tl_queue_examine(store->redis, &store->keys, wrong, &err));
    if (strstr(wrong, "only a part of the queue") == NULL || strstr(wrong, key) == NULL)
        fail_msg("without %s: %s", key, wrong);
}

static void a_part_of_a_queue_rests_until_the_rest_is_back(void **state)
{
    struct test_store *store = *state;
    static const char *const keys[] = {"waiting", "active", "sessions", "events"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        test_store_clean(state);
        lose_key(store, keys[i]);
        it_rests(store, keys[i]);
        test_redis_ask(store->redis, "RENAME tl:{q}:kept tl:{q}:%s", keys[i]);
        run(store, 1);
        assert_int_equal(test_state(store, "incarnation"), 2);
        assert_int_equal(test_state(store, "waiting"), 2);
        test_invariants(store->redis, &store->keys);
    }
}

/* Outside a cluster no queue is on its way: a restart takes no help away. */
static void settings_and_ingest_come_back_also_after_a_restart(void **state)
{
    struct test_store *store = *state;
    static const char *const keys[] = {"config", "ingest"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char wrong[320];
        struct tl_error err = {.kind = TL_ERR_STORE};
        test_store_clean(state);
        lose_key(store, keys[i]);
        struct tl_queue_settings settings;
        struct tl_troubles *troubles = tl_troubles_new();
        tl_queue_settings_defaults(&settings);
        const struct tl_mend_offer offer = {
            .from_memory = true, .settings = &settings, .actor = &test_actor};
        (void)tl_queue_set_aside(troubles, store->redis, &store->keys, &offer, &err, 0);
        tl_troubles_free(&troubles);
        assert_true(tl_queue_examine(store->redis, &store->keys, wrong, &err));
        assert_string_equal(wrong, "");
        assert_int_equal(test_state(store, "incarnation"), 2);
        set_fence(store, 1);
        test_join(store, "new", 0);
        test_batch(store);
        assert_int_equal(test_state(store, "waiting"), 3);
        assert_int_equal(test_state(store, "active"), 1);
        test_invariants(store->redis, &store->keys);
    }
}

/* The operator says that the rest is lost: those who held a place there get it back. */
static void a_part_of_a_queue_goes_on_when_the_operator_says_so(void **state)
{
    struct test_store *store = *state;
    lose_key(store, "waiting");
    const long long seq = test_state(store, "seq");
    it_rests(store, "waiting");
    tl_reply_free(test_function(store->redis, TL_FN_RECOVER, &store->keys, "1000 60000", NULL));
    assert_int_equal(test_state(store, "waiting"), 0);
    assert_int_equal(test_admit(store, 1), 0); /* it recovers */
    set_fence(store, 1);
    restore(store, "v3", seq, 0);
    restore(store, "v2", seq - 1, 0);
    test_batch(store);
    test_exceptions_are(store, "");
    assert_int_equal(test_waiting_place(store, "v2"), seq - 1);
    assert_int_equal(test_waiting_place(store, "v3"), seq);
    test_invariants(store->redis, &store->keys);
}

/* A session is in two keys: who had one comes back, and is counted once, also where only one of the
 * keys is lost. */
static void sessions_come_back_when_half_of_them_is_lost(void **state)
{
    struct test_store *store = *state;
    static const char *const keys[] = {"active", "sessions"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        test_store_clean(state);
        lose_key(store, keys[i]);
        const long long place = test_state(store, "seq") - 2;
        tl_reply_free(test_function(store->redis, TL_FN_RECOVER, &store->keys, "1000 60000", NULL));
        assert_int_equal(test_state(store, "active"), 0);
        test_invariants(store->redis, &store->keys);
        set_fence(store, 1);
        restore(store, "v1", place, (uint64_t)test_redis_ms(store->redis) + 30000);
        test_batch(store);
        test_exceptions_are(store, "");
        assert_int_equal(test_state(store, "active"), 1);
        assert_true(test_deadline(store, "v1") > 0);
        test_invariants(store->redis, &store->keys);
        test_command(store, TL_COMMAND_LEAVE, "v1", (tl_place)place);
        test_batch(store);
        assert_int_equal(test_state(store, "active"), 0);
        test_invariants(store->redis, &store->keys);
    }
}

/* Nor is another one made beside what is left of it. */
static void a_part_without_the_state_is_no_new_queue(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {.kind = TL_ERR_STORE};
    make_queue(store);
    test_redis_ask(store->redis, "HSET %s capacity 1", store->keys.names[TL_KEY_CONFIG]);
    test_join_many(store, "v", 3, 0);
    assert_int_equal(test_admit(store, 1), 1);
    test_redis_ask(store->redis, "DEL tl:{q}:state tl:{q}:waiting");
    struct tl_queue_settings settings;
    struct tl_troubles *troubles = tl_troubles_new();
    tl_queue_settings_defaults(&settings);
    const struct tl_mend_offer offer = {
        .from_memory = true, .settings = &settings, .actor = &test_actor};
    assert_true(tl_queue_set_aside(troubles, store->redis, &store->keys, &offer, &err, 0));
    assert_non_null(strstr(err.text, "is missing but the line exists"));
    assert_non_null(strstr(err.text, "`tellerline queue delete QUEUE`"));
    tl_troubles_free(&troubles);
    assert_int_equal(test_redis_number(store->redis, "EXISTS tl:{q}:state"), 0);
    test_redis_ask(store->redis, "DEL tl:{q}:active tl:{q}:events"); /* sessions are left */
    assert_false(
        tl_queue_ensure(TEST_SITE(store->redis), "tl:", "q", &settings, &test_actor, NULL, &err));
    assert_non_null(strstr(err.text, "`tellerline queue delete QUEUE`"));

    /* What it advises leads out of it. */
    tl_reply_free(
        test_function(store->redis, TL_FN_DELETE, &store->keys, "1000 1 0 test cli 100", NULL));
    assert_true(
        tl_queue_create(TEST_SITE(store->redis), "tl:", "q", &settings, &test_actor, NULL, &err));
    assert_int_equal(test_state(store, "waiting"), 0);
}

/* ---- the lease ---- */

static bool acquired(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    (void)context;
    (void)held;
    (void)err;
    return true;
}

static void lost(void *context, struct tl_held_queue *held)
{
    (void)context;
    (void)held;
}

static void the_lease_is_taken_again_with_another_fence(void **state)
{
    struct test_store *store = *state;
    static const char yaml[] = "queues:\n  q: {capacity: 2}\n";
    const struct tl_redis_settings redis = {.url = test_redis_url(store->server),
                                            .timeout_ms = 60000};
    struct tl_troubles *troubles = tl_troubles_new();
    struct tl_store *connections = tl_store_new(&redis, NULL);
    const struct tl_roster_settings settings = {.role = "dispatcher",
                                                .owner = "a",
                                                .fenced = true,
                                                .store = connections,
                                                .troubles = troubles,
                                                .take = acquired,
                                                .drop = lost};
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_parse("test.yaml", yaml, strlen(yaml), &err);
    struct tl_roster *roster = tl_roster_new(&settings, config, NULL);
    make_queue(store);
    assert_true(tl_store_connect(connections, &err));
    assert_true(tl_roster_round(roster, 1000, &err));
    uint64_t before = tl_roster_at(roster, 0)->fence;
    lose_tail(store, test_redis_history(store->server)); /* the lease is still our own */
    assert_false(tl_roster_round(roster, 2000, &err));
    assert_true(tl_store_connect(connections, &err));
    assert_true(tl_roster_round(roster, 2100, &err));
    assert_int_equal(tl_roster_count(roster), 1);
    assert_int_equal(test_state(store, "incarnation"), 2);
    assert_true(tl_roster_at(roster, 0)->fence > before + (UINT64_C(1) << 26));
    assert_int_equal(tl_roster_at(roster, 0)->fence, test_state(store, "fence"));
    tl_roster_free(&roster);
    tl_troubles_free(&troubles);
    tl_store_free(&connections);
    tl_config_free(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_step_after_a_restart_begins_an_incarnation, test_store_clean),
        cmocka_unit_test_setup(reading_begins_none, test_store_clean),
        cmocka_unit_test_setup(a_lost_place_is_not_given_again, test_store_clean),
        cmocka_unit_test_setup(an_incarnation_that_is_lost_itself_is_not_repeated,
                               test_store_clean),
        cmocka_unit_test_setup(a_lost_place_comes_back_to_who_had_an_earlier_one, test_store_clean),
        cmocka_unit_test_setup(the_lost_end_of_the_history_comes_back, test_store_clean),
        cmocka_unit_test_setup(an_hour_later_the_lost_end_stays_lost, test_store_clean),
        cmocka_unit_test_setup(numbers_ahead_of_the_clock_go_on_from_there, test_store_clean),
        cmocka_unit_test_setup(a_part_of_a_queue_rests_until_the_rest_is_back, test_store_clean),
        cmocka_unit_test_setup(settings_and_ingest_come_back_also_after_a_restart,
                               test_store_clean),
        cmocka_unit_test_setup(sessions_come_back_when_half_of_them_is_lost, test_store_clean),
        cmocka_unit_test_setup(a_part_of_a_queue_goes_on_when_the_operator_says_so,
                               test_store_clean),
        cmocka_unit_test_setup(a_part_without_the_state_is_no_new_queue, test_store_clean),
        cmocka_unit_test_setup(the_lease_is_taken_again_with_another_fence, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open_kept, test_store_close);
}
