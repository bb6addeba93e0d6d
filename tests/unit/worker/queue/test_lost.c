/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker knows of a lost generation: which places come back, and what it tells the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/queue/lost.h"

#define LOST    UINT64_C(1795000000000000)
#define PRESENT UINT64_C(1795000600000000) /* ten minutes later */

static void ignore(void *context, struct tl_pending_command *pending,
                   const struct tl_pending_result *result)
{
    (void)context;
    (void)pending;
    (void)result;
}

/* Places 1 to 3 are active, 2 ended; 4 to 9 wait; 9 is the last one used. */
static struct tl_line *lost_line(void)
{
    struct tl_line *line = tl_line_new();
    struct tl_run run = {.first = 2, .count = 1};
    struct tl_event freed = {
        .kind = TL_EVENT_FREED, .places = {.runs = &run, .n = 1}, .reason = TL_REASON_COMPLETED};
    const struct tl_event_entry entry = {.number = 78,
                                         .generation = LOST,
                                         .waiting = 5,
                                         .active = 2,
                                         .n_events = 1,
                                         .events = &freed};
    tl_line_start(line, LOST, 77);
    line->last_seq = 9;
    for (tl_place place = 1; place <= 3; place++)
        assert_true(tl_line_add_active(line, place, 5000 + (int64_t)place));
    assert_true(tl_line_add_waiting(line, 4, 5));
    assert_int_equal(tl_line_apply(line, &entry, 0), TL_LINE_APPLIED);
    return line;
}

static struct tl_lost *new_lost(void)
{
    static struct tl_lost lost;
    lost = (struct tl_lost){0};
    return &lost;
}

static struct tl_lost *recovering(uint64_t lost_generation)
{
    struct tl_lost *lost = new_lost();
    tl_lost_set(lost, &(struct tl_recovery){
                          .lost_generation = lost_generation, .present = PRESENT, .until_ms = 1});
    return lost;
}

static bool may_return(const struct tl_lost *lost, uint64_t generation, tl_place place,
                       int64_t minutes_before)
{
    const struct tl_ticket ticket = {
        .visitor = "anna",
        .generation = generation,
        .place = place,
        .issued = (uint32_t)(PRESENT / 1000000 - (uint64_t)minutes_before * 60)};
    return tl_lost_may_return(lost, &ticket);
}

/* The place that the store is asked for. */
static tl_place asked_for(const struct tl_lost *lost, uint64_t generation, tl_place place)
{
    const struct tl_ticket ticket = {.visitor = "anna", .generation = generation, .place = place};
    struct tl_outbox *outbox = tl_outbox_new("w", NULL, ignore, NULL);
    const struct tl_pending_command *pending = tl_lost_ask(lost, outbox, &ticket, 0, 0);
    assert_non_null(pending);
    tl_place asked = pending->place;
    tl_outbox_free(&outbox);
    return asked;
}

static void a_memory_knows_who_comes_back(void **state)
{
    (void)state;
    struct tl_lost *lost = recovering(LOST);
    tl_lost_keep(lost, lost_line(), true);
    assert_true(may_return(lost, LOST, 1, 600)); /* active */
    assert_false(may_return(lost, LOST, 2, 0));  /* completed */
    assert_true(may_return(lost, LOST, 4, 0));   /* waits */
    assert_true(may_return(lost, LOST, 10, 0));  /* joined after the last event seen */
    assert_false(may_return(lost, LOST, 9, 0));  /* ended long ago */
    assert_true(may_return(lost, LOST, tl_place_make(1, 5), 0));     /* was moved to lane 0... */
    assert_int_equal(asked_for(lost, LOST, tl_place_make(1, 5)), 5); /* ...and comes back there */
    assert_int_equal(asked_for(lost, PRESENT, tl_place_make(1, 5)), tl_place_make(1, 5));
    assert_false(may_return(lost, LOST - 1, 4, 0));
    assert_false(may_return(lost, PRESENT, 4, 0));
    assert_false(may_return(lost, LOST, 0, 0)); /* pending */
    assert_true(tl_lost_ended(lost, LOST, 2));
    assert_false(tl_lost_ended(lost, LOST, 3));
    assert_false(tl_lost_ended(lost, PRESENT, 2));

    tl_lost_answered(lost, LOST, 4, false, 0);
    assert_false(may_return(lost, LOST, 4, 0)); /* the store has said so */
    tl_lost_set(lost, &(struct tl_recovery){.lost_generation = LOST, .present = PRESENT});
    assert_false(may_return(lost, LOST, 5, 0)); /* the recovery is over */
    tl_lost_clear(lost);
}

