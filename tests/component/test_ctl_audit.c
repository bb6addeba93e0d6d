/* SPDX-License-Identifier: Apache-2.0 */
/* The audit finds what was damaged by hand, says it once, and finds nothing in a queue that is in
 * order. Each damage is a script that changes the data of a small queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "ctl/audit/audit.h"
#include "ingest.h"
#include "side_by_side.h"

enum { PARTS = 8 };

/* Before each damage: short names, and what many of them need. */
static const char prelude[] =
    "local state, config, waiting, active, sessions, ended, events, ingest = "
    "unpack(KEYS)\n"
    "local function set(...) redis.call('HSET', state, ...) end\n"
    "local function add(field, n) redis.call('HINCRBY', state, field, n) end\n"
    "local function int(n) return string.format('%.0f', n) end\n"
    "local LANE = 2^48\n"
    "local function place(v) return tonumber(redis.call('ZSCORE', waiting, v)) end\n"
    "local function session(v) return redis.call('HGET', sessions, v) end\n"
    "local function held(v) return tonumber(string.match(session(v), '^%d+')) end\n"
    "local function key(name) return string.gsub(state, 'state$', name) end\n"
    "local function last_entry() return redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1] "
    "end\n"
    "local now = redis.call('TIME')[1] * 1000\n"
    "local function by_rate(admit, from, used, last)\n"
    "    redis.call('HSET', config, 'policy', 'rate', 'rate.admit', admit, 'rate.every', 60000)\n"
    "    set('budget', int(now + from) .. ':' .. used .. ':0:' .. int(now + last) .. "
    "':0:100:60000:0:smooth')\n"
    "end\n"
    "local function move(v, to) redis.call('HSET', sessions, v, int(to) .. ':1000:1') end\n";

static int setup_store(void **state)
{
    return test_store_open(state);
}

/* A queue in order, of two lanes: b and c are in, a has finished, d and e and (in lane 1) v wait.
 */
static int setup(void **state)
{
    struct test_store *store;
    (void)test_store_clean(state);
    store = *state;
    test_store_queue(store, "capacity=3 lanes=vip,normal");
    test_join(store, "a", 0);
    test_join(store, "b", 0);
    test_join(store, "c", 0);
    test_join(store, "d", 0);
    test_join(store, "e", 0);
    test_join(store, "v", 1);
    test_batch(store);
    assert_int_equal(test_admit(store, 3), 3);
    tl_reply_free(test_redis_call(store->redis, "HSET tl:{q}:config capacity 2"));
    struct tl_reply *reply = test_redis_call(store->redis, "HGET tl:{q}:sessions a");
    test_command(store, TL_COMMAND_COMPLETE, "a", strtoull(tl_reply_string(reply, NULL), NULL, 10));
    tl_reply_free(reply);
    test_batch(store);
    return 0;
}

static void audit(struct test_store *store, struct tl_audit_report *report)
{
    struct tl_error err = {0};
    if (!tl_audit_queue(store->redis, &store->keys, report, &err))
        fail_msg("%s", err.text);
}

static void damage(struct test_store *store, const char *how)
{
    char source[4096];
    char error[320];
    snprintf(source, sizeof(source), "%s%s\nreturn 1", prelude, how);
    struct tl_reply *reply = test_eval(store->redis, source, &store->keys, error);
    if (reply == NULL)
        fail_msg("%s: %s", how, error);
    tl_reply_free(reply);
}

