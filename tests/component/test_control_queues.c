/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that create, show, change and delete queues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/text.h"
#include "common/config/queue_settings.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "control_world.h"

#define QUEUES "/v1/admin/queues"
#define Q      QUEUES "/q"

static int setup(void **state)
{
    struct test_control *world = *state;
    (void)test_control_clean(state);
    assert_int_equal(test_call(world, "POST", QUEUES,
                               "{\"name\": \"q\", \"settings\": {\"capacity\": 7, \"rate\": "
                               "{\"admit\": 5}, \"lanes\": [\"a\", \"b\"]}}"),
                     201);
    return 0;
}

static void created_with_its_settings(void **state)
{
    struct test_control *world = *state;
    assert_string_equal(test_member(world, "name"), "q");
    assert_string_equal(test_member(world, "settings.capacity"), "7");
    assert_string_equal(test_member(world, "settings.rate.admit"), "5");
    assert_string_equal(test_member(world, "settings.rate.every"), "10s");
    assert_string_equal(test_member(world, "settings.lanes"), "[\"a\",\"b\"]");
    assert_string_equal(test_member(world, "settings.default_lane"), "b");
    assert_string_equal(test_member(world, "settings.opens_at"), "null");
    assert_string_equal(test_member(world, "settings.session_sliding"), "false");
    assert_string_equal(test_member(world, "settings.paused"), "(none)");
    assert_true(world->answer.etag[0] == '"');
    assert_int_equal(test_call(world, "POST", QUEUES, "{\"name\": \"q\"}"), 409);
    assert_int_equal(test_call(world, "GET", Q, NULL), 200);
    assert_int_equal(test_call(world, "GET", QUEUES "/other", NULL), 404);
    assert_int_equal(test_call(world, "GET", QUEUES "/Bad%20Name", NULL), 404);
    assert_int_equal(test_call(world, "GET", QUEUES, NULL), 200);
    assert_string_equal(test_member(world, "queues.0.queue"), "q");
    assert_string_equal(test_member(world, "queues.1"), "(none)");
    assert_string_equal(test_changes(world, "q"), "ann create");
}

static void what_is_wrong_is_listed(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(test_call(world, "PATCH", Q,
                               "{\"capacity\": -1, \"rate\": {\"evry\": \"1s\"}, \"lanes\": "
                               "[\"x,y\"], \"session_ttl\": true, \"waiting_ttl\": \"9m\"}"),
                     422);
    assert_string_equal(test_member(world, "errors.0.name"), "lanes");
    assert_string_equal(test_member(world, "errors.1.name"), "capacity");
    assert_string_equal(test_member(world, "errors.2.name"), "rate.evry");
    assert_string_equal(test_member(world, "errors.3.name"), "session_ttl");
    assert_string_equal(test_member(world, "errors.4"), "(none)");
    assert_int_equal(test_call(world, "PATCH", Q, "{\"policy\": \"rate\", \"rate.admit\": 0}"),
                     422);
    assert_string_equal(test_member(world, "errors.0.name"), "");
    assert_int_equal(test_call(world, "PATCH", Q, "{}"), 400);
    assert_int_equal(test_call(world, "PATCH", Q, NULL), 400);
    assert_int_equal(test_call(world, "POST", QUEUES, "{\"name\": \"UP\"}"), 422);
    assert_int_equal(test_call(world, "POST", QUEUES, "{\"settings\": {}}"), 400);
    assert_string_equal(test_member(world, "detail"), "the body needs a text \"name\"");
    assert_int_equal(test_call(world, "POST", QUEUES, "{\"name\": \"x\", \"more\": 1}"), 400);
    assert_string_equal(test_member(world, "detail"), "\"more\" is not a member of this request");
    assert_int_equal(test_call(world, "POST", QUEUES,
                               "{\"name\": \"x\", \"settings\": {\"capacity\": \"many\"}}"),
                     422);
    assert_int_equal(test_call(world, "POST", Q "/notice", "{\"text\": 5}"), 400);
    assert_string_equal(test_member(world, "detail"), "\"text\" must be a text");
}