static void without_a_memory_fresh_tickets_name_the_generation(void **state)
{
    (void)state;
    struct tl_lost *lost = recovering(0);
    assert_true(may_return(lost, LOST, 4, 59));
    assert_false(may_return(lost, LOST, 4, 62));
    assert_false(may_return(lost, PRESENT + 1, 4, 0));
    tl_lost_answered(lost, LOST, 4, true, 0);
    assert_true(tl_lost_is(lost, LOST));
    assert_true(may_return(lost, LOST, 5, 600)); /* of the generation that is named now */
    assert_false(may_return(lost, LOST - 1, 5, 0));
    tl_lost_clear(lost);
}

/* Two generations were lost one after the other, and an old tab came first. */
static void a_ticket_of_a_later_generation_replaces_the_name(void **state)
{
    (void)state;
    struct tl_lost *lost = recovering(LOST - 1);
    assert_true(may_return(lost, LOST - 1, 3, 0));
    assert_true(may_return(lost, LOST, 4, 0));
    tl_lost_answered(lost, LOST, 4, true, 0);
    assert_true(tl_lost_is(lost, LOST));
    assert_true(may_return(lost, LOST, 5, 600));
    assert_false(may_return(lost, LOST - 1, 3, 0));
    const struct tl_recovery before = {
        .lost_generation = LOST - 1, .present = PRESENT, .until_ms = 1000};
    tl_lost_set(lost, &before); /* read before that ticket came */
    assert_true(tl_lost_is(lost, LOST));
    tl_lost_clear(lost);
}

/* The queue was created again by a program that did not know it, so the first ticket begins the
 * recovery. The others come before this process has read of it. */
static void a_ticket_that_begins_the_recovery_lets_the_others_return(void **state)
{
    (void)state;
    const struct tl_recovery none = {.present = PRESENT};
    struct tl_lost *lost = new_lost();
    tl_lost_set(lost, &none);
    assert_true(may_return(lost, LOST, 4, 0));
    tl_lost_answered(lost, LOST, 4, true, 0);
    assert_true(may_return(lost, LOST, 5, 0));
    tl_lost_set(lost, &none); /* read before the ticket came */
    assert_true(may_return(lost, LOST, 5, 0));
    assert_false(may_return(lost, LOST - 1, 5, 0));
    tl_lost_set(lost, &(struct tl_recovery){.lost_generation = LOST, .present = PRESENT});
    assert_false(may_return(lost, LOST, 5, 0)); /* it is over already */
    tl_lost_clear(lost);
}

static void a_line_of_another_generation_is_not_kept(void **state)
{
    (void)state;
    struct tl_lost *lost = recovering(LOST + 1);
    tl_lost_keep(lost, lost_line(), true);
    assert_false(tl_lost_ended(lost, LOST, 2));
    tl_lost_clear(lost);
    lost = recovering(LOST - 1);
    tl_lost_keep(lost, lost_line(), false); /* nothing comes back here */
    assert_false(tl_lost_ended(lost, LOST, 2));
    tl_lost_clear(lost);
}

/* The store's answer to what this process told of the lost generation. */
static void answer(struct tl_lost *lost, enum tl_outcome outcome)
{
    tl_lost_settled(
        lost, &(struct tl_pending_command){.kind = TL_COMMAND_LOST, .numbers = {LOST, 78, 9, 7}},
        &(struct tl_pending_result){.end = TL_PENDING_APPLIED, .outcome = outcome});
}

