/* SPDX-License-Identifier: Apache-2.0 */
/* The modes of a queue, and its full line, as the functions keep them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/units.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "ingest.h"

#define PATIENCE_MS 120000

static void configure(struct test_store *store, const char *name, const char *value)
{
    struct tl_error err = {0};
    if (!test_queue_set(store->redis, &store->keys, name, value, &err))
        fail_msg("%s", err.text);
}

static void raw(struct test_store *store, const char *name, const char *value)
{
    (void)test_redis_ask(store->redis, "HSET %s %s %s", store->keys.names[TL_KEY_CONFIG], name,
                         value);
}

static void setting_is(struct test_store *store, const char *name, const char *value)
{
    char command[64];
    snprintf(command, sizeof(command), "HGET tl:{q}:config %s", name);
    struct tl_reply *reply = test_redis_call(store->redis, command);
    assert_string_equal(tl_reply_string(reply, NULL), value);
    tl_reply_free(reply);
}

/* Does a newcomer get a place? */
static bool joins(struct test_store *store, const char *visitor)
{
    test_join(store, visitor, 0);
    test_batch(store);
    bool has = test_waiting_place(store, visitor) >= 0;
    test_exceptions_are(store, has ? "" : "0:5:0");
    test_invariants(store->redis, &store->keys);
    return has;
}

static void each_mode_joins_and_admits_as_it_says(void **state)
{
    static const struct {
        const char *mode;
        bool joins, admits;
    } modes[] = {{"open", true, true},          {"paused", true, false},
                 {"draining", false, true},     {"closed", false, false},
                 {"sold_out", false, false},    {"closed", false, false},
                 {"passthrough", false, false}, {"open", true, true}};
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=100");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        char visitor[16];
        configure(store, "mode", "open");
        snprintf(visitor, sizeof(visitor), "w%zu", i);
        assert_true(joins(store, visitor));
        configure(store, "mode", modes[i].mode);
        snprintf(visitor, sizeof(visitor), "v%zu", i);
        assert_int_equal(joins(store, visitor), modes[i].joins);
        assert_int_equal(test_admit(store, 10), modes[i].admits ? 1 + modes[i].joins : 0);
        if (strcmp(modes[i].mode, "sold_out") == 0)
            configure(store, "mode", "closed");
        configure(store, "mode", "open");
        (void)test_admit(store, 10);
    }
}

/* The mode that a later release may bring. */
static void an_unknown_mode_neither_joins_nor_admits(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=100");
    assert_true(joins(store, "anna"));
    raw(store, "mode", "novel");
    assert_false(joins(store, "berta"));
    assert_int_equal(test_admit(store, 10), 0);
}

static void sold_out_is_undone_in_two_steps(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    test_store_queue(store, "lanes=only");
    configure(store, "mode", "sold_out");
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_false(test_queue_set(store->redis, &store->keys, "mode", "open", &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    assert_int_equal(test_redis_fingerprint(store->redis), before);
    configure(store, "mode", "closed");
    configure(store, "mode", "open");
    setting_is(store, "mode", "open");
}

static void after_closes_at_no_one_joins(void **state)
{
    struct test_store *store = *state;
    char text[TL_UNITS_TEXT_MAX];
    test_store_queue(store, "lanes=only capacity=2");
    assert_true(joins(store, "anna"));
    assert_true(joins(store, "berta"));
    tl_time_format(test_redis_ms(store->redis) + 60000, text, sizeof(text));
    configure(store, "closes_at", text);
    assert_true(joins(store, "clara"));
    tl_time_format(test_redis_ms(store->redis), text, sizeof(text));
    configure(store, "closes_at", text);
    assert_false(joins(store, "dora"));
    test_join(store, "anna", 0); /* a place that is held is held */
    test_batch(store);
    test_exceptions_are(store, "0:1:1");
    assert_int_equal(test_admit(store, 1), 1); /* the line is served */
    configure(store, "after_close", "stop");
    assert_int_equal(test_admit(store, 1), 0);
}

/* The entry after the last batch: has it a CONFIG event? */
static bool told_config(struct test_store *store)
{
    struct test_entry last;
    test_entry_read(store, &last);
    bool told = test_event(&last, TL_EVENT_CONFIG, 0) != NULL;
    test_entry_free(&last);
    return told;
}

static void a_full_line_opens_again_beyond_its_margin(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store,
                     "lanes=only capacity=0 max_waiting=10 reopen.margin=20% reopen.after=0s");
    test_join_many(store, "v", 9, 0);
    assert_int_equal(test_state(store, "full_since"), -1);
    assert_false(told_config(store));
    assert_true(joins(store, "tenth"));
    assert_true(test_state(store, "full_since") > 0);
    assert_true(told_config(store));
    assert_false(joins(store, "eleventh"));
    assert_false(told_config(store));
    test_command(store, TL_COMMAND_LEAVE, "v1", 1);
    test_batch(store);
    assert_false(joins(store, "early")); /* one free is not two */
    test_command(store, TL_COMMAND_LEAVE, "v2", 2);
    test_batch(store);
    assert_true(joins(store, "late"));
    assert_int_equal(test_state(store, "full_since"), 0);
    assert_true(told_config(store));
    assert_true(joins(store, "last")); /* full again */
    assert_true(test_state(store, "full_since") > 0);
}

static void and_not_before_its_cooldown(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store,
                     "lanes=only capacity=0 max_waiting=2 reopen.margin=0% reopen.after=300ms");
    assert_true(joins(store, "anna"));
    assert_true(joins(store, "berta"));
    int64_t since = test_state(store, "full_since");
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_batch(store);
    int64_t until = test_redis_ms(store->redis) + PATIENCE_MS;
    char visitor[32];
    bool has = false;
    for (unsigned i = 0; !has && test_redis_ms(store->redis) < until; i++) {
        snprintf(visitor, sizeof(visitor), "clara%u", i);
        has = joins(store, visitor);
    }
    assert_true(has);
    assert_true(test_redis_ms(store->redis) >= since + 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_mode_joins_and_admits_as_it_says, test_store_clean),
        cmocka_unit_test_setup(an_unknown_mode_neither_joins_nor_admits, test_store_clean),
        cmocka_unit_test_setup(sold_out_is_undone_in_two_steps, test_store_clean),
        cmocka_unit_test_setup(after_closes_at_no_one_joins, test_store_clean),
        cmocka_unit_test_setup(a_full_line_opens_again_beyond_its_margin, test_store_clean),
        cmocka_unit_test_setup(and_not_before_its_cooldown, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
