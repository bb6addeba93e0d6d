/* The calls about visitors: the line, one visitor, joins in bulk, the export, the numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/text.h"
#include "common/control/export.h"
#include "common/control/stats.h"
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
                        "{\"lane\":\"vip\",\"position\":1,\"seq\":2,\"visitor\":\"a2\"}");
    assert_string_equal(test_member(world, "visitors.2.visitor"), "a4");
    assert_string_equal(test_member(world, "visitors.3"), "(none)");
    assert_string_equal(test_member(world, "next"), "4");
    assert_int_equal(test_call(world, "GET", Q "/line?from=4&limit=1000", NULL), 200);
    assert_string_equal(test_member(world, "visitors.3.visitor"), "b4");
    assert_string_equal(test_member(world, "visitors.3.position"), "7");
    assert_string_equal(test_member(world, "next"), "null");
    assert_int_equal(test_call(world, "GET", Q "/line?from=9", NULL), 200);
    assert_string_equal(test_member(world, "visitors"), "[]");
    assert_int_equal(test_call(world, "GET", Q "/line?from=0", NULL), 400);
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
    assert_string_equal(test_changes(world, "q"), "ann remove ann remove ann move tester create");
    test_invariants(world->store->redis, &world->store->keys);
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
    assert_string_equal(test_member(world, "visitors.5.seq"), "(none)");
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
    assert_non_null(strstr(csv, "visitor,status,lane,seq,position,admitted_at,claimed,expires_at,"
                                "ended_at\r\n\"a3\",waiting,\"vip\",3,1,,,,\r\n"));
    assert_non_null(strstr(csv, "\r\n\"a1\",active,\"vip\",1,,20"));
    assert_non_null(strstr(csv, "\r\n\"a2\",removed,,,,,,,20"));
    free(csv);
    char *lines = export_all(world, Q "/export?format=jsonl", &written);
    assert_int_equal(written, 8);
    assert_ptr_equal(strstr(lines, "{\"visitor\":\"a3\",\"status\":\"waiting\",\"position\":1,"
                                   "\"lane\":\"vip\",\"seq\":3}\n"),
                     lines);
    free(lines);
    assert_null(export_all(world, Q "/export?format=xml", &written));
    assert_int_equal(world->answer.status, 400);
    assert_null(export_all(world, "/v1/admin/queues/none/export", &written));
    assert_int_equal(world->answer.status, 404);
    assert_int_equal(test_call(world, "GET", Q "/export", NULL), 406);
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
    assert_string_equal(test_member(world, "store.role"), "master");
    assert_string_equal(test_member(world, "store.persists"), "true");
    assert_int_equal(test_call(world, "GET", "/v1/admin/queues/none/stats", NULL), 404);
    tl_reply_free(test_redis_call(world->store->redis, "SCRIPT FLUSH"));
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_line_comes_in_pages, setup),
        cmocka_unit_test_setup(a_visitor_is_found_moved_and_removed, setup),
        cmocka_unit_test_setup(many_join_at_once, setup),
        cmocka_unit_test_setup(a_wrong_list_joins_nobody, setup),
        cmocka_unit_test_setup(joins_that_nobody_applies_are_pending, setup),
        cmocka_unit_test_setup(an_export_has_everybody, setup),
        cmocka_unit_test_setup(no_cell_is_a_formula, setup),
        cmocka_unit_test_setup(a_long_export_comes_in_pieces, setup),
        cmocka_unit_test_setup(the_history_tells_waits_and_rates, setup),
        cmocka_unit_test_setup(the_numbers_are_those_of_the_queue, setup), /* forgets the scripts */
    };
    return cmocka_run_group_tests_name("control_visitors", tests, test_control_open,
                                       test_control_close);
}