static const struct damaged {
    const char *how;
    int rule;
    const char *says;
} damages[] = {
    /* 1: counters, sizes, sessions */
    {"add('waiting', 1) add('joined', 1)", 0, "counter waiting is 4, but 3 are waiting"},
    {"add('active', -1) add('joined', -1)", 0, "counter active is 1, but 2 are active"},
    {"redis.call('HSET', sessions, 'ghost', '1:1000:1')", 1,
     "2 are active, but there are 3 sessions"},
    {"redis.call('HDEL', sessions, 'b') redis.call('HSET', sessions, 'ghost', '1:1000:1')", 1,
     "visitor \"b\" is active, but has no readable session"},
    {"redis.call('HSET', sessions, 'b', 'nonsense')", 1, "no readable session"},
    {"add('left', -1) add('expired', 1)", 1, "counter left is negative: -1"},
    /* 2: capacity */
    {"set('admit_capacity', 1) redis.call('HSET', config, 'capacity', 1)", 2,
     "2 are active, but the capacity is 1 and was 1 at the last admission"},
    /* 3: two places of one visitor */
    {"redis.call('ZADD', waiting, int(place('d')), 'c') redis.call('ZREM', waiting, 'd')", 3,
     "visitor \"c\" is both waiting and active"},
    /* 2: the rate */
    {"by_rate(100, -9000, 1, -9000) set('budget', 'full')", 2, "budget cannot be read: full"},
    {"by_rate(100, -9000, 1, 9000)", 2, "last admission by rate was "},
    {"by_rate(100, -9000, 100, -9000)", 2, "budget is out of its bounds"},
    {"by_rate(100, 52000, 0, -9000)", 2, "budget is out of its bounds"},
    {"by_rate(100, -8000, 1, -9000)", 2, "budget is out of its bounds"},
    {"by_rate(2, -9000, 1, -9000)", 2, "3 were admitted within 60000 ms, but the rate allows 2"},
    /* 4: the order */
    {"local from = place('d') redis.call('ZADD', waiting, int(held('c')), 'd') move('c', from)", 4,
     "is active, while \"d\" "},
    /* 4: turns of the lanes */
    {"set('turns', 'x')", 4, "turns of the lanes cannot be read: x"},
    {"set('turns', '3,1:3:2,0')", 4, "turns of the lanes are out of their bounds"},
    {"set('turns', '3,1:3:1')", 4, "turns of the lanes are out of their bounds"},
    /* 5: totals */
    {"add('joined', 1)", 5,
     "7 joined, but waiting 3 + active 2 + completed 1 + expired 0 + left 0"},
    {"add('admitted', -1)", 5, "2 were admitted, but active 2 + completed 1"},
    {"add('admitted', 10)", 5, "13 were admitted, but only 6 joined"},
    {"add('absent', 1)", 5, "0 expired, but unclaimed 0 + absent 1 + removed 0 is more"},
    /* 6: places */
    {"redis.call('ZADD', waiting, int(place('d')), 'e')", 6, "\"e\" and \"d\" share number"},
    {"redis.call('ZADD', waiting, int(held('c')), 'd')", 6, "\"c\" and \"d\" share number"},
    {"move('b', held('c'))", 6, "share number"},
    {"redis.call('ZADD', waiting, int(place('d')) .. '.5', 'd')", 6, "cannot be read"},
    {"redis.call('ZADD', waiting, '+inf', 'v')", 6, "cannot be read"},
    {"redis.call('ZADD', waiting, '-inf', 'v')", 6, "cannot be read"},
    {"redis.call('ZADD', waiting, -5, 'v')", 6, "cannot be read"},
    {"redis.call('ZADD', waiting, int(place('v') + LANE), 'v')", 6, "but there are 2 lanes"},
    {"move('c', held('c') + 7 * LANE)", 6, "of lane 7, but there are 2 lanes"},
    {"redis.call('ZADD', waiting, int(place('e') + 1000), 'e')", 6, "numbers were given out only"},
    {"move('c', held('c') + 1000) redis.call('ZREM', waiting, 'd', 'e') add('waiting', -2)"
     "add('left', 2) redis.call('DEL', events)",
     0, "numbers were given out only"},
    {"redis.call('ZADD', waiting, int(LANE), 'v')", 6, "number 0 of lane 1"},
    /* 7: numbers set back */
    {"add('seq', -1)", 0, "was given out: it was set back"},
    {"add('seq', -100)", 0, "was given out: it was set back"},
    {"add('event', -1)", 7, ": the counter was set back"},
    {"set('found_event', 100)", 7, "but 100 was reached"},
    {"add('event', 1)", 7, ": the end of the events stream is missing"},
    {"redis.call('XDEL', events, last_entry()[1])", 7, ": the end of the events stream is missing"},
    {"add('generation', 1)", 7, "the last event is of generation"},
    {"add('waiting', -1) add('left', 1) redis.call('ZREM', waiting, 'e')", 7,
     "the last event says 3 waiting"},
    /* 8: streams */
    {"redis.call('DEL', events)", 8, "events stream is gone"},
    {"redis.call('XADD', events, '*', 'd', 'nonsense')", 8, "last entry of the events stream"},
    {"redis.call('DEL', ingest)", 8, "the ingest stream is gone"},
    {"redis.call('XGROUP', 'DESTROY', ingest, 'dispatchers')", 8,
     "consumer group dispatchers of the ingest stream is gone"},
    {"redis.call('XADD', ingest, '*', 'd', 'x') redis.call('XREADGROUP', 'GROUP', 'dispatchers',"
     "'stranger', 'STREAMS', ingest, '>')",
     8, "was read by \"stranger\", which is no dispatcher"},
    {"local id = redis.call('XADD', ingest, '*', 'd', 'x') redis.call('XREADGROUP', 'GROUP',"
     "'dispatchers', 'dispatcher', 'STREAMS', ingest, '>') redis.call('XCLAIM', ingest,"
     "'dispatchers', 'dispatcher', 0, id, 'IDLE', 100000)",
     8, "has been read, but not applied, for 100 s"},
    {"redis.call('DEL', ingest) redis.call('XADD', ingest, '1000-1', 'd', 'x')"
     "redis.call('XGROUP', 'CREATE', ingest, 'dispatchers', '0')",
     8, "has not been read for"},
    {"redis.call('HSET', state, 'batch:worker-x', 'nonsense')", 8,
     "remembers of worker \"worker-x\""},
    /* 13: a draw that is done */
    {"set('draw', '1:3:0:1:0:1:0:5:0')", 13, "5 visitors were drawn, but their list has 0 bytes"},
    {"set('draw', '1:3:' .. int(LANE - 1) .. ':1:0:1:0:0:0') redis.call('SET', key('drawn'),"
     "string.rep('x', 16))",
     13, "visitors wait at places from before the draw"},
    /* 9: what never ends */
    {"redis.call('SET', key('dispatcher'), 'x')", 9, "never runs out: no other dispatcher"},
    {"redis.call('SET', key('admitter'), 'x')", 9, "never runs out: no other admitter"},
    {"redis.call('SET', key('expirer'), 'x')", 9, "never runs out: no other expirer"},
    {"redis.call('ZADD', active, 'XX', 99999999999999, 'b')", 9, "which no setting allows"},
    {"redis.call('ZADD', active, 'XX', '+inf', 'b')", 9, "which no setting allows"},
    {"redis.call('ZADD', active, 'XX', 0, 'b')", 9, "which no setting allows"},
    {"redis.call('ZADD', active, 'XX', int(now - 400000), 'b')", 9, "should have ended 40"},
    {"redis.call('ZADD', ended, '+inf', 'a')", 9, "the end of visitor \"a\" cannot be right"},
    {"redis.call('ZADD', ended, int((now + 86400000) * 8 + 1), 'a')", 9,
     "s ahead of the clock of the server"},
    {"set('recover_until', 1) set('started', 1)", 9, "the recovery should have ended"},
    {"set('recover_until', 1)", 9, "the recovery should have ended"},
    /* 10: state, settings, types */
    {"redis.call('DEL', config)", 10, "the settings are gone"},
    {"redis.call('HDEL', config, 'capacity')", 10, "the setting capacity is missing"},
    {"redis.call('HSET', config, 'session_ttl', 'soon')", 10, "session_ttl"},
    {"redis.call('HSET', config, 'session_ttl', '10m')", 10, "session_ttl"}, /* not for scripts */
    {"redis.call('HSET', config, 'policy', 'rate')", 10, "the settings do not agree"},
    {"redis.call('DEL', state)", 10, "state is missing, but other keys of the queue exist"},
    {"redis.call('HDEL', state, 'left')", 10, "the state has no field left"},
    {"set('expired', '1e3')", 10, "the field expired of the state is no number"},
    {"redis.call('DEL', ended) redis.call('SET', ended, 'x')", 10, "is a string, not a zset"},
    {"redis.call('DEL', config) redis.call('RPUSH', config, 'x')", 10, "is a list, not a hash"},
    {"redis.call('DEL', sessions) redis.call('SET', sessions, 'x')", 0, "is a string, not a hash"},
    {"redis.call('DEL', waiting) redis.call('SET', waiting, 'x')", 0, "is a string, not a zset"},
    /* 12: the mode, the time of closing, the full line */
    {"redis.call('HSET', config, 'mode', 'closed')", 12,
     "visitors joined although the mode is closed"},
    {"redis.call('HSET', config, 'mode', 'paused')", 12,
     "visitors were admitted although the mode is paused"},
    {"redis.call('HSET', config, 'closes_at', '1000')", 12,
     "visitors joined although the mode is open and closes_at has passed"},
    {"redis.call('HSET', config, 'closes_at', '1000', 'after_close', 'stop')", 12,
     "visitors were admitted although the mode is open and closes_at has passed"},
    /* 6, 10: the serials of places that were handed over */
    {"redis.call('HSET', key('serials'), 99, '1:1:nobody')", 6, "\"nobody\" does not hold that"},
    {"redis.call('HSET', key('serials'), 99, '1:1:b')", 6, "\"b\" does not hold that place"},
    {"redis.call('SET', key('serials'), 'x')", 10, "serials is a string, not a hash"},
    {"redis.call('SADD', key('held'), 'x')", 10, "held is a set, not a zset"},
    {"redis.call('SADD', key('drawn'), 'x')", 10, "drawn is a set, not a string"},
    {"redis.call('SADD', key('poison'), 'x')", 10, "poison is a set, not a stream"},
    {"redis.call('DEL', key('reports')) redis.call('SADD', key('reports'), 'x')", 10,
     "reports is a set, not a zset"},
    {"redis.call('HSET', key('serials'), 4, '1:1:d') redis.call('DEL', waiting)"
     "redis.call('SET', waiting, 'x')",
     0, "is a string, not a zset"},
    {"redis.call('HSET', key('serials'), 2, '1:1:b') redis.call('DEL', sessions)"
     "redis.call('SET', sessions, 'x')",
     0, "is a string, not a hash"},
    {"set('full_since', 'soon')", 7, "the time since when the line is full cannot be right: soon"},
};

