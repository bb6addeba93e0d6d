/* SPDX-License-Identifier: Apache-2.0 */
/* Real child processes, and a clock that the test sets. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/role/signals.h"
#include "common/role/supervisor.h"

enum { PATIENCE_MS = 200000, BASE_MS = 100, LIMIT_MS = 5000, ORPHAN_S = 600 };

/* What the callbacks of one child have seen. */
struct record {
    struct tl_supervisor *supervisor;
    int (*run)(void *context);
    unsigned starts, ends, kills;
    unsigned failing_starts; /* this many fail before one works */
    pid_t pid;
    int status;
    int64_t delay_ms;
    enum tl_kill_reason reason;
    bool for_good; /* not to be started again */
    int64_t beats;
    bool deaf;
    unsigned *order; /* counts the ends of all children */
    unsigned place;  /* of this one among them */
};

static pid_t start(void *context)
{
    struct record *record = context;
    record->starts++;
    if (record->starts <= record->failing_starts)
        return -1;
    fflush(NULL); /* so that the child has nothing to flush */
    record->pid = tl_supervisor_fork(record->supervisor, record->run, record);
    return record->pid;
}

static bool ended(void *context, int status, int64_t delay_ms)
{
    struct record *record = context;
    record->ends++;
    record->status = status;
    record->delay_ms = delay_ms;
    if (record->order != NULL)
        record->place = ++*record->order;
    return !record->for_good;
}

static void killing(void *context, enum tl_kill_reason reason)
{
    struct record *record = context;
    record->kills++;
    record->reason = reason;
}

static int64_t beats(void *context)
{
    return ((const struct record *)context)->beats;
}

static bool deaf(void *context)
{
    return ((const struct record *)context)->deaf;
}

/* ---- what children do; they end by themselves should the test die ---- */

static int run_and_fail(void *context)
{
    (void)context;
    _exit(3);
}

/* SIGTERM stays blocked. */
static int run_stubbornly(void *context)
{
    (void)context;
    alarm(ORPHAN_S);
    while (pause() != 0)
        continue;
    _exit(1);
}

/* Exit status 0 after SIGTERM, 7 after SIGHUP. */
static int run_politely(void *context)
{
    struct tl_signals signals;
    (void)context;
    alarm(ORPHAN_S);
    if (!tl_signals_open(&signals, NULL))
        _exit(1);
    for (;;) {
        enum tl_signal signal = tl_signals_next(&signals);
        if (signal == TL_SIGNAL_STOP || signal == TL_SIGNAL_RELOAD)
            _exit(signal == TL_SIGNAL_STOP ? 0 : 7);
        tl_signals_wait(&signals, 1000);
    }
}

/* ---- helpers ---- */

static unsigned reloads;

static void count_reload(void *context)
{
    ++*(unsigned *)context;
}

static struct tl_supervisor *new_supervisor(bool hangup_stops)
{
    struct tl_error err = {0};
    const struct tl_supervisor_settings settings = {.restart_base_ms = BASE_MS,
                                                    .restart_limit_ms = LIMIT_MS,
                                                    .hangup_stops = hangup_stops,
                                                    .reload = count_reload,
                                                    .context = &reloads};
    struct tl_supervisor *supervisor = tl_supervisor_new(&settings, &err);
    assert_non_null(supervisor);
    return supervisor;
}

static void add(struct tl_supervisor *supervisor, struct record *record, unsigned stop_stage,
                int64_t stop_limit_ms, bool watched)
{
    struct tl_error err = {0};
    const struct tl_child child = {.context = record,
                                   .start = start,
                                   .ended = ended,
                                   .killing = killing,
                                   .beats = watched ? beats : NULL,
                                   .deaf = watched ? deaf : NULL,
                                   .stop_stage = stop_stage,
                                   .stop_limit_ms = stop_limit_ms};
    record->supervisor = supervisor;
    assert_true(tl_supervisor_add(supervisor, &child, &err));
}

/* Turns, always at the same time, until the child has ended so often. */
static void turn_until_ended(struct tl_supervisor *supervisor, const struct record *record,
                             unsigned ends, int64_t now_ms)
{
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    while (record->ends < ends) {
        assert_true(tl_clock_ms() < until_ms);
        tl_supervisor_turn(supervisor, now_ms);
        usleep(1000);
    }
}

static void assert_exit(const struct record *record, int status)
{
    assert_true(WIFEXITED(record->status));
    assert_int_equal(WEXITSTATUS(record->status), status);
}

static void assert_killed(const struct record *record)
{
    assert_true(WIFSIGNALED(record->status));
    assert_int_equal(WTERMSIG(record->status), SIGKILL);
}

/* ---- tests ---- */

