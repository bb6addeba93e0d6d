/* SPDX-License-Identifier: Apache-2.0 */
/* The calls about visitors: the line, one visitor, joins in bulk, the export, the numbers. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth/reference.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/config.h"
#include "common/control/call.h"
#include "common/control/control.h"
#include "common/store/reply.h"
#include "control_world.h"

#define Q "/v1/admin/queues/q"

/* a1 is active; a2 to a4 wait in the first lane, b1 to b4 in the second. */
static int setup(void **state)
{
    struct test_control *world = *state;
    (void)test_control_clean(state);
    test_store_queue(world->store,
                     "lanes=vip,normal capacity=1 session_ttl=1h waiting_ttl=1h max_waiting=10");
    test_redis_ask(world->store->redis, "SADD tl:queues q");
    test_join_many(world->store, "a", 4, 0);
    test_join_many(world->store, "b", 4, 1);
    assert_int_equal(test_admit(world->store, 1), 1);
    return 0;
}

static void the_line_comes_in_pages(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(test_call(world, "GET", Q "/line?limit=3", NULL), 200);
    assert_string_equal(test_member(world, "waiting"), "7");
    assert_string_equal(test_member(world, "visitors.0"),
                        "{\"joined_at\":null,\"lane\":\"vip\",\"position\":1,\"seq\":2,"
                        "\"visitor\":\"a2\"}");
    assert_string_equal(test_member(world, "visitors.2.visitor"), "a4");
    assert_string_equal(test_member(world, "visitors.3"), "(none)");
    assert_string_equal(test_member(world, "has_more"), "true");
    assert_int_equal(test_call(world, "GET", Q "/line?starting_after=3&limit=1000", NULL), 200);
    assert_string_equal(test_member(world, "visitors.3.visitor"), "b4");
    assert_string_equal(test_member(world, "visitors.3.position"), "7");
    assert_string_equal(test_member(world, "has_more"), "false");
    assert_int_equal(test_call(world, "GET", Q "/line?starting_after=8", NULL), 200);
    assert_string_equal(test_member(world, "visitors"), "[]");
    assert_string_equal(test_member(world, "has_more"), "false");
    assert_int_equal(test_call(world, "GET", Q "/line?starting_after=a4", NULL), 400);
    assert_int_equal(test_call(world, "GET", Q "/line?limit=1001", NULL), 400);
    assert_int_equal(test_call(world, "GET", Q "/line?limit=1&limit=2", NULL), 400);
    assert_int_equal(test_call(world, "GET", Q "/line?seq=1", NULL), 400);
}

static void a_visitor_is_found_moved_and_removed(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(test_call(world, "GET", Q "/visitors/b2", NULL), 200);
    assert_string_equal(test_member(world, "status"), "waiting");
    assert_string_equal(test_member(world, "position"), "5");
    assert_string_equal(test_member(world, "lane"), "normal");
    assert_int_equal(test_call(world, "GET", Q "/visitors/a1", NULL), 200);
    assert_string_equal(test_member(world, "status"), "active");
    assert_string_equal(test_member(world, "claimed"), "false");
    assert_int_equal(test_call(world, "GET", Q "/visitors/nobody", NULL), 404);
    assert_int_equal(test_call(world, "GET", Q "/visitors/no%20body", NULL), 422);

    assert_int_equal(test_call(world, "POST", Q "/visitors/b2/lane", "{\"lane\": \"vip\"}"), 200);
    assert_string_equal(test_member(world, "was_in"), "normal");
    assert_int_equal(test_call(world, "GET", Q "/visitors/b2", NULL), 200);
    assert_string_equal(test_member(world, "position"), "4");
    assert_int_equal(test_call(world, "POST", Q "/visitors/b2/lane", "{\"lane\": \"vip\"}"), 200);
    assert_int_equal(test_call(world, "POST", Q "/visitors/b2/lane", "{\"lane\": \"x\"}"), 422);
    assert_int_equal(test_call(world, "POST", Q "/visitors/a1/lane", "{\"lane\": \"vip\"}"), 409);
    assert_int_equal(test_call(world, "POST", Q "/visitors/b2/lane", NULL), 400);

    assert_int_equal(test_call(world, "DELETE", Q "/visitors/b2", NULL), 200);
    assert_string_equal(test_member(world, "was"), "waiting");
    assert_int_equal(test_call(world, "DELETE", Q "/visitors/a1", NULL), 200);
    assert_string_equal(test_member(world, "was"), "active");
    assert_int_equal(test_call(world, "DELETE", Q "/visitors/a1", NULL), 409);
    assert_int_equal(test_call(world, "DELETE", Q "/visitors/nobody", NULL), 404);
    assert_int_equal(test_call(world, "GET", Q "/visitors/a1", NULL), 200);
    assert_string_equal(test_member(world, "status"), "removed");
    assert_string_equal(test_member(world, "end_reason"), "removed");
    assert_string_equal(test_changes(world, "q"), "ann remove ann remove ann move tester create");
    test_invariants(world->store->redis, &world->store->keys);
}