/* Is it among the findings? Unless the rule is 0 (then one damage shows in several ways), it is the
 * only one. */
static bool is_found(const struct damaged *damaged, const struct tl_audit_report *report)
{
    bool found = false;
    for (size_t i = 0; i < report->n_listed; i++) {
        const struct tl_audit_violation *violation = &report->listed[i];
        found = found || strstr(violation->text, damaged->says) != NULL;
        if (violation->advice[0] == '\0' ||
            (damaged->rule != 0 && violation->rule != damaged->rule))
            return false;
    }
    return found;
}

/* Each finding is looked at twice, 300 ms apart: so it is done in parts. */
static void every_damage_is_found(void **state, size_t part)
{
    struct test_store *store = *state;
    unsigned missed = 0;
    for (size_t i = part; i < sizeof(damages) / sizeof(damages[0]); i += PARTS) {
        struct tl_audit_report report;
        (void)setup(state);
        damage(store, damages[i].how);
        audit(store, &report);
        if (is_found(&damages[i], &report))
            continue;
        missed++;
        print_error("%s: expected \"%s\" of rule %d\n", damages[i].how, damages[i].says,
                    damages[i].rule);
        for (size_t k = 0; k < report.n_listed; k++)
            print_error("    found %d: %s\n", report.listed[k].rule, report.listed[k].text);
    }
    assert_int_equal(missed, 0);
}

