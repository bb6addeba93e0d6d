/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing undoes a function that fails half-way. So a step that meets damage either does without
 * what is damaged, or fails before its first write: then it can be done again once that is mended.
 * Each step meets each key of a queue as a list, and as a set, because several commands of Redis
 * take sets and sorted sets alike; and each field of the queue with what is no number, or gone. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "ingest.h"

/* The first seq of a chunk of presence of its own: those of the other visitors are in chunk 0. */
#define FAR ((UINT64_C(1) << 32) + 7 * TL_PRESENCE_CHUNK)

/* ---- the queue before each step ---- */

static void set_state(struct test_store *store, const char *changes)
{
    test_redis_ask(store->redis, "HSET tl:{q}:state %s", changes);
}

/* v1 and v2 have claimed, v3 and v4 were called above the capacity, and v4 is held; v5 to v8 wait,
 * v5 and v6 on another device; far waits in another chunk. */
static void busy(struct test_store *store)
{
    test_store_queue(store,
                     "lanes=only,vip capacity=4 overbook=2 waiting_ttl=1h session_sliding=true "
                     "recovery_window=1h");
    test_join_many(store, "v", 8, 0);
    assert_int_equal(test_admit(store, 4), 4);
    test_command(store, TL_COMMAND_RENEW, "v1", 1);
    test_command(store, TL_COMMAND_RENEW, "v2", 2);
    test_batch(store);
    test_redis_ask(store->redis, "HSET tl:{q}:config capacity 2");
    set_state(store, "called 1:2:0:0");
    test_redis_ask(store->redis, "ZADD tl:{q}:held 4 v4");
    test_redis_ask(store->redis, "HSET tl:{q}:serials 5 1:7:v5 6 1:7:v6");
    test_redis_ask(store->redis, "HSET tl:{q}:state seq %" PRIu64, FAR - 1);
    test_join(store, "far", 0);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "far"), FAR);
    test_invariants(store->redis, &store->keys);
}

static void with_capacity(struct test_store *store)
{
    busy(store);
    test_redis_ask(store->redis, "HSET tl:{q}:config capacity 7 lane_weights 1,1");
    test_redis_ask(store->redis, "HSET tl:{q}:webhooks wanted all:10 journaled 3");
}

static void with_capacity_and_rate(struct test_store *store)
{
    with_capacity(store);
    test_redis_ask(store->redis, "HSET tl:{q}:config policy both rate.admit 1000 rate.every 1000");
    assert_int_equal(test_admit(store, 1), 0);
    test_redis_ask(store->redis, "ZADD tl:{q}:held 4 v4");
    test_redis_pass_time(store->redis, 300); /* the budget begins spent */
}

static void by_rate(struct test_store *store)
{
    busy(store);
    test_redis_ask(store->redis, "HSET tl:{q}:config policy rate rate.admit 1000 rate.every 1000");
    test_redis_ask(store->redis, "HSET tl:{q}:config overbook 0");
    assert_int_equal(test_admit(store, 1), 0);
    test_redis_pass_time(store->redis, 300); /* the budget begins spent */
}

static void recovered(struct test_store *store)
{
    busy(store);
    set_state(store, "recover_until 1 started 1 lost_generation 1 front:0 6");
}

static void being_restored(struct test_store *store)
{
    busy(store);
    set_state(store, "recover_until 99999999999999 lost_generation 1 restore running:1:5:0:0:9");
}

static void overdue(struct test_store *store)
{
    busy(store);
    test_redis_ask(store->redis, "ZADD tl:{q}:active XX 1 v1 1 v4");
}

static void with_someone_gone(struct test_store *store)
{
    busy(store);
    test_redis_ask(store->redis, "ZADD tl:{q}:ended 8 gone");
    tl_reply_free(test_redis_call(store->redis, "XADD tl:{q}:poison * d gone"));
}

static void steered(struct test_store *store)
{
    busy(store);
    test_redis_ask(store->redis, "HSET tl:{q}:config capacity.min 1");
}

/* In the arguments of a step: the bucket of presence that is now. */
#define BUCKET "@"