static void a_notice_is_for_all_or_for_each_language(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(
        test_call(world, "POST", Q "/notice", "{\"texts\": {\"ko\": \"K\", \"en\": \"E\"}}"), 200);
    assert_string_equal(test_member(world, "notice"), "E");
    assert_string_equal(test_member(world, "notices"), "{\"en\":\"E\",\"ko\":\"K\"}");
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "notices.ko"), "K");
    /* What the record of changes says takes a notice back. */
    assert_int_equal(test_call(world, "POST", Q "/notice", "{\"text\": \"all\"}"), 200);
    assert_string_equal(test_member(world, "notices"), "null");
    assert_int_equal(test_call(world, "GET", "/v1/admin/changes?queue=q&limit=1", NULL), 200);
    assert_string_equal(test_member(world, "changes.0.before.notice"),
                        "{\"en\":\"E\",\"ko\":\"K\"}");
    assert_string_equal(test_member(world, "changes.0.after.notice"), "all");

    uint64_t before = test_redis_fingerprint(world->store->redis);
    static const char *const wrong[] = {
        "{\"texts\": {}}",
        "{\"texts\": \"x\"}",
        "{\"texts\": {\"en\": \"\"}}",
        "{\"texts\": {\"en\": 5}}",
        "{\"texts\": {\"english\": \"x\"}}",
        "{\"texts\": {\"a-language-without-end\": \"x\"}}",
        "{\"text\": \"a\\u001eb\"}",
        "{\"text\": \"\\u001e[ko] K\\u001e[en] E\"}", /* as the store keeps it */
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(test_call(world, "POST", Q "/notice", wrong[i]), 422);
    assert_int_equal(test_call(world, "POST", Q "/notice", NULL), 400);
    assert_int_equal(
        test_call(world, "POST", Q "/notice", "{\"text\": \"a\", \"texts\": {\"en\": \"b\"}}"),
        400);
    assert_true(test_redis_fingerprint(world->store->redis) == before);
}

static void a_refused_change_changes_nothing(void **state)
{
    struct test_control *world = *state;
    uint64_t before = test_redis_fingerprint(world->store->redis);
    assert_int_equal(test_call(world, "PATCH", Q, "{\"capacity\": 3, \"claim_ttl\": \"long\"}"),
                     422);
    assert_int_equal(test_call(world, "PUT", Q, "{\"capacity\": 3, \"nothing\": 1}"), 422);
    assert_int_equal(test_call(world, "DELETE", Q, NULL), 400);
    assert_int_equal(test_call(world, "DELETE", Q "?confirm=p", NULL), 422);
    assert_int_equal(test_call(world, "POST", Q "/recover", "{}"), 400);
    assert_int_equal(test_call(world, "POST", Q "/recover", "{\"wait_seconds\": \"soon\"}"), 400);
    assert_int_equal(test_call(world, "POST", Q "/pause", "{\"why\": \"x\"}"), 400);
    assert_int_equal(test_call(world, "POST", Q, NULL), 405);
    assert_string_equal(world->answer.allow, "GET, PUT, PATCH, DELETE");
    assert_int_equal(test_call(world, "GET", Q "/nothing", NULL), 404);
    assert_int_equal(test_call(world, "GET", Q "?x=1", NULL), 400);
    assert_int_equal(test_call(world, "GET", Q "/events", NULL), 404);
    assert_true(test_redis_fingerprint(world->store->redis) == before);
}