/* The code of a visitor, as the page of the worker shows it. */
static void code_of(struct test_control *world, const char *visitor, char code[TL_REFERENCE_MAX])
{
    struct tl_keyring *keyring = tl_keyring_load(world->config->secrets.ticket_keys, true, NULL);
    assert_non_null(keyring);
    tl_reference_write(keyring, "q", visitor, code);
    tl_keyring_free(&keyring);
}

static int find_by(struct test_control *world, const char *code)
{
    char target[128];
    snprintf(target, sizeof(target), Q "/visitors?reference=%s", code);
    return test_call(world, "GET", target, NULL);
}

static void a_reference_code_names_a_visitor(void **state)
{
    struct test_control *world = *state;
    char code[TL_REFERENCE_MAX], lower[TL_REFERENCE_MAX], active[TL_REFERENCE_MAX],
        none[TL_REFERENCE_MAX];
    assert_int_equal(unlink(world->config->secrets.ticket_keys) == 0 || errno == ENOENT, 1);
    assert_int_equal(find_by(world, "Q5T9-4XDR"), 422); /* there are no keys */
    code_of(world, "b3", code);
    code_of(world, "a1", active);
    code_of(world, "nobody", none);
    assert_int_equal(find_by(world, code), 200);
    assert_string_equal(test_member(world, "visitor"), "b3");
    assert_string_equal(test_member(world, "status"), "waiting");
    assert_string_equal(test_member(world, "position"), "6");
    assert_string_equal(test_member(world, "reference"), code);
    for (size_t i = 0; i < sizeof(lower); i++)
        lower[i] = (char)(code[i] >= 'A' ? code[i] + 'a' - 'A' : code[i]);
    assert_int_equal(find_by(world, lower), 200);
    assert_string_equal(test_member(world, "visitor"), "b3");
    assert_int_equal(find_by(world, active), 200);
    assert_string_equal(test_member(world, "visitor"), "a1");
    assert_string_equal(test_member(world, "status"), "active");
    assert_int_equal(test_call(world, "GET", Q "/visitors/b3", NULL), 200);
    assert_string_equal(test_member(world, "reference"), code);

    /* In another lane, and after the end. */
    assert_int_equal(test_call(world, "POST", Q "/visitors/b3/lane", "{\"lane\": \"vip\"}"), 200);
    assert_int_equal(find_by(world, code), 200);
    assert_string_equal(test_member(world, "lane"), "vip");

    assert_int_equal(find_by(world, none), 404);
    assert_int_equal(test_call(world, "DELETE", Q "/visitors/b3", NULL), 200);
    assert_int_equal(find_by(world, code), 200);
    assert_string_equal(test_member(world, "status"), "removed");
    assert_string_equal(test_member(world, "end_reason"), "removed");
    assert_string_equal(test_member(world, "reference"), code);
    assert_int_equal(find_by(world, "Q5T9-4XD"), 422);
    assert_int_equal(find_by(world, "Q5T9-4XDU"), 422);
    assert_int_equal(test_call(world, "GET", Q "/visitors", NULL), 400);
    assert_int_equal(
        test_call(world, "GET", "/v1/admin/queues/none/visitors?reference=Q5T9-4XDR", NULL), 404);
}