static long long bucket_now(struct test_store *store)
{
    return test_redis_ms(store->redis) / (3600000 / TL_PRESENCE_BUCKETS);
}

/* False when it fails. */
static bool run(struct test_store *store, const char *source, const char *arguments)
{
    char error[320], words[512];
    const char *rest = arguments[0] == BUCKET[0] ? arguments + 1 : arguments;
    snprintf(words, sizeof(words), "%.0lld%s", rest > arguments ? bucket_now(store) : 0, rest);
    struct tl_reply *reply = test_function(store->redis, source, &store->keys, words, error);
    tl_reply_free(reply);
    return reply != NULL;
}

/* ---- apply ---- */

/* An entry of the ingest stream. What is in it stands in the steps: to read it would change it. */
#define ENTRY "9999999999999-1"

static void deliver(struct test_store *store)
{
    tl_reply_free(test_redis_call(store->redis, "XADD tl:{q}:ingest " ENTRY " d x"));
    assert_int_equal(test_deliver(store), 1);
}

static void with_a_batch(struct test_store *store)
{
    busy(store);
    set_state(store, "recover_until 99999999999999 started 1");
    deliver(store);
}

/* A batch that is one end alone looks at less than others do. */
static void with_a_lone_end(struct test_store *store)
{
    busy(store);
    test_redis_ask(store->redis, "HSET tl:{q}:config overbook 0");
    test_redis_ask(store->redis, "HSET tl:{q}:state generation 7 handed 1");
    tl_reply_free(test_redis_call(store->redis, "HDEL tl:{q}:state called"));
    deliver(store);
}

static void with_poison(struct test_store *store)
{
    busy(store);
    deliver(store);
}

/* ---- the draw ---- */

#define OPENING "1735689601000" /* long ago */
#define DRAW    "1000 " OPENING " abcd "
#define NUMBER  DRAW "number 4839178240 " /* FAR + 2^29: so long after the opening */

static void with_an_opening(struct test_store *store)
{
    busy(store);
    set_state(store, "generation 1735689600000000"); /* before the opening */
    test_redis_ask(store->redis, "HSET tl:{q}:config order draw opens_at " OPENING);
}

static void with_a_batch_of_the_opening(struct test_store *store)
{
    with_an_opening(store);
    deliver(store);
}

static void with_a_draw(struct test_store *store)
{
    with_an_opening(store);
    assert_true(run(store, TL_FN_DRAW, DRAW "announce salt"));
}

static void with_a_draw_begun(struct test_store *store)
{
    with_a_draw(store);
    assert_true(run(store, TL_FN_DRAW, DRAW "begin"));
}

static void with_all_numbered(struct test_store *store)
{
    with_a_draw_begun(store);
    assert_true(run(store, TL_FN_DRAW,
                    NUMBER "v5 aaaaaaaaaaaaaaaa v6 bbbbbbbbbbbbbbbb v7 cccccccccccccccc "
                           "v8 dddddddddddddddd far eeeeeeeeeeeeeeee"));
}

/* ---- all steps with all keys ---- */

/* JOIN, SPEND and JOIN, LEAVE, COMPLETE, RENEW, CLAIM, EXTEND, HAND_OVER, SEEN twice, LOST, CALLED,
 * RESTORE. */
static const char every_command[] =
    "1 1000 0 " ENTRY
    " other 1 1 0 1 new 6 invite 99999999999999 1 0 1 guest 2 v5 5 3 v3 3 4 v1 1 11 v4 4 12 v4 4 "
    "13 v6 6 2 8 5 7 2 5 4302307328 1 8 1 9 9 9 9 1 9 4000 1 7 back 3000 1 0 0 0";