static void a_patch_names_what_changed(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(test_call(world, "PATCH", Q,
                               "{\"capacity\": 9, \"session_ttl\": \"90s\", \"rate.admit\": 6}"),
                     200);
    assert_string_equal(test_member(world, "settings.capacity"), "9");
    assert_string_equal(test_member(world, "settings.session_ttl"), "90s");
    assert_string_equal(test_member(world, "settings.rate.admit"), "6");
    assert_string_equal(test_member(world, "changed.before.capacity"), "7");
    assert_string_equal(test_member(world, "changed.after.capacity"), "9");
    assert_string_equal(test_member(world, "changed.before.session_ttl"), "10m");
    assert_string_equal(test_member(world, "changed.after.session_ttl"), "90s");
    /* Nothing changes: no entry of the record. */
    assert_int_equal(test_call(world, "PATCH", Q, "{\"capacity\": 9}"), 200);
    assert_string_equal(test_member(world, "changed"), "{\"after\":{},\"before\":{}}");
    assert_string_equal(test_changes(world, "q"), "ann set ann create");
    assert_string_equal(test_member(world, "changes.0.from"), "192.0.2.7");
    assert_string_equal(test_member(world, "changes.0.after.capacity"), "9");
    assert_int_equal(test_call(world, "PATCH", Q, "{\"capacity\": null}"), 200);
    assert_string_equal(test_member(world, "settings.capacity"), "300");
}

static void a_put_replaces_all_but_the_mode(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(test_call(world, "POST", Q "/pause", NULL), 200);
    assert_int_equal(test_call(world, "PUT", Q, "{\"session_ttl\": \"2m\", \"lanes\": [\"c\"]}"),
                     200);
    assert_string_equal(test_member(world, "settings.capacity"), "300");
    assert_string_equal(test_member(world, "settings.session_ttl"), "2m");
    assert_string_equal(test_member(world, "settings.default_lane"), "c");
    assert_string_equal(test_member(world, "settings.mode"), "paused");
    assert_int_equal(test_call(world, "PUT", QUEUES "/new", "{\"capacity\": 1}"), 201);
    assert_string_equal(test_member(world, "name"), "new");
    assert_int_equal(test_call_with(world, "PUT", QUEUES "/newer", "{}", "*", NULL), 412);
}

static void who_comes_second_is_told(void **state)
{
    struct test_control *world = *state;
    char first[TL_CONTROL_ETAG_MAX];
    char list[2 * TL_CONTROL_ETAG_MAX];
    assert_int_equal(test_call(world, "GET", Q, NULL), 200);
    memcpy(first, world->answer.etag, sizeof(first));
    assert_int_equal(test_call_with(world, "PATCH", Q, "{\"capacity\": 8}", first, NULL), 200);
    assert_string_not_equal(world->answer.etag, first);
    assert_int_equal(test_call_with(world, "PATCH", Q, "{\"capacity\": 9}", first, NULL), 412);
    assert_int_equal(test_call_with(world, "POST", Q "/pause", NULL, first, NULL), 412);
    assert_int_equal(test_call_with(world, "DELETE", Q "?confirm=q", NULL, first, NULL), 412);
    assert_int_equal(test_call(world, "GET", Q, NULL), 200);
    assert_string_equal(test_member(world, "settings.capacity"), "8");
    snprintf(list, sizeof(list), "\"x\", %s", world->answer.etag);
    assert_int_equal(test_call_with(world, "PATCH", Q, "{\"capacity\": 9}", list, NULL), 200);
    /* The same settings again have the same ETag: what they were compared with is what there is. */
    assert_int_equal(test_call(world, "PATCH", Q, "{\"capacity\": 7}"), 200);
    assert_string_equal(world->answer.etag, first);
}