#define PART(n)                                                                                    \
    static void every_damage_is_found_##n(void **state)                                            \
    {                                                                                              \
        every_damage_is_found(state, n);                                                           \
    }
PART(0)
PART(1)
PART(2)
PART(3)
PART(4)
PART(5)
PART(6)
PART(7)

static void a_queue_in_order_is_in_order(void **state)
{
    struct test_store *store = *state;
    struct tl_audit_report report;
    audit(store, &report);
    for (size_t i = 0; i < report.n_listed; i++)
        print_error("%s\n", report.listed[i].text);
    assert_int_equal(report.n_violations, 0);
    assert_int_equal(report.waiting, 3);
    assert_int_equal(report.active, 2);
    assert_string_equal(report.note, "");
    /* Before the first visitor there is no event. */
    (void)test_store_clean(state);
    test_store_queue(store, "");
    audit(store, &report);
    assert_int_equal(report.n_violations, 0);
}

static void a_queue_that_is_not_there(void **state)
{
    struct test_store *store = *state;
    struct tl_audit_report report;
    struct tl_error err = {0};
    (void)test_store_clean(state);
    assert_false(tl_audit_queue(store->redis, &store->keys, &report, &err));
    assert_int_equal(err.kind, TL_ERR_NOQUEUE);
}