/* The first that remembers anything of a queue that was created again. */
static void a_memory_names_the_generation(void **state)
{
    (void)state;
    const struct tl_recovery none = {.present = PRESENT};
    struct tl_lost *lost = new_lost();
    struct tl_outbox *outbox = tl_outbox_new("w", NULL, ignore, NULL);
    tl_lost_set(lost, &none);
    assert_false(tl_lost_recovering(lost));
    tl_lost_keep(lost, lost_line(), true);
    assert_true(tl_lost_recovering(lost));
    assert_true(may_return(lost, LOST, 4, 600));
    tl_lost_tell(lost, outbox);
    answer(lost, TL_OUTCOME_DONE);
    tl_lost_set(lost, &none); /* read before the store was told */
    assert_true(may_return(lost, LOST, 4, 600));
    assert_true(tl_lost_ended(lost, LOST, 2));
    struct tl_outbox_payload payload;
    assert_true(tl_outbox_next(outbox, &payload));
    free(payload.bytes);
    tl_outbox_free(&outbox);

    answer(lost, TL_OUTCOME_GONE); /* too late, or an operator has ruled it out */
    assert_false(tl_lost_recovering(lost));
    assert_false(tl_lost_ended(lost, LOST, 2));
    assert_false(may_return(lost, LOST, 4, 600));
    tl_lost_clear(lost);
}

static void the_store_is_told_fronts_and_sessions(void **state)
{
    (void)state;
    struct tl_lost *lost = recovering(LOST);
    struct tl_outbox *outbox = tl_outbox_new("w", NULL, ignore, NULL);
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    tl_lost_keep(lost, lost_line(), true);
    tl_lost_tell(lost, outbox);
    assert_true(tl_outbox_next(outbox, &payload));
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
    assert_int_equal(batch.n_commands, 1 + TL_LANES_MAX + 2);
    assert_int_equal(batch.commands[0].kind, TL_COMMAND_LOST);
    const uint64_t head[] = {LOST, 78, 9, 7};
    assert_memory_equal(batch.commands[0].numbers, head, sizeof(head));
    const uint64_t front[] = {LOST, 78, 3, 0};
    assert_memory_equal(batch.commands[1].numbers, front, sizeof(front));
    const uint64_t empty_lane[] = {LOST, 78, tl_place_make(1, 9), 0};
    assert_memory_equal(batch.commands[2].numbers, empty_lane, sizeof(empty_lane));
    for (size_t i = 1 + TL_LANES_MAX; i < batch.n_commands; i++)
        assert_int_equal(batch.commands[i].numbers[3], 5000 + batch.commands[i].numbers[2]);
    tl_batch_free(&batch);
    free(payload.bytes);
    tl_outbox_free(&outbox);
    tl_lost_clear(lost);
}

/* How many sessions the store is told of now; *last: what is told of the last one. */
static size_t told(struct tl_lost *lost, uint64_t last[4])
{
    struct tl_outbox *outbox = tl_outbox_new("w", NULL, ignore, NULL);
    size_t n = 0;
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    tl_lost_tell_again(lost, outbox);
    if (tl_outbox_next(outbox, &payload)) {
        assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
        n = batch.n_commands;
        assert_int_equal(batch.commands[n - 1].kind, TL_COMMAND_CALLED);
        memcpy(last, batch.commands[n - 1].numbers, 4 * sizeof(*last));
        tl_batch_free(&batch);
        free(payload.bytes);
    }
    tl_outbox_free(&outbox);
    return n;
}

static void settle(struct tl_lost *lost, const uint64_t numbers[4], enum tl_pending_end end)
{
    struct tl_pending_command pending = {.kind = TL_COMMAND_CALLED};
    memcpy(pending.numbers, numbers, 4 * sizeof(*numbers));
    tl_lost_settled(lost, &pending, &(struct tl_pending_result){.end = end});
}