static void a_repeated_call_is_done_once(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(test_call_with(world, "PATCH", Q, "{\"capacity\": 8}", NULL, "k1"), 200);
    char etag[TL_CONTROL_ETAG_MAX];
    memcpy(etag, world->answer.etag, sizeof(etag));
    assert_int_equal(test_call(world, "PATCH", Q, "{\"capacity\": 3}"), 200);
    assert_int_equal(test_call_with(world, "PATCH", Q, "{\"capacity\": 8}", NULL, "k1"), 200);
    assert_string_equal(test_member(world, "settings.capacity"), "8"); /* the first answer */
    assert_string_equal(world->answer.etag, etag);
    assert_int_equal(test_call_with(world, "PATCH", Q, "{\"capacity\": 9}", NULL, "k1"), 422);
    assert_int_equal(test_call_with(world, "POST", Q "/pause", NULL, NULL, "k1"), 422);
    assert_int_equal(test_call(world, "GET", Q, NULL), 200);
    assert_string_equal(test_member(world, "settings.capacity"), "3");
    /* A key is one operator's. */
    memcpy(world->actor.name, "bob", 4);
    assert_int_equal(test_call_with(world, "PATCH", Q, "{\"capacity\": 9}", NULL, "k1"), 200);
    memcpy(world->actor.name, "ann", 4);
    /* Creating a queue, and deleting it, are done once, too. */
    assert_int_equal(test_call_with(world, "POST", QUEUES, "{\"name\": \"n\"}", NULL, "k2"), 201);
    assert_int_equal(test_call_with(world, "POST", QUEUES, "{\"name\": \"n\"}", NULL, "k2"), 201);
    assert_int_equal(test_call_with(world, "DELETE", QUEUES "/n?confirm=n", NULL, NULL, "k3"), 200);
    assert_int_equal(test_call_with(world, "DELETE", QUEUES "/n?confirm=n", NULL, NULL, "k3"), 200);
    assert_int_equal(test_call(world, "DELETE", QUEUES "/n?confirm=n", NULL), 404);
    assert_int_equal(test_call_with(world, "PATCH", Q, "{\"capacity\": 9}", NULL, ""), 400);
    assert_true(test_redis_ask(world->store->redis, "PTTL tl:{q}:idempotent") > 80000000);
}

static void the_mode_follows_its_rules(void **state)
{
    struct test_control *world = *state;
    const struct {
        const char *call, *mode;
        int status;
    } steps[] = {
        {"pause", "paused", 200},      {"resume", "open", 200},
        {"drain", "draining", 200},    {"passthrough", "passthrough", 200},
        {"sell-out", "sold_out", 200}, {"open", "sold_out", 409},
        {"close", "closed", 200},      {"open", "open", 200},
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        char target[64];
        snprintf(target, sizeof(target), Q "/%s", steps[i].call);
        assert_int_equal(test_call(world, "POST", target, NULL), steps[i].status);
        assert_int_equal(test_call(world, "GET", Q, NULL), 200);
        assert_string_equal(test_member(world, "settings.mode"), steps[i].mode);
    }
    assert_string_equal(
        test_changes(world, "q"),
        "ann mode ann mode ann mode ann mode ann mode ann mode ann mode ann create");
}

static void notice_recovery_and_draw(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(test_call(world, "POST", Q "/notice", "{\"text\": \"soon\"}"), 200);
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "notice"), "soon");
    assert_int_equal(test_call(world, "POST", Q "/recover", "{\"wait_seconds\": 90}"), 200);
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "phase"), "recovering");
    assert_int_equal(test_call(world, "POST", Q "/recover", "{\"wait_seconds\": 0}"), 200);
    assert_int_equal(test_call(world, "POST", Q "/draw", NULL), 422); /* there is no opening */
    assert_int_equal(
        test_call(world, "POST", Q "/draw", "{\"opens_at\": \"2999-01-01T00:00:00Z\"}"), 200);
    assert_int_equal(test_call(world, "GET", Q "/draw", NULL), 200);
    assert_string_equal(test_member(world, "order"), "draw");
    assert_string_equal(test_member(world, "phase"), "none");
    assert_string_equal(test_member(world, "opens_at"), "2999-01-01T00:00:00Z");
    assert_string_equal(test_changes(world, "q"),
                        "ann set ann recover ann recover ann notice ann create");
}

/* A worker tells the store of a generation that it takes for lost. */
static void remember(struct test_store *store, uint64_t generation)
{
    const struct tl_command lost = {.kind = TL_COMMAND_LOST, .numbers = {generation, 4, 0, 1}};
    test_redis_ask(store->redis, "HSET %s fence 1", store->keys.names[TL_KEY_STATE]);
    test_add(store, &lost);
    test_batch(store);
    test_exceptions_are(store, "0:3:0");
}