static void a_lowered_capacity_is_no_violation(void **state)
{
    struct test_store *store = *state;
    struct tl_audit_report report;
    damage(store, "redis.call('HSET', config, 'capacity', 1)");
    audit(store, &report);
    assert_int_equal(report.n_violations, 0);
    assert_non_null(strstr(report.note, "above the capacity of 1"));
}

/* While its last claim may not be applied, and when the store comes back. */
static void a_session_that_is_held_is_no_violation(void **state)
{
    struct tl_audit_report report;
    damage(*state, "redis.call('ZADD', active, 'XX', int(now - 300000), 'b')");
    audit(*state, &report);
    assert_int_equal(report.n_violations, 0);
    damage(*state, "redis.call('ZADD', active, 'XX', 1000, 'b') set('base_ms', int(now))");
    audit(*state, &report);
    assert_int_equal(report.n_violations, 0);
}

static void a_rate_that_is_kept_is_in_order(void **state)
{
    static const char *const budgets[] = {
        "by_rate(3, -9000, 1, -9000)", "by_rate(3, 51000, 0, -9000)", "by_rate(3, -9000, 1, 2000)",
        "by_rate(2, -9000, 1, -9000) redis.call('HSET', config, 'rate.burst', 1)",
        "by_rate(2, 0, 0, 0) set('budget', '')"};
    struct test_store *store = *state;
    struct tl_audit_report report;
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        damage(store, budgets[i]);
        audit(store, &report);
        for (size_t k = 0; k < report.n_listed; k++)
            print_error("%s: %s\n", budgets[i], report.listed[k].text);
        assert_int_equal(report.n_violations, 0);
    }
}

/* Lane 1 waits behind lane 0, whatever the numbers. */
static void lanes_are_judged_apart(void **state)
{
    struct test_store *store = *state;
    struct tl_audit_report report;
    damage(store, "move('c', place('v') - 1)");
    audit(store, &report);
    assert_int_equal(report.n_violations, 0);
}

/* Who is moved stands before some that were called before the move, but not before those called
 * after it. */
static void a_move_is_no_violation(void **state)
{
    struct test_store *store = *state;
    struct tl_audit_report report;
    test_join(store, "m", 1);
    test_join(store, "z", 0);
    test_batch(store);
    tl_reply_free(test_redis_call(store->redis, "HSET tl:{q}:config capacity 5"));
    assert_int_equal(test_admit(store, 3), 3);                                 /* d, e and z */
    damage(store, "redis.call('ZADD', waiting, int(place('m') - LANE), 'm')"); /* ahead of z */
    audit(store, &report);
    assert_true(report.n_violations > 0);
    damage(store, "set('moved:0', int(now + 1000))");
    audit(store, &report);
    assert_int_equal(report.n_violations, 0);
}