static const struct step {
    const char *name;
    void (*prepare)(struct test_store *store);
    const char *source, *arguments;
} steps[] = {
    {"apply", with_a_batch, TL_FN_APPLY, every_command},
    {"apply at an opening", with_a_batch_of_the_opening, TL_FN_APPLY,
     "1 1000 0 " ENTRY " other 1 1 0 1 new"},
    {"apply one completion", with_a_lone_end, TL_FN_APPLY, "1 1000 0 " ENTRY " w 99 10 7 3 v1 1"},
    {"apply one leave", with_a_lone_end, TL_FN_APPLY, "1 1000 0 " ENTRY " w 99 10 7 2 v5 5"},
    {"poison", with_poison, TL_FN_POISON, "1 " ENTRY " why payload"},
    {"admit", with_capacity, TL_FN_ADMIT, "10 1000"},
    {"admit by capacity and rate", with_capacity_and_rate, TL_FN_ADMIT, "10 1000"},
    {"admit by rate", by_rate, TL_FN_ADMIT, "10 1000"},
    {"admit after a recovery", recovered, TL_FN_ADMIT, "10 1000"},
    {"adapt", steered, TL_FN_ADAPT, "1000 99 1 1"},
    {"draw: announce", with_an_opening, TL_FN_DRAW, DRAW "announce salt"},
    {"draw: begin", with_a_draw, TL_FN_DRAW, DRAW "begin"},
    {"draw: number", with_a_draw_begun, TL_FN_DRAW, NUMBER "v5 aaaaaaaaaaaaaaaa"},
    {"draw: finish", with_all_numbered, TL_FN_DRAW, DRAW "finish seed"},
    {"expire", overdue, TL_FN_EXPIRE, "10 1000"},
    {"absent", busy, TL_FN_ABSENT, BUCKET " 1000 5 7 4302307328"},
    {"remove from the line", busy, TL_FN_REMOVE, "1000 v5"},
    {"remove from the site", busy, TL_FN_REMOVE, "1000 v4"},
    {"move", busy, TL_FN_MOVE, "1000 v5 vip"},
    {"configure", busy, TL_FN_CONFIGURE, "1000 notice soon"},
    {"recover", busy, TL_FN_RECOVER, "1000 60000"},
    {"restore", being_restored, TL_FN_RESTORE,
     "1000 rows 1 0 9 back 3000 99999999999999 1 1 0 over 3001 -1 0 0 0 waits 3002 0 0 0 2"},
    {"forget", with_someone_gone, TL_FN_FORGET, "gone sets"},
    {"look", busy, TL_FN_LOOK, "all:10 60000 0 1 3 shop"},
    {"lease", busy, TL_FN_LEASE, "dispatcher me 5000 1 60000"},
};

static const char *const names[] = {"state",    "config",   "waiting", "active",
                                    "sessions", "ended",    "events",  "ingest",
                                    "reports",  "lost",     "held",    "serials",
                                    "drawn",    "poison",   "changes", "journal",
                                    "feedback", "webhooks", "seen",    "seen of another chunk"};

/* Writes the name of this key. Presence is that of now. */
static void name_key(struct test_store *store, const char *name, char key[TL_KEY_MAX])
{
    if (strncmp(name, "seen", 4) == 0)
        tl_keys_seen(&store->keys, bucket_now(store),
                     name[4] == '\0' ? 0 : tl_presence_chunk(FAR, NULL), key);
    else
        snprintf(key, TL_KEY_MAX, "tl:{q}:%s", name);
}

/* ---- the queue as it was before the step ---- */

/* Runs a script of the test's own. */
static void run_own(struct test_store *store, const char *source)
{
    char error[320];
    struct tl_reply *reply = test_eval(store->redis, source, &store->keys, error);
    if (reply == NULL)
        fail_msg("%s", error);
    tl_reply_free(reply);
}

/* Makes the queue for this step, and keeps a copy of it. */
static void prepare(void **state, const struct step *step)
{
    struct test_store *store = *state;
    test_store_clean(state);
    step->prepare(store);
    run_own(store, "redis.call('SELECT', 1) redis.call('FLUSHDB') redis.call('SELECT', 0) "
                   "for _, key in ipairs(redis.call('KEYS', '*')) do "
                   "redis.call('COPY', key, key, 'DB', 1) end return 1");
}

/* A table that grows is moved a bit by each reading, which would change the fingerprint. */
static void settle(struct test_store *store)
{
    char words[400] = "HMGET tl:{q}:state";
    for (int i = 0; i < 64; i++)
        strncat(words, " seq", sizeof(words) - strlen(words) - 1);
    tl_reply_free(test_redis_call(store->redis, words));
}