/* Places 1 and 3 are active until 5001 and 5003, as of event 78. */
static void a_pass_tells_of_a_session_that_lasts_longer(void **state)
{
    (void)state;
    struct tl_lost *lost = new_lost();
    struct tl_line *line = lost_line();
    uint64_t last[4];
    tl_lost_keep_pass(lost, line, 1, 9000, 70);
    assert_int_equal(tl_line_look(line, 1).deadline_ms, 5001); /* the first incarnation */
    tl_line_set_lost(line, 6, 8);
    tl_lost_keep_pass(lost, line, 1, 9000, 79); /* news that the line does not have yet */
    tl_lost_keep_pass(lost, line, 1, 5001, 70); /* no news */
    tl_lost_keep_pass(lost, line, 2, 9000, 70); /* it has ended */
    tl_lost_keep_pass(lost, line, 4, 9000, 70); /* waits again */
    assert_int_equal(tl_line_look(line, 1).deadline_ms, 5001);
    assert_int_equal(told(lost, last), 0);

    tl_lost_keep_pass(lost, line, 1, 9000, 70);
    assert_int_equal(tl_line_look(line, 1).deadline_ms, 9000);
    assert_int_equal(told(lost, last), 1);
    const uint64_t first[] = {LOST, 70, 1, 9000};
    assert_memory_equal(last, first, sizeof(first));
    assert_int_equal(told(lost, last), 0); /* on its way */
    settle(lost, first, TL_PENDING_REFUSED);
    assert_int_equal(told(lost, last), 1); /* again */
    settle(lost, first, TL_PENDING_APPLIED);
    tl_lost_keep_pass(lost, line, 3, 9500, 60);
    assert_int_equal(told(lost, last), 1); /* only what the store does not know */
    const uint64_t second[] = {LOST, 70, 3, 9500};
    assert_memory_equal(last, second, sizeof(second));
    tl_line_free(&line);
    tl_lost_clear(lost);
}

/* Only a ticket tells its serial. An old one and a pass bring the place back, to the device that
 * had it. */
static void the_store_is_told_the_serial_of_a_place(void **state)
{
    (void)state;
    struct tl_lost *lost = recovering(LOST);
    struct tl_outbox *outbox = tl_outbox_new("w", NULL, ignore, NULL);
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    struct tl_ticket ticket = {.visitor = "anna", .generation = LOST, .place = 4};
    struct tl_line *line = lost_line();
    assert_int_equal(tl_lost_serial(lost, 4), 0);
    assert_true(tl_line_add_serial(line, 4, 7));
    tl_lost_keep(lost, line, true);
    assert_int_equal(tl_lost_serial(lost, 4), 7);
    assert_int_equal(tl_lost_serial(lost, tl_place_make(2, 4)), 7); /* in any lane */
    assert_int_equal(tl_lost_serial(lost, 5), 0);
    assert_non_null(tl_lost_ask(lost, outbox, &ticket, 0, 0));
    ticket.place = 5;
    assert_non_null(tl_lost_ask(lost, outbox, &ticket, 9000, 8));
    assert_true(tl_outbox_next(outbox, &payload));
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
    assert_int_equal(batch.n_commands, 3);
    assert_int_equal(batch.commands[0].kind, TL_COMMAND_RESTORE);
    assert_int_equal(batch.commands[1].kind, TL_COMMAND_HAND_OVER);
    assert_int_equal(batch.commands[1].numbers[0], 4);
    assert_int_equal(batch.commands[1].numbers[1], 7);
    assert_int_equal(batch.commands[1].numbers[2], 0); /* of no device: what is known */
    assert_int_equal(batch.commands[1].visitor_length, 4);
    assert_memory_equal(batch.commands[1].visitor, "anna", 4);
    assert_int_equal(batch.commands[2].kind, TL_COMMAND_RESTORE);
    const uint64_t session[] = {5, LOST, 9000, 0, 8};
    assert_memory_equal(batch.commands[2].numbers, session, sizeof(session));
    tl_batch_free(&batch);
    free(payload.bytes);
    tl_outbox_free(&outbox);
    tl_lost_set(lost, &(struct tl_recovery){.lost_generation = LOST, .present = PRESENT});
    assert_int_equal(tl_lost_serial(lost, 4), 0); /* the recovery is over */
    tl_lost_clear(lost);
}

/* That there is a worker is news to a queue that recovers. */
static void the_store_is_told_that_nothing_is_remembered(void **state)
{
    (void)state;
    struct tl_lost *lost = recovering(LOST);
    struct tl_outbox *outbox = tl_outbox_new("w", NULL, ignore, NULL);
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    tl_lost_tell(lost, outbox);
    assert_true(tl_outbox_next(outbox, &payload));
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
    assert_int_equal(batch.n_commands, 1);
    assert_int_equal(batch.commands[0].kind, TL_COMMAND_LOST);
    const uint64_t nothing[] = {PRESENT, 0, 0, 0};
    assert_memory_equal(batch.commands[0].numbers, nothing, sizeof(nothing));
    tl_batch_free(&batch);
    free(payload.bytes);
    tl_outbox_free(&outbox);
    outbox = tl_outbox_new("w", NULL, ignore, NULL);
    tl_lost_set(lost, &(struct tl_recovery){.lost_generation = LOST, .present = PRESENT});
    tl_lost_tell(lost, outbox);
    assert_false(tl_outbox_next(outbox, &payload));
    tl_outbox_free(&outbox);
    tl_lost_clear(lost);
}