/* Among many who wait, who have a session, or whose visit has ended. */
static void a_code_is_found_in_a_long_line(void **state)
{
    struct test_control *world = *state;
    char code[TL_REFERENCE_MAX];
    code_of(world, "late", code);
    assert_int_equal(find_by(world, code), 404);
    for (int i = 0; i < 3000; i++) {
        test_redis_ask(world->store->redis, "ZADD tl:{q}:waiting %d w%d", 100 + i, i);
        test_redis_ask(world->store->redis, "HSET tl:{q}:sessions s%d 5:1:0", i);
    }
    test_redis_ask(world->store->redis, "ZADD tl:{q}:waiting 5000 late");
    assert_int_equal(find_by(world, code), 200);
    assert_string_equal(test_member(world, "visitor"), "late");
    test_redis_ask(world->store->redis, "ZREM tl:{q}:waiting late");
    test_redis_ask(world->store->redis, "HSET tl:{q}:sessions late 5:1:0");
    assert_int_equal(find_by(world, code), 200);
    assert_string_equal(test_member(world, "visitor"), "late");
}

static void many_join_at_once(void **state)
{
    struct test_control *world = *state;
    test_dispatcher_start(world);
    assert_int_equal(test_call(world, "POST", Q "/joins",
                               "{\"visitors\": [{\"visitor\": \"n1\"}, {\"visitor\": \"b1\"}, "
                               "{\"visitor\": \"n2\", \"lane\": \"vip\"}, {\"visitor\": \"a1\"}, "
                               "{\"visitor\": \"n3\"}, {\"visitor\": \"n4\"}]}"),
                     200);
    assert_string_equal(test_member(world, "visitors.0"),
                        "{\"lane\":\"normal\",\"new\":true,\"seq\":9,\"status\":\"waiting\","
                        "\"visitor\":\"n1\"}");
    assert_string_equal(test_member(world, "visitors.1.new"), "false");
    assert_string_equal(test_member(world, "visitors.1.seq"), "5");
    assert_string_equal(test_member(world, "visitors.2.lane"), "vip");
    assert_string_equal(test_member(world, "visitors.3.status"), "active");
    assert_string_equal(test_member(world, "visitors.4.status"), "waiting");
    assert_string_equal(test_member(world, "visitors.5.status"), "refused"); /* max_waiting */
    assert_string_equal(test_member(world, "visitors.5.seq"), "null");
    assert_string_equal(test_changes(world, "q"), "ann join tester create");
    /* Who wrote the batch is no worker whose silence keeps absent visitors in the line. */
    assert_int_equal(test_redis_number(world->store->redis, "ZCARD tl:{q}:reports"), 1);
    /* Once more: the same places. */
    assert_int_equal(test_call_with(world, "POST", Q "/joins",
                                    "{\"visitors\": [{\"visitor\": \"n1\"}]}", NULL, "k"),
                     200);
    assert_string_equal(test_member(world, "visitors.0.new"), "false");
    test_dispatcher_stop(world);
    test_invariants(world->store->redis, &world->store->keys);
}

static void a_wrong_list_joins_nobody(void **state)
{
    struct test_control *world = *state;
    uint64_t before = test_redis_fingerprint(world->store->redis);
    assert_int_equal(test_call(world, "POST", Q "/joins",
                               "{\"visitors\": [{\"visitor\": \"n1\"}, {\"visitor\": \"a b\"}, "
                               "{\"visitor\": \"n2\", \"lane\": \"x\"}, {\"name\": \"n\"}, 5]}"),
                     422);
    assert_string_equal(test_member(world, "errors.0.name"), "visitors[1]");
    assert_string_equal(test_member(world, "errors.3.name"), "visitors[4]");
    assert_string_equal(test_member(world, "errors.4"), "(none)");
    assert_int_equal(test_call(world, "POST", Q "/joins", "{\"visitors\": []}"), 422);
    assert_int_equal(test_call(world, "POST", Q "/joins", "{\"visitors\": \"n1\"}"), 422);
    assert_int_equal(test_call(world, "POST", Q "/joins", NULL), 422);
    assert_int_equal(test_call(world, "POST", "/v1/admin/queues/none/joins",
                               "{\"visitors\": [{\"visitor\": \"n1\"}]}"),
                     404);
    assert_true(test_redis_fingerprint(world->store->redis) == before);
}

static void joins_that_nobody_applies_are_pending(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(
        test_call(world, "POST", Q "/joins", "{\"visitors\": [{\"visitor\": \"n1\"}]}"), 202);
    assert_string_equal(test_member(world, "status"), "pending");
    assert_int_equal(test_deliver(world->store), 1);
}

