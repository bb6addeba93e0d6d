/* SPDX-License-Identifier: Apache-2.0 */
/* The line in memory, against a naive model that keeps one array of places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/line/line.h"
#include "tests/unit/random.h"

#define GENERATION 42
#define HOUR_MS    3600000
#define LANES      3
#define SEQS       300

/* ---- one-event entries ---- */

struct one {
    struct tl_event_entry entry;
    struct tl_event event;
    struct tl_run run;
};

static const struct tl_event_entry *make(struct one *one, uint64_t number, enum tl_event_kind kind,
                                         tl_place first, uint64_t count)
{
    one->run = (struct tl_run){.first = first, .count = count};
    one->event = (struct tl_event){.kind = kind,
                                   .places = {.n = 1, .runs = &one->run},
                                   .deadline_ms = (int64_t)(1000 + number),
                                   .reason = TL_REASON_LEFT};
    one->entry = (struct tl_event_entry){
        .number = number, .generation = GENERATION, .n_events = 1, .events = &one->event};
    return &one->entry;
}

static enum tl_line_result apply(struct tl_line *line, uint64_t number, enum tl_event_kind kind,
                                 tl_place first, uint64_t count)
{
    struct one one;
    return tl_line_apply(line, make(&one, number, kind, first, count), 0);
}

static struct tl_line *new_line(void)
{
    struct tl_line *line = tl_line_new();
    assert_non_null(line);
    tl_line_start(line, GENERATION, 0);
    return line;
}

/* ---- the model ---- */

struct model {
    enum tl_line_status status[LANES][SEQS];
    int64_t deadline[LANES][SEQS];
};

static void model_apply(struct model *model, const struct tl_event *event)
{
    unsigned lane = tl_place_lane(event->places.runs[0].first);
    uint64_t seq = tl_place_seq(event->places.runs[0].first);
    for (uint64_t i = seq; i < seq + event->places.runs[0].count; i++) {
        enum tl_line_status *status = &model->status[lane][i];
        if (event->kind == TL_EVENT_JOINED)
            *status = TL_LINE_WAITING;
        else if (event->kind == TL_EVENT_ADMITTED)
            *status = TL_LINE_ACTIVE;
        else if (event->kind == TL_EVENT_RENEWED && *status != TL_LINE_ACTIVE)
            continue;
        else if (event->kind != TL_EVENT_RENEWED)
            *status = TL_LINE_ENDED;
        model->deadline[lane][i] = event->deadline_ms;
    }
}

static void compare(const struct tl_line *line, const struct model *model)
{
    uint64_t ahead = 0, active = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (uint64_t seq = 1; seq < SEQS; seq++) {
            struct tl_line_view view = tl_line_look(line, tl_place_make(lane, seq));
            assert_int_equal(view.status, model->status[lane][seq]);
            if (view.status == TL_LINE_WAITING)
                assert_int_equal(view.ahead, ahead++);
            if (view.status == TL_LINE_ACTIVE) {
                assert_int_equal(view.deadline_ms, model->deadline[lane][seq]);
                active++;
            }
        }
    assert_int_equal(tl_line_waiting(line), ahead);
    assert_int_equal(tl_line_active(line), active);
}

/* An event that can happen to the place in the model, as the scripts send it. */
static const struct tl_event_entry *random_event(const struct model *model, uint64_t *random,
                                                 uint64_t number, struct one *one)
{
    static const enum tl_event_kind of_waiting[] = {TL_EVENT_ADMITTED, TL_EVENT_REMOVED};
    static const enum tl_event_kind of_active[] = {TL_EVENT_FREED, TL_EVENT_RENEWED};
    for (;;) {
        unsigned lane = (unsigned)random_below(random, LANES);
        uint64_t seq = 1 + random_below(random, SEQS - 1);
        enum tl_line_status status = model->status[lane][seq];
        enum tl_event_kind kind = TL_EVENT_JOINED;
        if (status == TL_LINE_ENDED)
            continue;
        if (status == TL_LINE_WAITING)
            kind = of_waiting[random_below(random, 2)];
        if (status == TL_LINE_ACTIVE)
            kind = of_active[random_below(random, 2)];
        uint64_t most = kind == TL_EVENT_RENEWED ? 1 : 1 + random_below(random, 9);
        uint64_t count = 1;
        while (count < most && seq + count < SEQS && model->status[lane][seq + count] == status)
            count++;
        return make(one, number, kind, tl_place_make(lane, seq), count);
    }
}

/* ---- tests ---- */