/* Also where nobody is active; and a key that cannot be read makes no other finding. */
static void serials_are_always_looked_at(void **state)
{
    struct test_store *store = *state;
    struct tl_audit_report report;
    (void)test_store_clean(state);
    test_store_queue(store, "capacity=1 lanes=only");
    test_join(store, "a", 0);
    test_batch(store);
    damage(store, "redis.call('HSET', key('serials'), 1, '2:7:a')");
    audit(store, &report);
    assert_int_equal(report.n_violations, 0);
    damage(store, "redis.call('HSET', key('serials'), 9, '1:7:z')");
    audit(store, &report);
    assert_int_equal(report.n_violations, 1);
    assert_non_null(strstr(report.listed[0].text, "\"z\" does not hold that place"));
    assert_string_equal(report.note, "");
    damage(store, "redis.call('DEL', key('serials'))"
                  "redis.call('HSET', key('serials'), 9, '1:7:z')"
                  "redis.call('SET', waiting, 'x')");
    audit(store, &report);
    assert_true(report.n_violations > 0);
    for (size_t i = 0; i < report.n_listed; i++)
        assert_null(strstr(report.listed[i].text, "does not hold"));
}

/* Damages the serial that a scan comes to last; then makes it right again and damages the first. */
static const char last_and_first_serial[] =
    "local cursor, found = '0', {}\n"
    "repeat local page = redis.call('HSCAN', key('serials'), cursor, 'COUNT', 100)\n"
    "    cursor = page[1] for i = 1, #page[2], 2 do found[#found + 1] = page[2][i] end\n"
    "until cursor == '0'\n"
    "local seq, other = found[#found], found[1]\n"
    "if redis.call('HGET', key('serials'), seq) == '1:7:nobody' then seq, other = other, seq end\n"
    "redis.call('HSET', key('serials'), other, '1:7:w' .. other, seq, '1:7:nobody')";

/* However many there are: 6,000 places were handed over, and one of their serials is wrong. */
static void serials_are_read_in_pages(void **state)
{
    struct test_store *store = *state;
    struct tl_audit_report report;
    (void)test_store_clean(state);
    test_store_queue(store, "capacity=1 lanes=only");
    test_join_many(store, "w", 6000, 0);
    damage(store, "for i = 1, 6000 do redis.call('HSET', key('serials'), i, '1:7:w' .. i) end");
    audit(store, &report);
    assert_int_equal(report.n_violations, 0);
    assert_string_equal(report.note, "");
    for (int nth = 0; nth < 2; nth++) {
        damage(store, last_and_first_serial);
        audit(store, &report);
        assert_int_equal(report.n_violations, 1);
        assert_int_equal(report.listed[0].rule, 6);
        assert_non_null(strstr(report.listed[0].text, "\"nobody\" does not hold that place"));
    }
    damage(store, "for i = 5901, 6000 do redis.call('HSET', key('serials'), i, 'x') end");
    audit(store, &report);
    assert_in_range(report.n_violations, 100, 101);
}

/* What programs mend by themselves is looked at twice. */
static void what_heals_is_not_reported(void **state)
{
    struct test_store *store = *state;
    struct tl_audit_report report;
    struct tl_error err = {0};
    damage(store, "redis.call('XGROUP', 'DESTROY', ingest, 'dispatchers')");
    pid_t healer = fork();
    assert_true(healer >= 0);
    if (healer == 0) {
        struct tl_redis *redis = test_redis_connect(store->server);
        test_redis_pass_time(redis, 50);
        tl_reply_free(test_redis_call(redis, "XGROUP CREATE tl:{q}:ingest dispatchers 0"));
        _exit(0);
    }
    bool ok = tl_audit_queue(store->redis, &store->keys, &report, &err);
    int status = -1;
    assert_int_equal(waitpid(healer, &status, 0), healer);
    assert_true(ok);
    for (size_t i = 0; i < report.n_listed; i++) /* the group reads from the start again */
        assert_null(strstr(report.listed[i].text, "is gone"));
}