static void bring_back(struct test_store *store)
{
    run_own(store, "redis.call('FLUSHDB') redis.call('SELECT', 1) "
                   "for _, key in ipairs(redis.call('KEYS', '*')) do "
                   "redis.call('COPY', key, key, 'DB', 0) end return 1");
    settle(store);
}

/* ---- one kind of damage ---- */

/* What is damaged: the key `key`; or, unless it is NULL, its field `field`. `how` is the command
 * that makes a key of another type, or the text in the field, NULL if it is gone. */
struct damage {
    const char *key, *field, *how;
};

static void damage(struct test_store *store, const struct damage *d)
{
    char key[TL_KEY_MAX];
    name_key(store, d->key, key);
    if (d->field == NULL) {
        test_redis_ask(store->redis, "DEL %s", key);
        test_redis_ask(store->redis, "%s %s x", d->how, key);
    } else if (d->how != NULL) {
        struct tl_args args = {0};
        tl_args_strs(&args, "HSET", key, d->field, d->how, NULL); /* it may be empty */
        assert_true(tl_redis_do(store->redis, &args, NULL));
        tl_args_free(&args);
    } else {
        test_redis_ask(store->redis, "HDEL %s %s", key, d->field);
    }
}

/* Does the step fail half-way with this damage? Says so. */
static bool fails_half_way(struct test_store *store, const struct step *step,
                           const struct damage *d)
{
    bring_back(store);
    damage(store, d);
    if (run(store, step->source, step->arguments))
        return false;
    bring_back(store);
    damage(store, d);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_false(run(store, step->source, step->arguments));
    if (test_redis_fingerprint(store->redis) == before)
        return false;
    print_error("%s fails half-way: %s %s %s\n", step->name, d->key,
                d->field != NULL ? d->field : "", d->how != NULL ? d->how : "gone");
    return true;
}

/* ---- all steps with all damage ---- */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static unsigned with_other_types(struct test_store *store, const struct step *step)
{
    unsigned failed = 0;
    for (size_t k = 0; k < COUNT(names); k++) {
        failed += fails_half_way(store, step, &(struct damage){.key = names[k], .how = "RPUSH"});
        failed += fails_half_way(store, step, &(struct damage){.key = names[k], .how = "SADD"});
    }
    return failed;
}

static unsigned with_damaged_fields(struct test_store *store, const struct step *step,
                                    const char *key)
{
    static const char *const texts[] = {"rubbish", "-5", "1e400", "inf", "nan", "4.5", "", NULL};
    unsigned failed = 0;
    char words[64];
    bring_back(store);
    snprintf(words, sizeof(words), "HKEYS tl:{q}:%s", key);
    struct tl_reply *fields = test_redis_call(store->redis, words);
    for (size_t f = 0; f < tl_reply_count(fields); f++) {
        struct damage d = {.key = key, .field = tl_reply_string(tl_reply_at(fields, f), NULL)};
        /* Another store: a new incarnation begins, whatever becomes of the step. */
        bool is_store = strcmp(key, "state") == 0 && strcmp(d.field, "store") == 0;
        for (size_t t = 0; !is_store && t < COUNT(texts); t++) {
            d.how = texts[t];
            failed += fails_half_way(store, step, &d);
        }
    }
    tl_reply_free(fields);
    return failed;
}

static void no_step_fails_half_way(void **state)
{
    static const char *const hashes[] = {"state", "config", "sessions", "serials", "lost"};
    struct test_store *store = *state;
    unsigned failed = 0;
    for (size_t i = 0; i < COUNT(steps); i++) {
        prepare(state, &steps[i]);
        failed += with_other_types(store, &steps[i]);
        for (size_t h = 0; h < COUNT(hashes); h++)
            failed += with_damaged_fields(store, &steps[i], hashes[h]);
        bring_back(store);
        uint64_t before = test_redis_fingerprint(store->redis);
        if (!run(store, steps[i].source, steps[i].arguments) ||
            test_redis_fingerprint(store->redis) == before)
            fail_msg("%s does nothing to a queue in order", steps[i].name);
        test_invariants(store->redis, &store->keys);
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_step_fails_half_way, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