static void a_deleted_queue_is_gone_for_good(void **state)
{
    struct test_control *world = *state;
    struct tl_redis *redis = world->store->redis;
    struct tl_keys *keys = &world->store->keys;
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    bool created;
    tl_keys_init(keys, "tl:", "q");
    long long generation = test_state(world->store, "generation");
    assert_int_equal(test_call(world, "DELETE", Q "?confirm=q", NULL), 200);
    assert_int_equal(test_call(world, "GET", Q, NULL), 404);
    assert_int_equal(test_call(world, "GET", QUEUES, NULL), 200);
    assert_string_equal(test_member(world, "queues"), "[]");
    assert_string_equal(test_changes(world, "q"), "ann delete ann create");
    assert_in_range(test_redis_number(redis, "PTTL tl:{q}:changes"), 2591000000, 2592000000);
    assert_string_equal(test_changes(world, NULL), "ann delete");
    assert_string_equal(test_member(world, "changes.0.queue"), "q");
    /* No program creates it again, whether it is in its file or in its memory. */
    tl_queue_settings_defaults(&settings);
    assert_false(
        tl_queue_ensure(TEST_SITE(redis), "tl:", "q", &settings, &test_actor, &created, &err));
    assert_int_equal(err.kind, TL_ERR_RETIRED);
    assert_false(
        tl_queue_bring_back(TEST_SITE(redis), "tl:", "q", &settings, &test_actor, NULL, &err));
    /* What a worker sent late does not come into the next queue of the name. */
    test_redis_ask(redis, "XADD tl:{q}:ingest * d late");
    test_redis_pass_time(redis, 2); /* changes of two records are in the order of milliseconds */
    assert_int_equal(test_call(world, "PUT", Q, "{\"capacity\": 2}"), 201);
    assert_int_equal(test_redis_number(redis, "XLEN tl:{q}:ingest"), 0);
    assert_true(test_state(world->store, "generation") > generation);
    assert_string_equal(test_changes(world, "q"), "ann create ann delete ann create");
    /* Nobody's memory of the deleted one begins a recovery, and a recovery takes none of its
     * places. */
    remember(world->store, (uint64_t)generation);
    assert_int_equal(test_state(world->store, "recover_until"), -1);
    assert_int_equal(test_call(world, "POST", Q "/recover", "{\"wait_seconds\": 3600}"), 200);
    remember(world->store, (uint64_t)generation);
    assert_int_equal(test_state(world->store, "lost_generation"),
                     test_state(world->store, "generation"));
}

static void no_more_queues_than_allowed(void **state)
{
    struct test_control *world = *state;
    for (int i = 0; i < 4; i++) {
        char body[64];
        snprintf(body, sizeof(body), "{\"name\": \"more-%d\"}", i);
        assert_int_equal(test_call(world, "POST", QUEUES, body), 201);
    }
    assert_int_equal(test_call(world, "POST", QUEUES, "{\"name\": \"sixth\"}"), 409);
    assert_int_equal(test_call(world, "DELETE", Q "?confirm=q", NULL), 200);
    assert_int_equal(test_call(world, "POST", QUEUES, "{\"name\": \"sixth\"}"), 201);
}

static void set_cursor(struct tl_redis *redis, const char *field, const char *cursor)
{
    struct tl_args args = {0};
    struct tl_error err = {0};
    tl_args_strs(&args, "HSET", "tl:{q}:webhooks", field, cursor, NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, &err);
    assert_non_null(reply);
    tl_reply_free(reply);
    tl_args_free(&args);
}

/* The keys of a list's entries, page after page of this size, separated by spaces. */
static void read_pages(struct test_control *world, const char *path, const char *list,
                       const char *key, int limit, char keys[256])
{
    char target[256];
    char last[128] = "";
    bool more = true;
    keys[0] = '\0';
    for (int pages = 0; more; pages++) {
        assert_true(pages < 20);
        snprintf(target, sizeof(target), "%s?limit=%d%s%s", path, limit,
                 *last != '\0' ? "&starting_after=" : "", last);
        assert_int_equal(test_call(world, "GET", target, NULL), 200);
        json_t *entries = json_object_get(world->answer.body, list);
        assert_true((int)json_array_size(entries) <= limit);
        for (size_t i = 0; i < json_array_size(entries); i++) {
            const char *name = json_string_value(json_object_get(json_array_get(entries, i), key));
            size_t used = strlen(keys);
            snprintf(keys + used, 256 - used, "%s%s", used > 0 ? " " : "", name);
            const char *id = json_string_value(json_object_get(json_array_get(entries, i), "id"));
            (void)tl_percent_encode(id != NULL ? id : name, last, sizeof(last));
        }
        more = json_is_true(json_object_get(world->answer.body, "has_more"));
        assert_true(!more || json_array_size(entries) > 0);
    }
}