/* More visitors than fit into one page, and more violations than are listed. */
static void big_sets_are_read_in_pages(void **state)
{
    struct test_store *store = *state;
    struct tl_audit_report report;
    static const char many[] =
        "set('admit_capacity', 5000) redis.call('HSET', config, 'capacity', 5000)"
        "redis.call('DEL', waiting) set('waiting', 1200) set('active', 3002) set('joined', 4203)"
        "set('admitted', 3003) add('seq', 10000) local first = held('c') + 100\n"
        "for i = 1, 3000 do redis.call('ZADD', active, redis.call('ZSCORE', active, 'b'), 'in' .. "
        "i)"
        " move('in' .. i, first + i) end\n"
        "for i = 1, 1200 do redis.call('ZADD', waiting, int(first + 3000 + i), 'w' .. i) end\n"
        "redis.call('DEL', events) redis.call('XADD', events, '*', 'd', cmsgpack.pack({ 1,"
        "tonumber(redis.call('HGET', state, 'event')), tonumber(redis.call('HGET', state,"
        "'generation')), 1200, 3002, {} }))";
    damage(store, many);
    audit(store, &report);
    for (size_t i = 0; i < report.n_listed && i < 3; i++)
        print_error("%s\n", report.listed[i].text);
    assert_int_equal(report.n_violations, 0);
    assert_int_equal(report.waiting, 1200);
    assert_int_equal(report.active, 3002);
    /* Far apart in the pages: two of the active, and two who wait, share a place. */
    damage(store,
           "move('in2999', held('in1')) redis.call('ZADD', waiting, int(place('w500')), 'w501')");
    audit(store, &report);
    assert_int_equal(report.n_violations, 2);
    assert_int_equal(report.listed[0].rule, 6);
    assert_int_equal(report.listed[1].rule, 6);
    damage(store, "redis.call('ZADD', waiting, int(held('c') + 1), 'w1')"
                  "move('in2999', held('c') + 99) redis.call('ZADD', waiting, int(place('w500') + "
                  "1), 'w501')");
    audit(store, &report); /* everyone who is in passed w1 */
    assert_int_equal(report.n_violations, 3000);
    assert_int_equal(report.n_listed, TL_AUDIT_LISTED_MAX);
    assert_int_equal(report.listed[0].rule, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_queue_in_order_is_in_order, setup),
        cmocka_unit_test_setup(a_queue_that_is_not_there, setup),
        cmocka_unit_test(every_damage_is_found_0),
        cmocka_unit_test(every_damage_is_found_1),
        cmocka_unit_test(every_damage_is_found_2),
        cmocka_unit_test(every_damage_is_found_3),
        cmocka_unit_test(every_damage_is_found_4),
        cmocka_unit_test(every_damage_is_found_5),
        cmocka_unit_test(every_damage_is_found_6),
        cmocka_unit_test(every_damage_is_found_7),
        cmocka_unit_test_setup(a_lowered_capacity_is_no_violation, setup),
        cmocka_unit_test_setup(a_session_that_is_held_is_no_violation, setup),
        cmocka_unit_test_setup(a_rate_that_is_kept_is_in_order, setup),
        cmocka_unit_test_setup(lanes_are_judged_apart, setup),
        cmocka_unit_test_setup(a_move_is_no_violation, setup),
        cmocka_unit_test_setup(serials_are_always_looked_at, setup),
        cmocka_unit_test_setup(serials_are_read_in_pages, setup),
        cmocka_unit_test_setup(what_heals_is_not_reported, setup),
        cmocka_unit_test_setup(big_sets_are_read_in_pages, setup),
    };
    return test_side_by_side(tests, setup_store, test_store_close);
}