static void a_random_history_matches_the_model(void **state)
{
    (void)state;
    uint64_t random = random_seed("a_random_history_matches_the_model");
    struct tl_line *line = new_line();
    struct model *model = calloc(1, sizeof(*model));
    for (uint64_t number = 1; number <= 400; number++) {
        struct one one;
        const struct tl_event_entry *entry = random_event(model, &random, number, &one);
        model_apply(model, &one.event);
        assert_int_equal(tl_line_apply(line, entry, 0), TL_LINE_APPLIED);
        assert_int_equal(tl_line_apply(line, entry, 0), TL_LINE_OLD); /* twice is once */
        if (number % 8 == 0)
            compare(line, model);
    }
    free(model);
    tl_line_free(&line);
    assert_null(line);
}

/* A snapshot whose pages were read at another moment than its head: each place in the state it had
 * at any time between the head and the last event. Applying the events on top makes it right. */
static void a_fuzzy_snapshot_comes_right(void **state)
{
    (void)state;
    enum { BEFORE = 250, AFTER = 200 };
    uint64_t random = random_seed("a_fuzzy_snapshot_comes_right");
    struct model *past = calloc(AFTER + 1, sizeof(*past)); /* the model after each event */
    struct one *events = calloc(AFTER, sizeof(*events));
    struct tl_line *line = tl_line_new();
    struct one one;
    for (uint64_t number = 1; number <= BEFORE; number++) {
        random_event(&past[0], &random, number, &one);
        model_apply(&past[0], &one.event);
    }
    for (uint64_t i = 0; i < AFTER; i++) {
        past[i + 1] = past[i];
        random_event(&past[i], &random, BEFORE + 1 + i, &events[i]);
        model_apply(&past[i + 1], &events[i].event);
    }
    tl_line_start(line, GENERATION, BEFORE);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (uint64_t seq = 1; seq < SEQS; seq++) {
            tl_place place = tl_place_make(lane, seq);
            uint64_t page = random_below(&random, AFTER + 1); /* waiting pages are read first */
            if (past[page].status[lane][seq] == TL_LINE_WAITING)
                assert_true(tl_line_add_waiting(line, place, 1));
            page += random_below(&random, AFTER + 1 - page);
            if (past[page].status[lane][seq] == TL_LINE_ACTIVE)
                assert_true(tl_line_add_active(line, place, past[page].deadline[lane][seq]));
        }
    for (uint64_t i = 0; i < AFTER; i++) {
        make(&one, events[i].entry.number, events[i].event.kind, events[i].run.first,
             events[i].run.count);
        assert_int_equal(tl_line_apply(line, &one.entry, 0), TL_LINE_APPLIED);
    }
    for (unsigned lane = 0; lane < LANES; lane++) /* ends before the snapshot are not known */
        for (uint64_t seq = 1; seq < SEQS; seq++)
            if (past[0].status[lane][seq] == TL_LINE_ENDED)
                past[AFTER].status[lane][seq] = TL_LINE_UNKNOWN;
    compare(line, &past[AFTER]);
    tl_line_free(&line);
    free(events);
    free(past);
}

static void a_jump_or_another_generation_is_a_gap(void **state)
{
    (void)state;
    struct tl_line *line = new_line();
    struct one one;
    assert_int_equal(apply(line, 1, TL_EVENT_JOINED, 1, 5), TL_LINE_APPLIED);
    assert_int_equal(apply(line, 3, TL_EVENT_JOINED, 6, 1), TL_LINE_GAP);
    make(&one, 2, TL_EVENT_JOINED, 6, 1);
    one.entry.generation = GENERATION + 1;
    assert_int_equal(tl_line_apply(line, &one.entry, 0), TL_LINE_GAP);
    one.entry.number = 1; /* an old number of another generation is not an old event */
    assert_int_equal(tl_line_apply(line, &one.entry, 0), TL_LINE_GAP);
    assert_int_equal(tl_line_waiting(line), 5);
    assert_int_equal(apply(line, 1, TL_EVENT_REMOVED, 1, 5), TL_LINE_OLD);
    assert_int_equal(tl_line_waiting(line), 5);
    assert_int_equal(apply(line, 2, TL_EVENT_JOINED, 6, 1), TL_LINE_APPLIED);
    tl_line_free(&line);
}

