/* SPDX-License-Identifier: Apache-2.0 */
/* The modes and phases of a queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/config.h"
#include "common/config/mode.h"
#include "common/config/queue_settings.h"

static struct tl_queue_settings in_mode(enum tl_queue_mode mode)
{
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    settings.mode = mode;
    return settings;
}

/* Rows: from; columns: to; both open, paused, draining, closed, sold_out, passthrough. */
static const char *const transitions[TL_MODES] = {"yyyyyy", "yyyyyy", "yyyyyy",
                                                  "yyyyyy", "nnnyyy", "yyyyyy"};

static void the_table_says_which_mode_may_follow_which(void **state)
{
    (void)state;
    for (unsigned from = 0; from < TL_MODES; from++) {
        for (unsigned to = 0; to < TL_MODES; to++) {
            struct tl_error err = {0};
            struct tl_queue_settings before = in_mode((enum tl_queue_mode)from);
            struct tl_queue_settings after = before;
            bool may = transitions[from][to] == 'y';
            after.mode = (enum tl_queue_mode)to;
            assert_int_equal(tl_mode_change(&before, &after, &err), may);
            if (!may)
                assert_non_null(strstr(err.text, "sold_out"));
        }
    }
}

static void the_file_means_the_same(void **state)
{
    static const char text[] = "queues: {a: {mode: paused}, b: {mode: closed}, c: {},\n"
                               "         d: {mode: passthrough}}\n";
    struct tl_error err = {0};
    (void)state;
    const struct tl_config *config = tl_config_parse("t.yaml", text, strlen(text), &err);
    assert_non_null(config);
    assert_int_equal(config->queues[0].settings.mode, TL_MODE_PAUSED);
    assert_int_equal(config->queues[1].settings.mode, TL_MODE_CLOSED);
    assert_int_equal(config->queues[2].settings.mode, TL_MODE_OPEN);
    assert_false(config->queues[2].passthrough);
    /* of the file it is a switch: a queue that is made meanwhile is open */
    assert_true(config->queues[3].passthrough);
    assert_int_equal(config->queues[3].settings.mode, TL_MODE_OPEN);
    tl_config_free(&config);
}

static void only_open_and_draining_admit_and_in_their_time(void **state)
{
    (void)state;
    for (unsigned mode = 0; mode < TL_MODES; mode++) {
        struct tl_queue_settings settings = in_mode((enum tl_queue_mode)mode);
        bool admits = mode == TL_MODE_OPEN || mode == TL_MODE_DRAINING;
        settings.opens_at_ms = 1000;
        settings.closes_at_ms = 2000;
        assert_false(tl_mode_admits(&settings, 999));
        assert_int_equal(tl_mode_admits(&settings, 1000), admits);
        assert_int_equal(tl_mode_admits(&settings, 5000), admits); /* drained */
        settings.after_close = TL_AFTER_CLOSE_STOP;
        assert_int_equal(tl_mode_admits(&settings, 1999), admits);
        assert_false(tl_mode_admits(&settings, 2000));
    }
}

static void the_phase_follows_from_the_facts(void **state)
{
    struct tl_queue_settings settings = in_mode(TL_MODE_OPEN);
    struct tl_phase_facts facts = {.now_ms = 1000};
    (void)state;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_OPEN);
    settings.opens_at_ms = 1001;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_SCHEDULED);
    assert_true(tl_phase_joins(&settings, TL_PHASE_SCHEDULED));
    facts.now_ms = 1001;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_OPEN);
    facts.drawing = true;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_DRAWING);
    assert_true(tl_phase_joins(&settings, TL_PHASE_DRAWING));
    settings.closes_at_ms = 1002;
    facts.now_ms = 1002;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_OVER);
    assert_false(tl_phase_joins(&settings, TL_PHASE_OVER));
    facts.recovering = true;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_RECOVERING);
    assert_string_equal(tl_phase_name(TL_PHASE_RECOVERING), "recovering");
}

static void a_full_line_stays_full_for_a_while(void **state)
{
    struct tl_queue_settings settings = in_mode(TL_MODE_OPEN);
    struct tl_phase_facts facts = {.now_ms = 1000, .waiting = 100};
    (void)state;
    settings.max_waiting = 100;
    settings.reopen.margin = 5;
    settings.reopen.after_ms = 10000;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_FULL);
    facts.waiting = 99;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_OPEN); /* it never was full */
    facts.full_since_ms = 1000;
    facts.now_ms = 20000;
    facts.waiting = 96;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_FULL); /* the margin */
    facts.waiting = 95;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_OPEN);
    facts.now_ms = 10999;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_FULL); /* the cool-down */
    assert_false(tl_phase_joins(&settings, TL_PHASE_FULL));
    settings.max_waiting = 0;
    assert_int_equal(tl_phase_of(&settings, &facts), TL_PHASE_OPEN);
}

static void only_open_and_paused_take_joins(void **state)
{
    (void)state;
    for (unsigned mode = 0; mode < TL_MODES; mode++) {
        struct tl_queue_settings settings = in_mode((enum tl_queue_mode)mode);
        assert_int_equal(tl_phase_joins(&settings, TL_PHASE_OPEN),
                         mode == TL_MODE_OPEN || mode == TL_MODE_PAUSED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_says_which_mode_may_follow_which),
        cmocka_unit_test(the_file_means_the_same),
        cmocka_unit_test(only_open_and_draining_admit_and_in_their_time),
        cmocka_unit_test(the_phase_follows_from_the_facts),
        cmocka_unit_test(a_full_line_stays_full_for_a_while),
        cmocka_unit_test(only_open_and_paused_take_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