/* Places that would be lost with the store are not told of: there is no replica here. */
static void joins_that_are_not_durable_are_pending(void **state)
{
    struct test_control *world = *state;
    struct tl_control *before = world->control;
    struct tl_error err = {0};
    char yaml[1024];
    snprintf(yaml, sizeof(yaml), "redis:\n  url: %s\n  durability: replicated\n",
             world->config->redis.url);
    const struct tl_config *config = tl_config_parse("test.yaml", yaml, strlen(yaml), &err);
    assert_non_null(config);
    world->control = tl_control_new(config, NULL, &err);
    assert_non_null(world->control);
    test_dispatcher_start(world);
    assert_int_equal(
        test_call(world, "POST", Q "/joins", "{\"visitors\": [{\"visitor\": \"n1\"}]}"), 202);
    assert_string_equal(test_member(world, "status"), "pending");
    assert_string_equal(test_member(world, "visitors"), "1");
    tl_control_free(&world->control);
    world->control = before;
    tl_config_free(&config);
    assert_int_equal(
        test_call(world, "POST", Q "/joins", "{\"visitors\": [{\"visitor\": \"n1\"}]}"), 200);
    assert_string_equal(test_member(world, "visitors.0.new"), "false");
    test_dispatcher_stop(world);
}

/* ---- the export ---- */

/* All pieces of an export in one. */
static char *export_all(struct test_control *world, const char *target, uint64_t *written)
{
    const struct tl_control_request request = {
        .method = "GET", .target = target, .actor = &world->actor};
    struct tl_error err = {0};
    struct tl_text all = {0};
    const char *bytes;
    size_t length;
    tl_control_answer_clear(&world->answer);
    struct tl_control_export *export =
        tl_control_export_begin(world->control, &request, &world->answer);
    if (export == NULL)
        return NULL;
    do {
        assert_true(tl_control_export_next(export, &bytes, &length, &err));
        tl_text_append(&all, "%.*s", (int)length, bytes != NULL ? bytes : "");
    } while (length > 0);
    *written = tl_control_export_written(export);
    tl_control_export_end(&export);
    return all.data;
}

static void an_export_has_everybody(void **state)
{
    struct test_control *world = *state;
    uint64_t written;
    assert_int_equal(test_call(world, "DELETE", Q "/visitors/a2", NULL), 200);
    char *csv = export_all(world, Q "/export?format=csv", &written);
    assert_int_equal(written, 8);
    assert_non_null(
        strstr(csv, "visitor,status,end_reason,lane,seq,position,joined_at,admitted_at,claimed,"
                    "expires_at,ended_at\r\n\"a3\",waiting,,\"vip\",3,1,,,,,\r\n"));
    assert_non_null(strstr(csv, "\r\n\"a1\",active,,\"vip\",1,,,20"));
    assert_non_null(strstr(csv, "\r\n\"a2\",removed,removed,,,,,,,,20"));
    free(csv);
    char *lines = export_all(world, Q "/export?format=jsonl", &written);
    assert_int_equal(written, 8);
    assert_ptr_equal(
        strstr(lines,
               "{\"visitor\":\"a3\",\"status\":\"waiting\",\"end_reason\":null,\"position\":1,"
               "\"joined_at\":null,\"admitted_at\":null,\"claimed\":null,"
               "\"expires_at\":null,\"ended_at\":null,\"lane\":\"vip\","
               "\"seq\":3}\n"),
        lines);
    free(lines);
    assert_null(export_all(world, Q "/export?format=xml", &written));
    assert_int_equal(world->answer.status, 400);
    assert_null(export_all(world, "/v1/admin/queues/none/export", &written));
    assert_int_equal(world->answer.status, 404);
    assert_int_equal(test_call(world, "GET", Q "/export", NULL), 404);
}

static void no_cell_is_a_formula(void **state)
{
    struct test_control *world = *state;
    uint64_t written;
    test_redis_ask(world->store->redis, "ZADD tl:{q}:waiting 5000 =1+1 5001 -x 5002 @y 5003 +z");
    test_redis_ask(world->store->redis, "ZADD tl:{q}:waiting 5004 a\"b,c");
    char *csv = export_all(world, Q "/export", &written);
    assert_non_null(strstr(csv, "\r\n\"'=1+1\",waiting"));
    assert_non_null(strstr(csv, "\r\n\"'-x\",waiting"));
    assert_non_null(strstr(csv, "\r\n\"'@y\",waiting"));
    assert_non_null(strstr(csv, "\r\n\"'+z\",waiting"));
    assert_non_null(strstr(csv, "\r\n\"a\"\"b,c\",waiting"));
    free(csv);
}

