/* SPDX-License-Identifier: Apache-2.0 */
/* The record of changes: what each function writes, and reading it over all queues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/control/call.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/tokens.h"
#include "common/store/troubles.h"
#include "ingest.h"

enum { SEEN_MAX = 100, TEXT_MAX = 200 };

/* The changes read last, newest first: "queue what before after". */
struct seen {
    size_t n;
    char lines[SEEN_MAX][TEXT_MAX];
    char ids[SEEN_MAX][TL_CHANGES_ID_MAX + 1];
};

static void see(json_t *change, struct seen *seen)
{
    json_int_t at_ms;
    const char *id, *queue, *who, *from, *what, *before, *after;
    assert_int_equal(json_unpack(change, "{s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:s !}", "id", &id,
                                 "queue", &queue, "at", &at_ms, "who", &who, "from", &from, "what",
                                 &what, "before", &before, "after", &after),
                     0);
    assert_true(seen->n < SEEN_MAX);
    assert_true(at_ms > 1700000000000);
    assert_string_equal(who, test_actor.name);
    assert_string_equal(from, test_actor.from);
    snprintf(seen->lines[seen->n], TEXT_MAX, "%s|%s|%s|%s", queue, what, before, after);
    snprintf(seen->ids[seen->n++], sizeof(seen->ids[0]), "%s", id);
}

/* As a program asks; the caller frees the list. */
static json_t *ask_changes(const struct test_store *store, const struct tl_changes_query *query,
                           struct tl_error *err)
{
    const struct tl_redis_settings redis = {.url = test_redis_url(store->server),
                                            .timeout_ms = 60000};
    struct tl_store *connections = tl_store_new(&redis, err);
    json_t *list = connections != NULL ? tl_changes_list(connections, "tl:", query, err) : NULL;
    tl_store_free(&connections);
    return list;
}

static void read_changes(struct test_store *store, const char *queue, const char *before,
                         size_t limit, struct seen *seen)
{
    struct tl_error err = {0};
    const struct tl_changes_query query = {.queue = queue, .before = before, .limit = limit};
    json_t *list = ask_changes(store, &query, &err);
    if (list == NULL)
        fail_msg("%s", err.text);
    seen->n = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        see(json_array_get(list, i), seen);
    json_decref(list);
}

static const char *newest(struct test_store *store)
{
    static struct seen seen;
    read_changes(store, NULL, NULL, 1, &seen);
    return seen.n > 0 ? seen.lines[0] : "";
}

static size_t count(struct test_store *store)
{
    static struct seen seen;
    read_changes(store, NULL, NULL, SEEN_MAX, &seen);
    return seen.n;
}

static int setup(void **state)
{
    (void)test_store_clean(state);
    struct test_store *store = *state;
    test_store_queue(store, "lanes=vip,normal capacity=1 session_ttl=1h waiting_ttl=1h");
    test_redis_ask(store->redis, "SADD tl:queues q");
    return 0;
}

static void set(struct test_store *store, const char *name, const char *value)
{
    struct tl_error err = {0};
    if (!test_queue_set(store->redis, &store->keys, name, value, &err))
        fail_msg("%s", err.text);
}

static void a_creation_has_all_settings(void **state)
{
    struct test_store *store = *state;
    assert_int_equal(count(store), 1);
    assert_memory_equal(newest(store), "q|create|{}|{", 13);
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    assert_true(tl_queue_ensure(TEST_SITE(store->redis), "tl:", "q", &settings, &test_actor, NULL,
                                NULL)); /* exists */
    assert_int_equal(count(store), 1);
}

static void settings_have_the_members_that_changed(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_changes_made made = {0};
    struct tl_queue_change list[] = {{"capacity", "7"}, {"session_ttl", "1h"}};
    const struct tl_queue_changes changes = {.list = list, .n = 2};
    assert_true(tl_queue_configure(store->redis, &store->keys, &changes, &test_actor, &made, &err));
    assert_string_equal(made.before, "{\"capacity\":\"1\"}");
    assert_string_equal(made.after, "{\"capacity\":\"7\"}");
    tl_changes_made_free(&made);
    assert_string_equal(newest(store), "q|set|{\"capacity\":\"1\"}|{\"capacity\":\"7\"}");
    /* The same again changes nothing. */
    assert_true(tl_queue_configure(store->redis, &store->keys, &changes, &test_actor, &made, &err));
    assert_string_equal(made.after, "{}");
    tl_changes_made_free(&made);
    assert_int_equal(count(store), 2);
    assert_false(test_queue_set(store->redis, &store->keys, "capacity", "many",
                                &err)); /* nor does what is refused */
    assert_int_equal(count(store), 2);
}