static void lists_come_in_pages(void **state)
{
    struct test_control *world = *state;
    static const char *const bodies[] = {"{\"prefix\": \"10.0.0.0/8\"}",
                                         "{\"prefix\": \"10.0.0.0/8\", \"queue\": \"q\"}",
                                         "{\"prefix\": \"192.0.2.0/24\", \"for_seconds\": 60}"};
    char keys[256];
    for (size_t i = 0; i < 3; i++) {
        char body[64];
        snprintf(body, sizeof(body), "{\"name\": \"more-%zu\"}", i);
        assert_int_equal(test_call(world, "POST", QUEUES, body), 201);
        assert_int_equal(test_call(world, "POST", "/v1/admin/blocks", bodies[i]), 201);
    }
    assert_string_equal(test_member(world, "for_seconds"), "60");
    for (int limit = 1; limit <= 5; limit++) {
        read_pages(world, QUEUES, "queues", "queue", limit, keys);
        assert_string_equal(keys, "more-0 more-1 more-2 q");
        read_pages(world, "/v1/admin/blocks", "blocks", "id", limit, keys);
        assert_string_equal(keys, "10.0.0.0/8 10.0.0.0/8 q 192.0.2.0/24");
    }
    /* What the key names may be gone, and what comes behind it is read all the same. */
    assert_int_equal(test_call(world, "GET", QUEUES "?starting_after=more-1x", NULL), 200);
    assert_string_equal(test_member(world, "queues.0.queue"), "more-2");
    assert_int_equal(test_call(world, "GET", QUEUES "?starting_after=z", NULL), 200);
    assert_string_equal(test_member(world, "queues"), "[]");
    assert_int_equal(test_call(world, "GET", QUEUES "?limit=0", NULL), 400);
    assert_int_equal(test_call(world, "GET", QUEUES "?limit=1001", NULL), 400);
    assert_int_equal(test_call(world, "POST", "/v1/admin/blocks",
                               "{\"prefix\": \"192.0.2.0/24\", \"for_seconds\": \"1h\"}"),
                     400);
}

/* One that is being deleted, or created, is on the list, but has no keys. */
static void a_queue_without_keys_takes_no_place_on_a_page(void **state)
{
    struct test_control *world = *state;
    char keys[256];
    assert_int_equal(test_call(world, "POST", QUEUES, "{\"name\": \"z\"}"), 201);
    test_redis_ask(world->store->redis, "SADD tl:queues a b r");
    for (int limit = 1; limit <= 3; limit++) {
        read_pages(world, QUEUES, "queues", "queue", limit, keys);
        assert_string_equal(keys, "q z");
        read_pages(world, "/v1/admin/webhooks", "webhooks", "id", limit, keys);
        assert_string_equal(keys, "");
    }
}

static void a_history_begins_in_1970(void **state)
{
    struct test_control *world = *state;
    const char *times = Q "/history?from=1969-12-31T23:59:59Z&to=1900-01-01T00:00:00Z";
    assert_int_equal(test_call(world, "GET", times, NULL), 200);
    assert_string_equal(test_member(world, "points"), "[]");
    assert_int_equal(test_call(world, "GET", Q "/history?from=soon", NULL), 400);
    assert_string_equal(test_member(world, "type"), "/problems/bad-query");
}

static void a_malformed_query_is_a_bad_query(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(test_call(world, "GET", QUEUES "?limit=%", NULL), 400);
    assert_string_equal(test_member(world, "type"), "/problems/bad-query");
}