static void a_long_export_comes_in_pieces(void **state)
{
    struct test_control *world = *state;
    const struct tl_control_request request = {
        .method = "GET", .target = Q "/export", .actor = &world->actor};
    struct tl_error err = {0};
    const char *bytes;
    size_t length;
    size_t longest = 0;
    size_t pieces = 0;
    test_redis_ask(world->store->redis, "HSET %s max_waiting 0",
                   world->store->keys.names[TL_KEY_CONFIG]);
    test_join_many(world->store, "many-", 3500, 1);
    struct tl_control_export *export =
        tl_control_export_begin(world->control, &request, &world->answer);
    assert_non_null(export);
    assert_int_equal(tl_control_export_total(export), 3508);
    do {
        assert_true(tl_control_export_next(export, &bytes, &length, &err));
        longest = length > longest ? length : longest;
        pieces++;
        /* Those before leave meanwhile: nobody is missed. */
        test_redis_ask(world->store->redis, "ZREMRANGEBYRANK tl:{q}:waiting 0 9");
    } while (length > 0);
    assert_true(longest < 1000 * 60);
    assert_true(pieces >= 5);
    assert_int_equal(tl_control_export_written(export), 3508 - 10);
    tl_control_export_end(&export);
}

/* ---- numbers ---- */

static void the_numbers_are_those_of_the_queue(void **state)
{
    struct test_control *world = *state;
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "waiting"), "7");
    assert_string_equal(test_member(world, "active"), "1");
    assert_string_equal(test_member(world, "capacity_now"), "1");
    assert_string_equal(test_member(world, "totals.joined"), "8");
    assert_string_equal(test_member(world, "lanes.1.waiting"), "4");
    assert_string_equal(test_member(world, "programs.0.serves"), "false");
    assert_string_equal(test_member(world, "per_minute"), "null"); /* there is no history */
    assert_string_equal(test_member(world, "oldest_wait_ms"), "null");
    assert_string_equal(test_member(world, "waits.bounds_ms"),
                        "[60000,300000,600000,1200000,1800000,3600000]");
    assert_string_equal(test_member(world, "waits.waiting"), "[0,0,0,0,0,0,0]");
    assert_string_equal(test_member(world, "waits.not_known"), "7");
    assert_string_equal(test_member(world, "store.role"), "master");
    assert_string_equal(test_member(world, "store.persists"), "true");
    assert_int_equal(test_call(world, "GET", "/v1/admin/queues/none/stats", NULL), 404);
    tl_reply_free(test_redis_call(world->store->redis, "FUNCTION FLUSH"));
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
}

/* Notes a point of the history this many ms ago. */
static void note(struct test_control *world, long long now, long long ago_ms, long long seq,
                 long long joined)
{
    test_redis_ask(world->store->redis, "XADD tl:{q}:history %lld-0 seq %lld joined %lld",
                   now - ago_ms, seq, joined);
}

