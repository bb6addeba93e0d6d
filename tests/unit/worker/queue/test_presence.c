/* SPDX-License-Identifier: Apache-2.0 */
/* Which visitors a queue reports as seen, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/wire/batch.h"
#include "worker/queue/queue.h"

enum { TTL_MS = 800, INTERVAL_MS = 100, PER_TICK = 500 };

struct reports {
    struct tl_outbox *outbox;
    struct tl_presence presence;
    size_t n; /* of the last tick */
    struct tl_run runs[PER_TICK];
};

static void ignore(void *context, struct tl_pending_command *pending,
                   const struct tl_pending_result *result)
{
    (void)context;
    (void)pending;
    (void)result;
}

static int start(void **state)
{
    static struct reports reports;
    reports.outbox = tl_outbox_new("w", NULL, ignore, NULL);
    reports.presence = (struct tl_presence){.outbox = reports.outbox};
    *state = &reports;
    return reports.outbox == NULL;
}

static int finish(void **state)
{
    struct reports *reports = *state;
    tl_presence_forget(&reports->presence);
    tl_outbox_free(&reports->outbox);
    return 0;
}

/* What was added to the outbox goes to the store, and is applied there. */
static void apply(struct reports *reports)
{
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    reports->n = 0;
    if (!tl_outbox_next(reports->outbox, &payload))
        return;
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
    assert_true(batch.n_commands <= PER_TICK);
    for (size_t i = 0; i < batch.n_commands; i++) {
        assert_int_equal(batch.commands[i].kind, TL_COMMAND_SEEN);
        reports->runs[reports->n++] = (struct tl_run){.first = batch.commands[i].numbers[0],
                                                      .count = batch.commands[i].numbers[1]};
    }
    tl_outbox_sent(reports->outbox, payload.number, TL_BATCH_TAKEN, "1-1", 0);
    const struct tl_event applied = {
        .kind = TL_EVENT_APPLIED, .worker = "w", .batch = payload.number};
    tl_outbox_applied(reports->outbox, &applied);
    tl_batch_free(&batch);
    free(payload.bytes);
}

static void tick(struct reports *reports, int64_t now_ms, bool waiting)
{
    tl_presence_tick(&reports->presence, TTL_MS, waiting, now_ms);
    apply(reports);
}

static void expect_run(const struct reports *reports, size_t i, uint64_t first, uint64_t count)
{
    assert_true(i < reports->n);
    assert_int_equal(reports->runs[i].first, first);
    assert_int_equal(reports->runs[i].count, count);
}

static void who_was_seen_is_reported_once_as_runs(void **state)
{
    struct reports *reports = *state;
    static const uint64_t seqs[] = {9, 3, 4, 5, 5, 9, 4, 1000000, 12};
    for (size_t i = 0; i < sizeof(seqs) / sizeof(seqs[0]); i++)
        tl_presence_mark(&reports->presence, seqs[i]);
    tick(reports, 1000, true);
    assert_int_equal(reports->n, 4);
    expect_run(reports, 0, 3, 3);
    expect_run(reports, 1, 9, 1);
    expect_run(reports, 2, 12, 1);
    expect_run(reports, 3, 1000000, 1);
    tl_presence_mark(&reports->presence, 4);
    tick(reports, 1000 + INTERVAL_MS - 1, true);
    assert_int_equal(reports->n, 0);
    tick(reports, 1000 + INTERVAL_MS, true);
    assert_int_equal(reports->n, 1);
    expect_run(reports, 0, 4, 1);
}

static void a_long_report_takes_several_ticks(void **state)
{
    struct reports *reports = *state;
    for (uint64_t i = 0; i < PER_TICK + 2; i++)
        tl_presence_mark(&reports->presence, 1 + 2 * i);
    tick(reports, 1000, true);
    assert_int_equal(reports->n, PER_TICK);
    expect_run(reports, 0, 1, 1);
    tl_presence_mark(&reports->presence, 1); /* seen again meanwhile: that is for the next one */
    tick(reports, 1001, true);
    assert_int_equal(reports->n, 2);
    expect_run(reports, 1, 1 + 2 * (PER_TICK + 1), 1);
    tick(reports, 1002, true);
    assert_int_equal(reports->n, 0);
    tick(reports, 1000 + INTERVAL_MS, true);
    assert_int_equal(reports->n, 1);
    expect_run(reports, 0, 1, 1);
}

static void that_nobody_was_seen_is_reported_while_someone_waits(void **state)
{
    struct reports *reports = *state;
    tick(reports, 1000, false);
    assert_int_equal(reports->n, 0);
    /* A waiting visitor is not reported yet: a report is due, once. */
    tick(reports, 1000, true);
    assert_int_equal(reports->n, 1);
    expect_run(reports, 0, 0, 0);
    tick(reports, 1000 + INTERVAL_MS / 2, true);
    assert_int_equal(reports->n, 0);
    tick(reports, 1000 + INTERVAL_MS, true);
    assert_int_equal(reports->n, 1);
    expect_run(reports, 0, 0, 0);
}

static void reports_come_eight_times_in_the_time_of_a_place(void **state)
{
    struct reports *reports = *state;
    static const struct {
        int64_t ttl_ms, interval_ms;
    } cases[] = {{600000, 75000}, {100, 100}};
    int64_t now_ms = 1000000;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_presence_tick(&reports->presence, cases[i].ttl_ms, true, now_ms);
        apply(reports);
        assert_int_equal(reports->n, 1);
        tl_presence_tick(&reports->presence, cases[i].ttl_ms, true,
                         now_ms + cases[i].interval_ms - 1);
        apply(reports);
        assert_int_equal(reports->n, 0);
        now_ms += cases[i].interval_ms;
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_was_seen_is_reported_once_as_runs),
        TEST(a_long_report_takes_several_ticks),
        TEST(that_nobody_was_seen_is_reported_while_someone_waits),
        TEST(reports_come_eight_times_in_the_time_of_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