/* 1 may mean 1% or all. */
static void a_share_is_no_bare_number(void **state)
{
    struct test_control *world = *state;
    static const struct {
        const char *value, *kept; /* NULL: refused */
    } rows[] = {{"\"1%\"", "1%"}, {"0.01", "1%"}, {"0.5", "50%"}, {"1", NULL},
                {"\"1\"", NULL},  {"80", NULL},   {"1.5", NULL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char body[64];
        snprintf(body, sizeof(body), "{\"reopen\": {\"margin\": %s}}", rows[i].value);
        assert_int_equal(test_call(world, "PATCH", Q, body), rows[i].kept != NULL ? 200 : 422);
        if (rows[i].kept != NULL)
            assert_string_equal(test_member(world, "settings.reopen.margin"), rows[i].kept);
        else
            assert_string_equal(test_member(world, "errors.0.name"), "reopen.margin");
    }
}

/* What an operator reads of two webhooks, from what the notifier keeps. */
static void the_state_of_webhooks_is_told(void **state)
{
    char keys[256];
    struct test_control *world = *state;
    struct tl_redis *redis = world->store->redis;
    long long now = test_redis_ms(redis);
    assert_int_equal(test_call(world, "GET", Q "/webhooks", NULL), 200);
    assert_string_equal(test_member(world, "webhooks"), "[]");
    assert_int_equal(test_call(world, "POST", Q "/webhooks/site/test", NULL), 409);
    /* Entries 3 to 5 of the journal are left: "late" was told of the first, "site" of four. */
    test_redis_ask(redis, "HSET tl:{q}:webhooks journaled 5 wanted some:100");
    for (long long n = 3; n <= 5; n++)
        test_redis_ask(redis, "XADD tl:{q}:journal %lld-0 n %lld at %lld what paused data -", n, n,
                       now - 60000);
    set_cursor(redis, "cursor:site", "4-0 4");
    set_cursor(redis, "cursor:late", "1-0 1");
    test_redis_ask(redis, "HSET tl:{q}:webhooks state:site damaged");
    test_redis_ask(redis, "HSET tl:{q}:webhooks state:late {\"since\":%lld,\"problem\":\"500\"}",
                   now - 1000);
    assert_int_equal(test_call(world, "GET", "/v1/admin/webhooks", NULL), 200);
    assert_string_equal(test_member(world, "webhooks.0.state"), "unwatched"); /* no notifier runs */
    test_redis_ask(redis, "SET tl:{q}:notifier somebody");
    assert_int_equal(test_call(world, "GET", "/v1/admin/webhooks", NULL), 200);
    assert_string_equal(test_member(world, "webhooks.0.queue"), "q");
    read_pages(world, "/v1/admin/webhooks", "webhooks", "id", 1, keys);
    assert_string_equal(keys, "q/late q/site");
    read_pages(world, Q "/webhooks", "webhooks", "id", 1, keys);
    assert_string_equal(keys, "q/late q/site");
    assert_int_equal(test_call(world, "GET", "/v1/admin/webhooks", NULL), 200);
    assert_string_equal(test_member(world, "webhooks.0.name"), "late");
    assert_string_equal(test_member(world, "webhooks.0.state"), "dead"); /* entry 2 is gone */
    assert_string_equal(test_member(world, "webhooks.0.pending"), "3");
    assert_string_equal(test_member(world, "webhooks.0.lost"), "1");
    assert_string_equal(test_member(world, "webhooks.0.problem"), "500");
    long long oldest = strtoll(test_member(world, "webhooks.0.oldest_pending_ms"), NULL, 10);
    assert_true(oldest >= 60000 && oldest < 90000);
    assert_string_equal(test_member(world, "webhooks.1.name"), "site");
    assert_string_equal(test_member(world, "webhooks.1.state"),
                        "new"); /* what is damaged is not there */
    assert_string_equal(test_member(world, "webhooks.1.pending"), "1");
    assert_string_equal(test_member(world, "webhooks.1.lost"), "0");
    assert_string_equal(test_member(world, "webhooks.1.event"), "4");
    /* Nothing is gone, but what waits is older than it is kept. */
    set_cursor(redis, "cursor:late", "2-0 2");
    assert_int_equal(test_call(world, "GET", Q "/webhooks", NULL), 200);
    assert_string_equal(test_member(world, "webhooks.0.state"), "failing");
    test_redis_ask(redis, "XTRIM tl:{q}:journal MAXLEN 0");
    test_redis_ask(redis, "XADD tl:{q}:journal 6-0 n 3 at %lld what paused data -",
                   now - world->config->retention.webhooks_ms - 60000);
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "webhooks.0.state"), "dead");
    assert_string_equal(test_member(world, "webhooks.0.lost"), "0");
    /* The journal is gone: so is what the webhook was not told of. */
    test_redis_ask(redis, "DEL tl:{q}:journal");
    assert_int_equal(test_call(world, "GET", Q "/webhooks", NULL), 200);
    assert_string_equal(test_member(world, "webhooks.0.pending"), "0");
    assert_string_equal(test_member(world, "webhooks.0.lost"), "3");
    assert_string_equal(test_member(world, "webhooks.0.oldest_pending_ms"), "null");
}