static void modes_and_notices(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    set(store, "mode", "paused");
    assert_non_null(strstr(newest(store), "q|mode|"));
    assert_non_null(strstr(newest(store), "\"mode\":\"open\""));
    assert_non_null(strstr(newest(store), "\"mode\":\"paused\""));
    for (int i = 0; i < 2; i++) /* the second says the same */
        assert_true(tl_queue_notice(store->redis, &store->keys, "soon", &test_actor, &err));
    assert_string_equal(newest(store), "q|notice|{\"notice\":\"\"}|{\"notice\":\"soon\"}");
    assert_int_equal(count(store), 3);
}

static void recoveries(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    assert_true(tl_recovery_end_in(store->redis, &store->keys, 60000, &test_actor, &err));
    assert_non_null(
        strstr(newest(store), "q|recover|{\"recover_until\":\"0\"}|{\"recover_until\":"));
    assert_int_equal(count(store), 2);
}

/* Runs one of the functions of the command line. */
static void run(struct test_store *store, const char *source, const char *arguments)
{
    char error[320];
    struct tl_reply *reply = test_function(store->redis, source, &store->keys, arguments, error);
    if (reply == NULL)
        fail_msg("%s", error);
    tl_reply_free(reply);
}

static void visitors(void **state)
{
    struct test_store *store = *state;
    test_join_many(store, "a", 3, 1);
    assert_int_equal(test_admit(store, 1), 1);
    run(store, TL_FN_MOVE, "1000 a2 vip");
    const char *line = newest(store);
    assert_non_null(strstr(line, "q|move|"));
    assert_non_null(strstr(line, "\"lane\":\"normal\""));
    assert_non_null(strstr(line, "\"lane\":\"vip\""));
    assert_non_null(strstr(line, "\"visitor\":\"a2\""));
    run(store, TL_FN_MOVE, "1000 a2 vip"); /* there already */
    run(store, TL_FN_REMOVE, "1000 a1");
    assert_non_null(strstr(newest(store), "q|remove|"));
    assert_non_null(strstr(newest(store), "\"state\":\"active\""));
    run(store, TL_FN_REMOVE, "1000 a3");
    assert_non_null(strstr(newest(store), "\"state\":\"waiting\""));
    run(store, TL_FN_REMOVE, "1000 a3"); /* gone already */
    run(store, TL_FN_REMOVE, "1000 nobody");
    assert_int_equal(count(store), 4);
}

static void block(struct test_store *store, const char *words)
{
    char command[256];
    struct tl_args args = {0};
    struct tl_error err = {0};
    snprintf(command, sizeof(command), "%s", words);
    tl_call_begin_on(&args, TL_FN_BLOCK, 2);
    tl_args_strs(&args, "tl:blocks{tl:queues}", "tl:changes{tl:queues}", NULL);
    for (char *rest = NULL, *word = strtok_r(command, ",", &rest); word != NULL;
         word = strtok_r(NULL, ",", &rest))
        tl_args_str(&args, word);
    tl_actor_append(&test_actor, &args);
    if (!tl_redis_do(store->redis, &args, &err))
        fail_msg("%s", err.text);
    tl_args_free(&args);
}

static void blocks_belong_to_no_queue(void **state)
{
    struct test_store *store = *state;
    struct seen seen;
    block(store, "block,192.0.2.0/24,0");
    assert_memory_equal(newest(store), "|block|{}|{", 11);
    assert_non_null(strstr(newest(store), "\"until\":\"0\""));
    assert_non_null(strstr(newest(store), "\"prefix\":\"192.0.2.0\\/24\""));
    block(store, "block,192.0.2.0/24,0"); /* as before */
    block(store, "unblock,192.0.2.0/24,0");
    assert_non_null(strstr(newest(store), "|unblock|{\""));
    assert_non_null(strstr(newest(store), "\"}|{}"));
    block(store, "unblock,192.0.2.0/24,0"); /* none */
    block(store, "clean,,0");
    assert_int_equal(count(store), 3);
    /* One of a queue is found with that queue's. */
    block(store, "block,192.0.2.7 q,60000");
    read_changes(store, "q", NULL, 10, &seen);
    assert_int_equal(seen.n, 2);
    assert_memory_equal(seen.lines[0], "q|block|{}|", 11);
    read_changes(store, "other", NULL, 10, &seen);
    assert_int_equal(seen.n, 0);
}

static void mending_is_recorded(void **state)
{
    struct test_store *store = *state;
    struct tl_queue_settings settings;
    struct tl_error err = {.kind = TL_ERR_STORE};
    struct tl_troubles *troubles = tl_troubles_new();
    tl_queue_settings_defaults(&settings);
    const struct tl_mend_offer offer = {
        .from_memory = true, .settings = &settings, .actor = &test_actor};
    test_redis_ask(store->redis, "HDEL %s claim_ttl", store->keys.names[TL_KEY_CONFIG]);
    assert_true(tl_queue_set_aside(troubles, store->redis, &store->keys, &offer, &err, 0));
    assert_string_equal(newest(store), "q|restore|{}|{\"claim_ttl\":\"120000\"}");
    tl_troubles_free(&troubles);
}