static void a_place_that_came_back_keeps_its_origin(void **state)
{
    (void)state;
    struct tl_lost *lost = recovering(LOST);
    /* 2^19 a second since 2025-01-01 00:00 UTC */
    uint64_t first = (PRESENT / 1000000 - 1735689600) << 19;
    assert_int_equal(tl_lost_origin(lost, PRESENT, first - 1000), LOST);
    assert_int_equal(tl_lost_origin(lost, PRESENT, first + 1), PRESENT);
    tl_lost_clear(lost);
    lost = recovering(0);
    assert_int_equal(tl_lost_origin(lost, PRESENT, first - 1000), PRESENT);
    tl_lost_clear(lost);
}

static void a_later_generation_is_awaited_for_a_while(void **state)
{
    (void)state;
    struct tl_lost *lost = new_lost();
    const struct tl_ticket later = {.generation = PRESENT, .place = 1};
    const struct tl_ticket earlier = {.generation = LOST - 1, .place = 1};
    assert_false(tl_lost_ahead(lost, LOST, &earlier, 5000));
    assert_true(tl_lost_ahead(lost, LOST, &later, 5000));
    assert_true(tl_lost_ahead(lost, LOST, &later, 14999));
    assert_false(tl_lost_ahead(lost, LOST, &later, 15000)); /* no such news */
    assert_false(tl_lost_ahead(lost, PRESENT, &later, 15000));
    const struct tl_ticket next = {.generation = PRESENT + 1, .place = 1};
    assert_true(tl_lost_ahead(lost, PRESENT, &next, 15000));
    tl_lost_clear(lost);
    lost = recovering(LOST);
    assert_true(tl_lost_ahead(lost, PRESENT, &next, 5000));
    assert_true(tl_lost_ahead(lost, PRESENT, &next, 90000)); /* it may come back */
    tl_lost_clear(lost);
}

static struct tl_recovery drawn(enum tl_draw_phase phase)
{
    return (struct tl_recovery){
        .present = PRESENT,
        .draw = {.phase = phase, .cut = 100, .last = 300, .drawn = 90, .event = 7}};
}

static void a_place_of_before_the_draw_leads_to_that_after_it(void **state)
{
    (void)state;
    struct tl_queue_settings settings = {.order = TL_ORDER_DRAW};
    struct tl_lost *lost = new_lost();
    struct tl_recovery now = drawn(TL_DRAW_CUT);
    struct tl_ticket ticket = {.generation = PRESENT, .place = tl_place_make(1, 40)};
    tl_lost_set(lost, &now);
    assert_true(tl_lost_undrawn(lost, &settings, 9));
    assert_false(tl_lost_before_draw(lost, ticket.place));
    now = drawn(TL_DRAW_DONE);
    tl_lost_set(lost, &now);
    assert_false(tl_lost_undrawn(lost, &settings, 7));
    assert_true(tl_lost_undrawn(lost, &settings, 6)); /* this line is of before */
    assert_true(tl_lost_before_draw(lost, ticket.place));
    assert_true(tl_lost_before_draw(lost, tl_place_make(1, 300)));
    assert_false(tl_lost_before_draw(lost, tl_place_make(1, 301))); /* came after the opening */
    assert_false(tl_lost_before_draw(lost, tl_place_make(1, 0)));   /* pending */
    assert_false(tl_lost_follow(lost, &ticket));                    /* not known yet */
    tl_lost_answered(lost, PRESENT, ticket.place, false, tl_place_make(1, 140));
    assert_true(tl_lost_follow(lost, &ticket));
    assert_int_equal(ticket.place, tl_place_make(1, 140));
    ticket = (struct tl_ticket){.generation = PRESENT - 1, .place = tl_place_make(1, 40)};
    assert_false(tl_lost_follow(lost, &ticket)); /* of no generation that counts */
    tl_lost_clear(lost);
}