static void the_history_tells_waits_and_rates(void **state)
{
    struct test_control *world = *state;
    long long now = test_redis_ms(world->store->redis);
    note(world, now, 600000, 0, 0);
    note(world, now, 300000, 1, 1);
    note(world, now, 200000, 4, 2);
    note(world, now, 100000, 5, 4);
    note(world, now, 30000, 7, 6);
    note(world, now, 10000, 8, 7);
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    /* a2 has the seq 2, which the point of 200 s ago is the first to know; b1 the seq 5. */
    long long oldest = strtoll(test_member(world, "oldest_wait_ms"), NULL, 10);
    assert_true(oldest >= 200000 && oldest < 205000);
    oldest = strtoll(test_member(world, "lanes.1.oldest_wait_ms"), NULL, 10);
    assert_true(oldest >= 100000 && oldest < 105000);
    /* 8 joined, of whom 4 a minute ago. */
    double joined = strtod(test_member(world, "per_minute.joined"), NULL);
    assert_true(joined > 3.8 && joined < 4.2);
    /* a1 joined 300 s ago and was admitted now. */
    assert_string_equal(test_member(world, "waited.sample"), "1");
    long long waited = strtoll(test_member(world, "waited.p50_ms"), NULL, 10);
    assert_true(waited >= 299000 && waited < 305000);
    assert_string_equal(
        test_member(world, waited < 300000 ? "waits.admitted.1" : "waits.admitted.2"), "1");
    assert_string_equal(test_member(world, "waits.admitted.0"), "0");
    /* The seqs 2 to 8 wait, of whom those up to 5 were there a minute ago, in both lanes. */
    assert_string_equal(test_member(world, "waits.waiting"), "[3,4,0,0,0,0,0]");
    assert_string_equal(test_member(world, "waits.not_known"), "0");
    test_redis_ask(world->store->redis, "ZADD tl:{q}:waiting 0 before");
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "waits.not_known"), "1");
    assert_string_equal(test_member(world, "waits.waiting.6"), "0");
    /* Who joined before an old history began has waited for long. */
    test_redis_ask(world->store->redis, "DEL tl:{q}:history");
    note(world, now, 4000000, 2, 2);
    note(world, now, 1000000, 4, 4);
    test_redis_ask(world->store->redis, "HINCRBY tl:{q}:state waiting 1");
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "waits.waiting"), "[4,0,0,2,0,0,2]");
    assert_string_equal(test_member(world, "waits.not_known"), "0");
}

/* A member of the last answer that is a time: how long ago it was, s; -1: it is null. */
static long long seconds_ago(const struct test_control *world, const char *path, long long now)
{
    int64_t at_ms;
    const char *text = test_member(world, path);
    if (strcmp(text, "null") == 0)
        return -1;
    assert_true(tl_time_parse(text, &at_ms, NULL));
    return (now - at_ms) / 1000;
}

static void set_told(struct test_control *world, long long judged)
{
    test_redis_ask(world->store->redis,
                   "HSET tl:{q}:promised eta_judged %lld eta_early 30 eta_late 8 eta_error 2500",
                   judged);
}

static void note_told(struct test_control *world, long long at_ms, long long judged)
{
    test_redis_ask(world->store->redis,
                   "XADD tl:{q}:history %lld-0 seq 8 eta_judged %lld eta_early 20 eta_late 3 "
                   "eta_error 1500",
                   at_ms, judged);
}

static void the_last_hour_says_what_came_true(void **state)
{
    struct test_control *world = *state;
    struct tl_redis *redis = world->store->redis;
    long long now = test_redis_ms(redis);
    set_told(world, 200);
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "eta"), "null"); /* there is no history */
    note(world, now, 600000, 1, 1); /* by an earlier release, which counted nothing */
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "eta.judged"), "200");
    test_redis_ask(redis, "DEL tl:{q}:history");
    note_told(world, now - 4000000, 100);
    note_told(world, now - 600000, 150);
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "eta.judged"), "100");
    assert_string_equal(test_member(world, "eta.early"), "10");
    assert_string_equal(test_member(world, "eta.late"), "5");
    assert_string_equal(test_member(world, "eta.inside_percent"), "85.0");
    assert_string_equal(test_member(world, "eta.error_percent"), "10.0");
    assert_in_range(seconds_ago(world, "eta.since", now), 3590, 3601);
    set_told(world, 40); /* the totals were lost */
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    assert_string_equal(test_member(world, "eta"), "null");
}