/* A change that cannot be recorded is not made. */
static void a_key_of_another_type_stops_the_change(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    char error[320];
    test_redis_ask(store->redis, "DEL tl:{q}:changes");
    test_redis_ask(store->redis, "SADD tl:{q}:changes x");
    test_join_many(store, "a", 2, 1);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_false(test_queue_set(store->redis, &store->keys, "capacity", "7", &err));
    assert_false(tl_queue_notice(store->redis, &store->keys, "soon", &test_actor, &err));
    assert_false(tl_recovery_end_in(store->redis, &store->keys, 60000, &test_actor, &err));
    assert_null(test_function(store->redis, TL_FN_MOVE, &store->keys, "1000 a2 vip", error));
    assert_null(test_function(store->redis, TL_FN_REMOVE, &store->keys, "1000 a2", error));
    assert_true(before == test_redis_fingerprint(store->redis));
}

static void the_record_is_bounded(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    char text[32];
    struct tl_actor actor = test_actor;
    actor.kept = 100;
    for (int i = 0; i < 450; i++) {
        snprintf(text, sizeof(text), "notice-%d", i);
        assert_true(tl_queue_notice(store->redis, &store->keys, text, &actor, &err));
    }
    long long kept = test_redis_number(store->redis, "XLEN tl:{q}:changes");
    assert_in_range(kept, 100, 300); /* Redis drops whole blocks of a hundred */
}

/* ---- reading ---- */

static void add(struct test_store *store, const char *key, const char *id, const char *queue)
{
    test_redis_ask(store->redis,
                   "XADD %s %s at 1732320000000 who tester from test what set before {} after {} "
                   "queue %s",
                   key, id, queue);
}

/* Equal times in several streams, and pages that end between them. */
static void pages_of_all_queues_miss_and_repeat_nothing(void **state)
{
    struct test_store *store = *state;
    struct seen all, page;
    test_redis_ask(store->redis, "DEL tl:{q}:changes");
    test_redis_ask(store->redis, "SADD tl:queues a b c");
    for (int i = 1; i <= 6; i++) {
        char id[32], key[32];
        for (int q = 0; q < 3; q++) {
            snprintf(key, sizeof(key), "tl:{%c}:changes", 'a' + q);
            snprintf(id, sizeof(id), "%d-%d", 1000 + i / 2, i);
            if (i % 3 != q)
                add(store, key, id, "x");
        }
        add(store, "tl:changes{tl:queues}", id, "gone");
    }
    read_changes(store, NULL, NULL, SEEN_MAX, &all);
    assert_int_equal(all.n, 18);
    for (size_t limit = 1; limit <= 5; limit++) {
        size_t n = 0;
        const char *before = NULL;
        do {
            read_changes(store, NULL, before, limit, &page);
            for (size_t i = 0; i < page.n; i++)
                assert_string_equal(page.ids[i], all.ids[n++]);
            before = n > 0 ? all.ids[n - 1] : NULL;
        } while (page.n == limit);
        assert_int_equal(n, 18);
    }
    read_changes(store, "gone", NULL, SEEN_MAX, &page);
    assert_int_equal(page.n, 6);
}