static void while_the_store_is_away_calls_say_so(void **state)
{
    struct test_control *world = *state;
    test_redis_kill(world->store->server);
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 503);
    assert_true(world->answer.retry_after_s > 0);
    assert_int_equal(test_call(world, "PATCH", Q, "{\"capacity\": 1}"), 503);
    test_redis_restart(world->store->server);
    assert_int_equal(test_call(world, "GET", QUEUES, NULL), 200);
    tl_redis_free(&world->store->redis);
    world->store->redis = test_redis_connect(world->store->server);
}

/* Those of the file stand among the others by their names. */
static void webhooks_are_sorted(void **state)
{
    struct test_control *world = *state;
    struct tl_config *config = (struct tl_config *)(uintptr_t)world->config;
    struct tl_webhook_config mine = {.name = "none", .queues = "*"};
    char keys[256];
    test_redis_ask(world->store->redis, "HSET tl:{q}:webhooks journaled 5 wanted some:100");
    set_cursor(world->store->redis, "cursor:site", "4-0 4");
    set_cursor(world->store->redis, "cursor:late", "1-0 1");
    config->webhooks = &mine;
    config->n_webhooks = 1;
    read_pages(world, Q "/webhooks", "webhooks", "name", 1, keys);
    config->webhooks = NULL;
    config->n_webhooks = 0;
    assert_string_equal(keys, "late none site");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(created_with_its_settings, setup),
        cmocka_unit_test_setup(what_is_wrong_is_listed, setup),
        cmocka_unit_test_setup(a_notice_is_for_all_or_for_each_language, setup),
        cmocka_unit_test_setup(a_refused_change_changes_nothing, setup),
        cmocka_unit_test_setup(a_patch_names_what_changed, setup),
        cmocka_unit_test_setup(a_put_replaces_all_but_the_mode, setup),
        cmocka_unit_test_setup(who_comes_second_is_told, setup),
        cmocka_unit_test_setup(a_repeated_call_is_done_once, setup),
        cmocka_unit_test_setup(the_mode_follows_its_rules, setup),
        cmocka_unit_test_setup(notice_recovery_and_draw, setup),
        cmocka_unit_test_setup(a_deleted_queue_is_gone_for_good, setup),
        cmocka_unit_test_setup(no_more_queues_than_allowed, setup),
        cmocka_unit_test_setup(lists_come_in_pages, setup),
        cmocka_unit_test_setup(a_queue_without_keys_takes_no_place_on_a_page, setup),
        cmocka_unit_test_setup(a_history_begins_in_1970, setup),
        cmocka_unit_test_setup(a_malformed_query_is_a_bad_query, setup),
        cmocka_unit_test_setup(a_share_is_no_bare_number, setup),
        cmocka_unit_test_setup(webhooks_are_sorted, setup),
        cmocka_unit_test_setup(the_state_of_webhooks_is_told, setup),
        cmocka_unit_test_setup(while_the_store_is_away_calls_say_so, setup),
    };
    return cmocka_run_group_tests_name("control_queues", tests, test_control_open,
                                       test_control_close);
}