static void test_restarts_back_off(void **state)
{
    (void)state;
    struct tl_supervisor *supervisor = new_supervisor(false);
    struct record record = {.run = run_and_fail};
    int64_t now_ms = 1000000;
    int64_t longest_ms = 0;
    add(supervisor, &record, 0, PATIENCE_MS, false);
    for (unsigned ends = 1; ends <= 8; ends++) {
        turn_until_ended(supervisor, &record, ends, now_ms);
        assert_exit(&record, 3);
        assert_in_range(record.delay_ms, BASE_MS / 2, LIMIT_MS);
        longest_ms = record.delay_ms > longest_ms ? record.delay_ms : longest_ms;
        tl_supervisor_turn(supervisor, now_ms + record.delay_ms - 1);
        assert_int_equal(record.starts, ends); /* not before it is due */
        now_ms += record.delay_ms;
    }
    assert_true(longest_ms > BASE_MS);
    /* A child that ran long enough starts from the base again. */
    tl_supervisor_turn(supervisor, now_ms);
    turn_until_ended(supervisor, &record, 9, now_ms + 10000);
    assert_in_range(record.delay_ms, BASE_MS / 2, BASE_MS);
    tl_supervisor_free(&supervisor);
    assert_null(supervisor);
}

static void test_a_child_can_end_for_good(void **state)
{
    (void)state;
    struct tl_supervisor *supervisor = new_supervisor(false);
    struct record record = {.run = run_and_fail, .for_good = true};
    add(supervisor, &record, 0, PATIENCE_MS, false);
    turn_until_ended(supervisor, &record, 1, 0);
    tl_supervisor_turn(supervisor, INT64_MAX / 2);
    assert_int_equal(record.starts, 1);
    assert_false(tl_supervisor_stopped(supervisor));
    tl_supervisor_stop(supervisor, 0);
    assert_true(tl_supervisor_stopped(supervisor));
    tl_supervisor_free(&supervisor);
}

static void test_a_failed_start_is_tried_again(void **state)
{
    (void)state;
    struct tl_supervisor *supervisor = new_supervisor(false);
    struct record record = {.run = run_and_fail, .failing_starts = 1};
    add(supervisor, &record, 0, PATIENCE_MS, false);
    tl_supervisor_turn(supervisor, 0);
    tl_supervisor_turn(supervisor, 0);
    assert_int_equal(record.starts, 1);
    turn_until_ended(supervisor, &record, 1, BASE_MS);
    assert_int_equal(record.starts, 2);
    tl_supervisor_free(&supervisor);
}

static void test_a_child_without_heartbeat_is_killed(void **state)
{
    (void)state;
    struct tl_supervisor *supervisor = new_supervisor(false);
    struct record stuck = {.run = run_stubbornly};
    struct record turning = {.run = run_stubbornly};
    int64_t now_ms = 0;
    add(supervisor, &stuck, 0, PATIENCE_MS, true);
    add(supervisor, &turning, 0, PATIENCE_MS, true);
    /* A suspended machine: one tick, however long. */
    tl_supervisor_turn(supervisor, now_ms);
    now_ms += 3600 * 1000;
    for (int tick = 0; tick < 58; tick++, now_ms += 500, turning.beats++)
        tl_supervisor_turn(supervisor, now_ms);
    assert_int_equal(stuck.kills, 0);
    for (int tick = 0; tick < 3; tick++, now_ms += 500, turning.beats++)
        tl_supervisor_turn(supervisor, now_ms);
    assert_int_equal(stuck.kills, 1);
    assert_int_equal(stuck.reason, TL_KILL_STUCK);
    turn_until_ended(supervisor, &stuck, 1, now_ms);
    assert_killed(&stuck);
    assert_int_equal(turning.kills, 0);
    tl_supervisor_free(&supervisor);
}

static void test_a_deaf_child_is_killed(void **state)
{
    (void)state;
    struct tl_supervisor *supervisor = new_supervisor(false);
    struct record record = {.run = run_stubbornly};
    add(supervisor, &record, 0, PATIENCE_MS, true);
    tl_supervisor_turn(supervisor, 0);
    tl_supervisor_turn(supervisor, 500);
    assert_int_equal(record.kills, 0);
    record.deaf = true;
    tl_supervisor_turn(supervisor, 1000);
    assert_int_equal(record.kills, 1);
    assert_int_equal(record.reason, TL_KILL_DEAF);
    record.deaf = false;
    turn_until_ended(supervisor, &record, 1, 1000);
    assert_killed(&record);
    tl_supervisor_free(&supervisor);
}