static void bad_questions_are_refused(void **state)
{
    struct test_store *store = *state;
    static const struct tl_changes_query bad[] = {
        {.limit = 1, .before = ""},       {.limit = 1, .before = "12"},
        {.limit = 1, .before = "1-x"},    {.limit = 1, .before = "1-1:"},
        {.limit = 1, .before = "1-1:NO"}, {.limit = 1, .before = "99999999999999999999999-1"},
        {.limit = 1, .queue = "../x"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tl_error err = {0};
        assert_null(ask_changes(store, &bad[i], &err));
        assert_int_equal(err.kind, TL_ERR_INVALID);
    }
}

/* ---- tokens ---- */

static void tokens_are_made_found_and_revoked(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    const struct tl_token_key key = {.bytes = {1}}, other = {.bytes = {2}};
    struct tl_token_hash hash;
    struct tl_token_record found, *list;
    enum tl_token_role role;
    char text[TL_TOKEN_TEXT_MAX + 1], forged[TL_TOKEN_TEXT_MAX + 1];
    bool is_found;
    size_t n;
    tl_token_make("jo", text);
    tl_token_make("jo", forged);
    tl_token_hash(&key, text, strlen(text), &hash);
    assert_true(
        tl_tokens_add(store->redis, "tl:", "jo", TL_TOKEN_OPERATOR, &hash, &test_actor, &err));
    assert_memory_equal(newest(store), "|token|{}|{", 11);
    assert_false(
        tl_tokens_add(store->redis, "tl:", "jo", TL_TOKEN_ADMIN, &hash, &test_actor, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    const struct {
        const struct tl_token_key *key;
        const char *text;
        enum tl_token_role role;
    } cases[] = {{&key, text, TL_TOKEN_OPERATOR},
                 {&other, text, TL_TOKEN_NOTHING},
                 {&key, forged, TL_TOKEN_NOTHING},
                 {&key, "tl_jo_", TL_TOKEN_NOTHING},
                 {&key, "", TL_TOKEN_NOTHING}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(tl_tokens_check(store->redis, "tl:", cases[i].key, cases[i].text,
                                    strlen(cases[i].text), &role, &found, &err));
        assert_int_equal(role, cases[i].role);
    }
    assert_string_equal(found.name, "jo");
    assert_string_equal(found.made_by, test_actor.name);
    assert_int_equal(found.last_used_ms, 0);
    assert_true(tl_tokens_used(store->redis, "tl:", "jo", &err));
    assert_true(tl_tokens_list(store->redis, "tl:", &list, &n, &err));
    assert_int_equal(n, 1);
    assert_true(list[0].last_used_ms >= list[0].made_at_ms && list[0].made_at_ms > 0);
    free(list);
    assert_true(tl_tokens_revoke(store->redis, "tl:", "jo", &test_actor, &is_found, &err));
    assert_true(is_found);
    assert_non_null(strstr(newest(store), "\"role\":\"operator\""));
    assert_memory_equal(newest(store), "|revoke|{\"", 10);
    assert_true(tl_tokens_revoke(store->redis, "tl:", "jo", &test_actor, &is_found, &err));
    assert_false(is_found);
    assert_true(tl_tokens_check(store->redis, "tl:", &key, text, strlen(text), &role, NULL, &err));
    assert_int_equal(role, TL_TOKEN_NOTHING);
    assert_int_equal(count(store), 3);
}

static void there_is_a_limit_of_tokens(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    const struct tl_token_hash hash = {0};
    char name[16];
    for (int i = 0; i < TL_TOKENS_MAX; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        assert_true(
            tl_tokens_add(store->redis, "tl:", name, TL_TOKEN_VIEWER, &hash, &test_actor, &err));
    }
    assert_false(
        tl_tokens_add(store->redis, "tl:", "one-more", TL_TOKEN_VIEWER, &hash, &test_actor, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    assert_false(
        tl_tokens_add(store->redis, "tl:", "Not Valid", TL_TOKEN_VIEWER, &hash, &test_actor, &err));
    assert_int_equal(test_redis_number(store->redis, "HLEN tl:tokens{tl:queues}"), TL_TOKENS_MAX);
}

/* A record written by hand is no token. */
static void damaged_records_are_no_tokens(void **state)
{
    struct test_store *store = *state;
    static const char *const bad[] = {
        "x", "{}", "[]", "{\"role\":\"king\",\"hash\":\"00\",\"made_at\":1,\"made_by\":\"me\"}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tl_token_record token, *list;
        struct tl_error err = {0};
        bool found = true;
        size_t n = 1;
        test_redis_ask(store->redis, "HSET tl:tokens{tl:queues} jo %s", bad[i]);
        assert_true(tl_tokens_find(store->redis, "tl:", "jo", &token, &found, &err));
        assert_false(found);
        assert_true(tl_tokens_list(store->redis, "tl:", &list, &n, &err));
        assert_int_equal(n, 0);
        free(list);
        assert_true(tl_tokens_used(store->redis, "tl:", "jo", &err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_creation_has_all_settings, setup),
        cmocka_unit_test_setup(settings_have_the_members_that_changed, setup),
        cmocka_unit_test_setup(modes_and_notices, setup),
        cmocka_unit_test_setup(recoveries, setup),
        cmocka_unit_test_setup(visitors, setup),
        cmocka_unit_test_setup(blocks_belong_to_no_queue, setup),
        cmocka_unit_test_setup(mending_is_recorded, setup),
        cmocka_unit_test_setup(a_key_of_another_type_stops_the_change, setup),
        cmocka_unit_test_setup(the_record_is_bounded, setup),
        cmocka_unit_test_setup(pages_of_all_queues_miss_and_repeat_nothing, setup),
        cmocka_unit_test_setup(bad_questions_are_refused, setup),
        cmocka_unit_test_setup(tokens_are_made_found_and_revoked, setup),
        cmocka_unit_test_setup(there_is_a_limit_of_tokens, setup),
        cmocka_unit_test_setup(damaged_records_are_no_tokens, setup),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