static void sizes_are_compared_with_those_of_the_entry(void **state)
{
    (void)state;
    struct tl_line *line = new_line();
    struct one one;
    /* A snapshot that may contain what happened up to event 2 cannot be compared before that. */
    line->compare_from = 2;
    assert_int_equal(apply(line, 1, TL_EVENT_JOINED, 1, 5), TL_LINE_APPLIED);
    make(&one, 2, TL_EVENT_ADMITTED, 1, 2);
    one.entry.waiting = 3;
    one.entry.active = 2;
    assert_int_equal(tl_line_apply(line, &one.entry, 0), TL_LINE_APPLIED);
    make(&one, 3, TL_EVENT_FREED, 1, 1);
    one.entry.waiting = 3;
    one.entry.active = 2;
    assert_int_equal(tl_line_apply(line, &one.entry, 0), TL_LINE_DIFFERS);
    assert_int_equal(tl_line_active(line), 1); /* it was applied */
    assert_int_equal(tl_line_apply(line, &one.entry, 0), TL_LINE_OLD);
    make(&one, 4, TL_EVENT_REMOVED, 3, 1);
    one.entry.waiting = 3;
    one.entry.active = 1;
    assert_int_equal(tl_line_apply(line, &one.entry, 0), TL_LINE_DIFFERS);
    make(&one, 5, TL_EVENT_REMOVED, 4, 1);
    one.entry.waiting = 1;
    one.entry.active = 1;
    assert_int_equal(tl_line_apply(line, &one.entry, 0), TL_LINE_APPLIED);
    tl_line_free(&line);
}

static void the_front_is_before_the_first_who_waits(void **state)
{
    (void)state;
    struct tl_line *line = new_line();
    assert_int_equal(tl_line_front(line, 0), 0); /* nothing is known */
    apply(line, 1, TL_EVENT_JOINED, 11, 5);
    assert_int_equal(tl_line_front(line, 0), 10);
    assert_int_equal(tl_line_front(line, 1), 15); /* no one waits in this lane */
    apply(line, 2, TL_EVENT_REMOVED, 12, 1);
    assert_int_equal(tl_line_front(line, 0), 10);
    apply(line, 3, TL_EVENT_ADMITTED, 11, 1);
    assert_int_equal(tl_line_front(line, 0), 12);
    apply(line, 4, TL_EVENT_ADMITTED, 13, 3);
    apply(line, 5, TL_EVENT_JOINED, tl_place_make(1, 16), 1);
    assert_int_equal(tl_line_front(line, 0), 16);
    assert_int_equal(tl_line_front(line, 1), 15);
    tl_line_free(&line);
}

static void lanes_before_count_as_ahead(void **state)
{
    (void)state;
    struct tl_line *line = new_line();
    apply(line, 1, TL_EVENT_JOINED, tl_place_make(2, 1), 2);
    apply(line, 2, TL_EVENT_JOINED, tl_place_make(0, 3), 3);
    apply(line, 3, TL_EVENT_JOINED, tl_place_make(1, 6), 1);
    assert_int_equal(tl_line_look(line, tl_place_make(2, 2)).ahead, 5);
    assert_int_equal(tl_line_look(line, tl_place_make(1, 6)).ahead, 3);
    assert_int_equal(tl_line_look(line, tl_place_make(0, 5)).ahead, 2);
    assert_int_equal(tl_line_look(line, tl_place_make(0, 6)).status, TL_LINE_UNKNOWN);
    assert_int_equal(tl_line_look(line, tl_place_make(9, 1)).status, TL_LINE_UNKNOWN);
    assert_int_equal(tl_line_look(line, UINT64_MAX).status, TL_LINE_UNKNOWN);
    assert_int_equal(tl_line_look(line, 0).status, TL_LINE_UNKNOWN);
    assert_null(tl_line_order(line, 9));
    assert_null(tl_line_order(line, TL_LANES_MAX));
    assert_int_equal(tl_line_order(line, 0)->count, 3);
    assert_true(tl_line_bytes(line) > 0);
    tl_line_free(&line);
}

static void renewing_an_ended_session_changes_nothing(void **state)
{
    (void)state;
    struct tl_line *line = new_line();
    apply(line, 1, TL_EVENT_JOINED, 1, 2);
    apply(line, 2, TL_EVENT_ADMITTED, 1, 1);
    assert_int_equal(tl_line_look(line, 1).deadline_ms, 1002);
    apply(line, 3, TL_EVENT_RENEWED, 1, 1);
    assert_int_equal(tl_line_look(line, 1).deadline_ms, 1003);
    apply(line, 4, TL_EVENT_FREED, 1, 1);
    apply(line, 5, TL_EVENT_RENEWED, 1, 1);
    assert_int_equal(tl_line_look(line, 1).status, TL_LINE_ENDED);
    assert_int_equal(tl_line_look(line, 1).reason, TL_REASON_LEFT);
    assert_int_equal(tl_line_active(line), 0);
    apply(line, 6, TL_EVENT_RENEWED, 2, 1); /* waits */
    assert_int_equal(tl_line_look(line, 2).status, TL_LINE_WAITING);
    apply(line, 7, TL_EVENT_ADMITTED, 2, 1);
    apply(line, 8, TL_EVENT_EXTENDED, 2, 1);
    assert_int_equal(tl_line_look(line, 2).deadline_ms, 1008);
    tl_line_free(&line);
}