/* The store lost steps of the draw, and made them again. */
static void the_last_answer_counts(void **state)
{
    (void)state;
    struct tl_lost *lost = new_lost();
    const struct tl_recovery now = drawn(TL_DRAW_DRAWING);
    const tl_place before = 40, once = 140, again = 240;
    tl_lost_set(lost, &now);
    tl_lost_answered(lost, PRESENT, before, false, once);
    tl_lost_answered(lost, PRESENT, once, false, before);
    struct tl_ticket ticket = {.generation = PRESENT, .place = once};
    assert_true(tl_lost_follow(lost, &ticket));
    assert_int_equal(ticket.place, before);
    assert_false(tl_lost_follow(lost, &ticket)); /* to be asked for again */
    tl_lost_answered(lost, PRESENT, before, false, again);
    ticket.place = once;
    assert_true(tl_lost_follow(lost, &ticket));
    assert_int_equal(ticket.place, again);
    tl_lost_clear(lost);
}

static void who_left_before_the_draw_stays_gone(void **state)
{
    (void)state;
    struct tl_lost *lost = new_lost();
    const struct tl_recovery now = drawn(TL_DRAW_DONE);
    struct tl_ticket ticket = {.generation = PRESENT, .place = tl_place_make(1, 41)};
    tl_lost_set(lost, &now);
    tl_lost_answered(lost, PRESENT, ticket.place, false, 0);
    assert_false(tl_lost_follow(lost, &ticket));
    assert_true(tl_lost_refused(lost, ticket.place));
    tl_lost_clear(lost);
}

static void without_a_draw_everyone_has_a_position(void **state)
{
    (void)state;
    struct tl_lost *lost = new_lost();
    const struct tl_queue_settings settings = {.opens_at_ms = 1};
    assert_false(tl_lost_undrawn(lost, &settings, 0));
    assert_false(tl_lost_before_draw(lost, tl_place_make(1, 1)));
    tl_lost_clear(lost);
}

/* The store lost the queue after the draw: what was learned of it still counts. */
static void the_draw_of_the_lost_generation_is_remembered(void **state)
{
    (void)state;
    struct tl_lost *lost = new_lost();
    struct tl_recovery now = drawn(TL_DRAW_DONE);
    const tl_place before = tl_place_make(1, 40), after = tl_place_make(1, 140);
    now.present = LOST;
    tl_lost_set(lost, &now);
    tl_lost_answered(lost, LOST, before, false, after);
    tl_lost_set(
        lost, &(struct tl_recovery){.lost_generation = LOST, .present = PRESENT, .until_ms = 1000});
    tl_lost_keep(lost, lost_line(), true);
    struct tl_ticket ticket = {.generation = LOST, .place = before};
    assert_true(tl_lost_follow(lost, &ticket));
    assert_int_equal(ticket.place, after);
    assert_true(may_return(lost, LOST, tl_place_make(1, 39), 600)); /* not asked before */
    assert_false(tl_lost_ended(lost, LOST, tl_place_make(1, 39)));
    tl_lost_clear(lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memory_knows_who_comes_back),
        cmocka_unit_test(without_a_memory_fresh_tickets_name_the_generation),
        cmocka_unit_test(a_ticket_of_a_later_generation_replaces_the_name),
        cmocka_unit_test(a_ticket_that_begins_the_recovery_lets_the_others_return),
        cmocka_unit_test(a_line_of_another_generation_is_not_kept),
        cmocka_unit_test(a_memory_names_the_generation),
        cmocka_unit_test(the_store_is_told_fronts_and_sessions),
        cmocka_unit_test(a_pass_tells_of_a_session_that_lasts_longer),
        cmocka_unit_test(the_store_is_told_the_serial_of_a_place),
        cmocka_unit_test(the_store_is_told_that_nothing_is_remembered),
        cmocka_unit_test(a_place_that_came_back_keeps_its_origin),
        cmocka_unit_test(a_later_generation_is_awaited_for_a_while),
        cmocka_unit_test(a_place_of_before_the_draw_leads_to_that_after_it),
        cmocka_unit_test(the_last_answer_counts),
        cmocka_unit_test(who_left_before_the_draw_stays_gone),
        cmocka_unit_test(without_a_draw_everyone_has_a_position),
        cmocka_unit_test(the_draw_of_the_lost_generation_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