static void everybody_has_the_time_of_the_join(void **state)
{
    struct test_control *world = *state;
    struct tl_redis *redis = world->store->redis;
    uint64_t written = 0;
    long long now = test_redis_ms(redis);
    now -= now % 1000;
    /* Places 1 to 8 wait; the history knows nothing of the first, and not the last yet. */
    note(world, now, 600000, 1, 1);
    note(world, now, 300000, 3, 3);
    note(world, now, 200000, 6, 6);
    note(world, now, 10000, 7, 7);
    assert_int_equal(test_call(world, "GET", Q "/line", NULL), 200);
    assert_int_equal(seconds_ago(world, "visitors.0.joined_at", now), 300);
    assert_int_equal(seconds_ago(world, "visitors.1.joined_at", now), 300);
    assert_int_equal(seconds_ago(world, "visitors.2.joined_at", now), 200);
    assert_int_equal(seconds_ago(world, "visitors.4.joined_at", now), 200);
    assert_int_equal(seconds_ago(world, "visitors.5.joined_at", now), 10);
    assert_true(seconds_ago(world, "visitors.6.joined_at", now) <= 0); /* just now */
    assert_int_equal(test_call(world, "GET", Q "/visitors/a1", NULL), 200);
    assert_int_equal(seconds_ago(world, "joined_at", now), -1);
    assert_int_equal(test_call(world, "GET", Q "/visitors/b2", NULL), 200);
    assert_int_equal(seconds_ago(world, "joined_at", now), 200);
    /* The minutes reach further back. */
    test_redis_ask(redis, "XADD tl:{q}:history:minutes %lld-0 seq 0", now - 200000000);
    test_redis_ask(redis, "XADD tl:{q}:history:minutes %lld-0 seq 1", now - 100000000);
    test_redis_ask(redis, "XADD tl:{q}:history:minutes %lld-0 seq 7", now - 10000);
    assert_int_equal(test_call(world, "GET", Q "/visitors/a1", NULL), 200);
    assert_int_equal(seconds_ago(world, "joined_at", now), 100000);
    assert_int_equal(test_call(world, "GET", Q "/visitors/b2", NULL), 200);
    assert_int_equal(seconds_ago(world, "joined_at", now), 200); /* the exacter one counts */
    /* Damaged points stop nobody. */
    test_redis_ask(redis, "XADD tl:{q}:history * seq many");
    assert_int_equal(test_call(world, "GET", Q "/line", NULL), 200);
    assert_int_equal(test_call(world, "GET", Q "/stats", NULL), 200);
    free(export_all(world, Q "/export", &written));
    assert_int_equal(written, 8);
}

/* The points of a page are read in several portions. */
static void a_page_may_need_a_long_history(void **state)
{
    struct test_control *world = *state;
    struct tl_redis *redis = world->store->redis;
    uint64_t written = 0;
    char expected[128];
    char time[TL_UNITS_TEXT_MAX];
    long long start = test_redis_ms(redis) / 10000 * 10000 - 14000000;
    for (long long i = 0; i <= 1300; i++) {
        test_redis_ask(redis, "XADD tl:{q}:history %lld-0 seq %lld", start + 10000 * i, 1000 + i);
        test_redis_ask(redis, "ZADD tl:{q}:waiting %lld w%lld", 1000 + i, i);
    }
    char *csv = export_all(world, Q "/export", &written);
    assert_non_null(csv);
    assert_int_equal(written, 1301 + 8);
    for (long long i = 0; i <= 1300; i++) {
        tl_time_format(start + 10000 * i, time, sizeof(time));
        /* The first joined before the history began. */
        snprintf(expected, sizeof(expected), "\"w%lld\",waiting,,\"vip\",%lld,%lld,%s,", i,
                 1000 + i, i + 4, i == 0 ? "" : time);
        if (strstr(csv, expected) == NULL)
            fail_msg("no %s", expected);
    }
    free(csv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_line_comes_in_pages, setup),
        cmocka_unit_test_setup(a_visitor_is_found_moved_and_removed, setup),
        cmocka_unit_test_setup(a_reference_code_names_a_visitor, setup),
        cmocka_unit_test_setup(a_code_is_found_in_a_long_line, setup),
        cmocka_unit_test_setup(many_join_at_once, setup),
        cmocka_unit_test_setup(a_wrong_list_joins_nobody, setup),
        cmocka_unit_test_setup(joins_that_nobody_applies_are_pending, setup),
        cmocka_unit_test_setup(joins_that_are_not_durable_are_pending, setup),
        cmocka_unit_test_setup(an_export_has_everybody, setup),
        cmocka_unit_test_setup(no_cell_is_a_formula, setup),
        cmocka_unit_test_setup(a_long_export_comes_in_pieces, setup),
        cmocka_unit_test_setup(everybody_has_the_time_of_the_join, setup),
        cmocka_unit_test_setup(a_page_may_need_a_long_history, setup),
        cmocka_unit_test_setup(the_history_tells_waits_and_rates, setup),
        cmocka_unit_test_setup(the_last_hour_says_what_came_true, setup),
        cmocka_unit_test_setup(the_numbers_are_those_of_the_queue,
                               setup), /* forgets the functions */
    };
    return cmocka_run_group_tests_name("control_visitors", tests, test_control_open,
                                       test_control_close);
}