static void test_stop_goes_stage_by_stage(void **state)
{
    (void)state;
    struct tl_supervisor *supervisor = new_supervisor(false);
    unsigned order = 0;
    struct record last = {.run = run_politely, .order = &order};
    struct record first = {.run = run_politely, .order = &order};
    struct record late = {.run = run_stubbornly, .order = &order};
    add(supervisor, &last, 1, INT64_MAX, false);
    add(supervisor, &first, 0, 30000, false);
    add(supervisor, &late, 0, 30000, false);
    tl_supervisor_turn(supervisor, 0);
    tl_supervisor_stop(supervisor, 0);
    assert_true(tl_supervisor_stopping(supervisor));
    turn_until_ended(supervisor, &first, 1, 29999);
    assert_exit(&first, 0);
    assert_int_equal(first.delay_ms, -1);
    assert_int_equal(late.kills, 0);
    turn_until_ended(supervisor, &late, 1, 30000);
    assert_killed(&late);
    assert_int_equal(late.kills, 1);
    assert_int_equal(late.reason, TL_KILL_LATE);
    turn_until_ended(supervisor, &last, 1, 30000);
    assert_exit(&last, 0);
    assert_int_equal(last.place, 3);
    assert_true(tl_supervisor_stopped(supervisor));
    tl_supervisor_free(&supervisor);
}

/* While the first stage stops, a child of the next that dies is still started again. */
static void test_a_later_stage_is_kept_running(void **state)
{
    (void)state;
    struct tl_supervisor *supervisor = new_supervisor(false);
    struct record first = {.run = run_stubbornly};
    struct record next = {.run = run_and_fail};
    add(supervisor, &first, 0, 30000, false);
    add(supervisor, &next, 1, 30000, false);
    tl_supervisor_turn(supervisor, 0);
    tl_supervisor_stop(supervisor, 0);
    turn_until_ended(supervisor, &next, 1, 0);
    turn_until_ended(supervisor, &next, 2, 1000);
    tl_supervisor_kill(supervisor, 1000);
    turn_until_ended(supervisor, &first, 1, 1000);
    assert_killed(&first);
    assert_int_equal(first.kills, 1);
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    while (!tl_supervisor_stopped(supervisor)) {
        assert_true(tl_clock_ms() < until_ms);
        tl_supervisor_turn(supervisor, 1000);
    }
    tl_supervisor_free(&supervisor);
}

static void test_hangup_reloads_or_stops(void **state)
{
    (void)state;
    struct record record = {.run = run_politely};
    struct tl_supervisor *supervisor = new_supervisor(false);
    unsigned before = reloads;
    add(supervisor, &record, 0, 30000, false);
    tl_supervisor_turn(supervisor, 0);
    assert_int_equal(kill(getpid(), SIGHUP), 0);
    turn_until_ended(supervisor, &record, 1, 0);
    assert_exit(&record, 7);
    assert_int_equal(tl_supervisor_stop_asked(supervisor), 0);
    assert_int_equal(reloads, before + 1);
    tl_supervisor_free(&supervisor);

    supervisor = new_supervisor(true);
    assert_int_equal(kill(getpid(), SIGHUP), 0);
    tl_supervisor_turn(supervisor, 0);
    assert_int_equal(tl_supervisor_stop_asked(supervisor), 1);
    assert_int_equal(reloads, before + 1);
    tl_supervisor_free(&supervisor);
}

static void test_waits_for_what_is_due(void **state)
{
    (void)state;
    struct tl_supervisor *supervisor = new_supervisor(false);
    struct tl_error err = {0};
    struct record record = {.run = run_and_fail};
    int64_t before_ms = tl_clock_ms();
    add(supervisor, &record, 0, PATIENCE_MS, false);
    assert_true(tl_supervisor_wait(supervisor, NULL, 0, PATIENCE_MS, &err)); /* the start is due */
    tl_supervisor_turn(supervisor, tl_clock_ms());
    assert_true(tl_supervisor_wait(supervisor, NULL, 0, PATIENCE_MS, &err)); /* its end */
    assert_true(tl_clock_ms() - before_ms < PATIENCE_MS);
    turn_until_ended(supervisor, &record, 1, tl_clock_ms());
    tl_supervisor_free(&supervisor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restarts_back_off),
        cmocka_unit_test(test_a_child_can_end_for_good),
        cmocka_unit_test(test_a_failed_start_is_tried_again),
        cmocka_unit_test(test_a_child_without_heartbeat_is_killed),
        cmocka_unit_test(test_a_deaf_child_is_killed),
        cmocka_unit_test(test_stop_goes_stage_by_stage),
        cmocka_unit_test(test_a_later_stage_is_kept_running),
        cmocka_unit_test(test_hangup_reloads_or_stops),
        cmocka_unit_test(test_waits_for_what_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