static void a_serial_only_rises_and_is_forgotten_with_the_end(void **state)
{
    (void)state;
    struct tl_line *line = new_line();
    apply(line, 1, TL_EVENT_JOINED, 1, 2);
    assert_int_equal(tl_line_serial(line, 1), 0);
    assert_true(tl_line_add_serial(line, 1, 3));
    assert_true(tl_line_add_serial(line, 1, 2));
    assert_int_equal(tl_line_serial(line, 1), 3);
    assert_int_equal(tl_line_serial(line, tl_place_make(2, 1)), 3); /* in another lane */
    assert_int_equal(tl_line_serial(line, 2), 0);
    assert_int_equal(tl_line_serial(line, 0), 0); /* of a place without a number */
    apply(line, 2, TL_EVENT_REMOVED, 1, 1);
    assert_int_equal(tl_line_serial(line, 1), 3);
    assert_int_equal(tl_line_forget(line, 2 * HOUR_MS, 1000), 1);
    assert_int_equal(tl_line_serial(line, 1), 0);
    tl_line_free(&line);
}

static void ends_are_forgotten_after_an_hour_some_at_a_time(void **state)
{
    (void)state;
    struct tl_line *line = new_line();
    struct one one;
    apply(line, 1, TL_EVENT_JOINED, 1, 300);
    for (uint64_t i = 1; i <= 300; i++) /* one end a millisecond */
        tl_line_apply(line, make(&one, 1 + i, TL_EVENT_REMOVED, i, 1), (int64_t)i);
    assert_int_equal(tl_line_forget(line, HOUR_MS, 1000), 0);
    assert_int_equal(tl_line_forget(line, HOUR_MS + 1, 1000), 1);
    assert_int_equal(tl_line_look(line, 1).status, TL_LINE_UNKNOWN);
    assert_int_equal(tl_line_look(line, 2).status, TL_LINE_ENDED);
    assert_int_equal(tl_line_forget(line, 2 * HOUR_MS, 100), 100);
    assert_int_equal(tl_line_look(line, 101).status, TL_LINE_UNKNOWN);
    assert_int_equal(tl_line_look(line, 102).status, TL_LINE_ENDED);
    for (uint64_t i = 1; i <= 200; i++) { /* the ring goes round */
        tl_line_apply(line, make(&one, 300 + 2 * i, TL_EVENT_JOINED, 300 + i, 1), 2 * HOUR_MS);
        tl_line_apply(line, make(&one, 301 + 2 * i, TL_EVENT_REMOVED, 300 + i, 1), 2 * HOUR_MS);
    }
    assert_int_equal(tl_line_forget(line, 2 * HOUR_MS, 1000), 199);
    assert_int_equal(tl_line_look(line, 300).status, TL_LINE_UNKNOWN);
    assert_int_equal(tl_line_look(line, 500).status, TL_LINE_ENDED);
    assert_int_equal(tl_line_forget(line, 3 * HOUR_MS, 1000), 200);
    assert_int_equal(tl_line_forget(line, 9 * HOUR_MS, 1000), 0);
    tl_line_free(&line);
}

static void no_more_ends_are_remembered_than_the_store_keeps(void **state)
{
    (void)state;
    struct tl_line *line = new_line();
    apply(line, 1, TL_EVENT_JOINED, 1, TL_LINE_ENDS_MAX + 1000);
    apply(line, 2, TL_EVENT_REMOVED, 1, TL_LINE_ENDS_MAX + 1000);
    assert_int_equal(tl_line_look(line, 1000).status, TL_LINE_UNKNOWN);
    assert_int_equal(tl_line_look(line, 1001).status, TL_LINE_ENDED);
    assert_int_equal(tl_line_look(line, TL_LINE_ENDS_MAX + 1000).status, TL_LINE_ENDED);
    assert_true(tl_line_bytes(line) < 22000000);
    tl_line_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_random_history_matches_the_model),
        cmocka_unit_test(a_fuzzy_snapshot_comes_right),
        cmocka_unit_test(sizes_are_compared_with_those_of_the_entry),
        cmocka_unit_test(a_jump_or_another_generation_is_a_gap),
        cmocka_unit_test(the_front_is_before_the_first_who_waits),
        cmocka_unit_test(lanes_before_count_as_ahead),
        cmocka_unit_test(renewing_an_ended_session_changes_nothing),
        cmocka_unit_test(a_serial_only_rises_and_is_forgotten_with_the_end),
        cmocka_unit_test(ends_are_forgotten_after_an_hour_some_at_a_time),
        cmocka_unit_test(no_more_ends_are_remembered_than_the_store_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
