/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "common/base/clock.h"
#include "worker/feed/outbox.h"

enum { T = 100000 }; /* the test begins at this local time */

/* The outcomes of each visitor's command, as the outbox reports them. */
struct end {
    char visitor[TL_VISITOR_MAX + 1];
    enum tl_command_kind kind;
    struct tl_pending_result result;
};

struct ends {
    size_t n;
    struct end ends[4096];
    struct tl_outbox *asks_back; /* for the places that were lost; or NULL */
};

static struct ends seen;

static void note(void *context, struct tl_pending_command *pending,
                 const struct tl_pending_result *result)
{
    struct ends *ends = context;
    assert_true(ends->n < sizeof(ends->ends) / sizeof(ends->ends[0]));
    struct end *end = &ends->ends[ends->n++];
    snprintf(end->visitor, sizeof(end->visitor), "%s", pending->visitor);
    end->kind = pending->kind;
    end->result = *result;
    if (ends->asks_back != NULL && result->end == TL_PENDING_LOST)
        assert_non_null(tl_outbox_command(ends->asks_back, TL_COMMAND_RESTORE, pending->visitor,
                                          pending->place, pending->numbers));
}

static int start(void **state)
{
    seen.n = 0;
    seen.asks_back = NULL;
    *state = tl_outbox_new("worker-test", NULL, note, &seen);
    return *state == NULL;
}

static int finish(void **state)
{
    struct tl_outbox *outbox = *state;
    tl_outbox_free(&outbox);
    return outbox != NULL;
}

static void sent(struct tl_outbox *outbox, uint64_t number, bool taken)
{
    tl_outbox_sent(outbox, number, taken ? TL_BATCH_TAKEN : TL_BATCH_REFUSED, "7-1", T);
}

static void join(struct tl_outbox *outbox, const char *visitor, unsigned lane)
{
    assert_non_null(tl_outbox_join(outbox, visitor, lane, NULL, 0));
}

/* Takes the next batch, of so many commands, and returns what is of all of them. */
static struct tl_batch take(struct tl_outbox *outbox, size_t n)
{
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    assert_true(tl_outbox_next(outbox, &payload));
    assert_int_equal(payload.n_commands, n);
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
    assert_int_equal(batch.number, payload.number);
    assert_int_equal(batch.n_commands, n);
    assert_string_equal(batch.worker, "worker-test");
    tl_batch_free(&batch);
    free(payload.bytes);
    return batch;
}

static void expect_batch(struct tl_outbox *outbox, uint64_t number, size_t n)
{
    assert_int_equal(take(outbox, n).number, number);
}

/* The next batch has this generation. */
static void expect_generation(struct tl_outbox *outbox, uint64_t generation)
{
    const struct tl_batch batch = take(outbox, 1);
    assert_int_equal(batch.generation, generation);
    sent(outbox, batch.number, true);
}

static void expect_nothing(struct tl_outbox *outbox)
{
    struct tl_outbox_payload payload;
    assert_false(tl_outbox_next(outbox, &payload));
}

static void apply(struct tl_outbox *outbox, uint64_t batch, uint64_t first_seq,
                  struct tl_exception *exceptions, size_t n)
{
    const struct tl_event event = {.kind = TL_EVENT_APPLIED,
                                   .batch = batch,
                                   .first_seq = first_seq,
                                   .exceptions = exceptions,
                                   .n_exceptions = n};
    tl_outbox_applied(outbox, &event);
}

static const struct end *end_of(const char *visitor)
{
    const struct end *found = NULL;
    for (size_t i = 0; i < seen.n; i++) {
        if (strcmp(seen.ends[i].visitor, visitor) != 0)
            continue;
        assert_null(found); /* settled once */
        found = &seen.ends[i];
    }
    assert_non_null(found);
    return found;
}

static void test_places_of_joins(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "a", 1);
    assert_true(tl_outbox_seen(outbox, 5, 3));
    join(outbox, "b", 0);
    assert_non_null(tl_outbox_command(outbox, TL_COMMAND_LEAVE, "x", tl_place_make(1, 7), NULL));
    join(outbox, "c", 1);
    join(outbox, "d", 1);
    assert_int_equal(outbox->count, 6);
    expect_batch(outbox, 1, 6);
    sent(outbox, 1, true);
    assert_int_equal(seen.n, 0);

    /* In no particular order: d holds a place already, x was gone. A JOIN that holds one uses up
     * its seq. */
    struct tl_exception exceptions[] = {
        {.index = 5, .outcome = TL_OUTCOME_ACTIVE, .place = tl_place_make(0, 3), .deadline_ms = 99},
        {.index = 2, .outcome = TL_OUTCOME_WAITING, .place = tl_place_make(0, 4)},
        {.index = 3, .outcome = TL_OUTCOME_GONE, .place = tl_place_make(1, 7)},
        {.index = 77, .outcome = TL_OUTCOME_GONE},
    };
    apply(outbox, 1, 100, exceptions, 4);
    assert_int_equal(seen.n, 5);
    assert_int_equal(end_of("a")->result.place, tl_place_make(1, 100));
    assert_int_equal(end_of("b")->result.place, tl_place_make(0, 4));
    assert_int_equal(end_of("b")->result.outcome, TL_OUTCOME_WAITING);
    assert_int_equal(end_of("c")->result.place, tl_place_make(1, 102));
    assert_int_equal(end_of("c")->result.outcome, TL_OUTCOME_DONE);
    assert_int_equal(end_of("d")->result.place, tl_place_make(0, 3));
    assert_int_equal(end_of("x")->result.outcome, TL_OUTCOME_GONE);
    assert_int_equal(outbox->count, 0);
}

static void test_second_join_shares_the_first(void **state)
{
    struct tl_outbox *outbox = *state;
    struct tl_pending_command *first = tl_outbox_join(outbox, "a", 0, NULL, 0);
    assert_ptr_equal(tl_outbox_join(outbox, "a", 0, NULL, 0), first);
    expect_batch(outbox, 1, 1);
    assert_ptr_equal(tl_outbox_join(outbox, "a", 0, NULL, 0), first);
    apply(outbox, 1, 1, NULL, 0);
    assert_int_equal(seen.n, 1);
    join(outbox, "a", 0); /* the first is over: this is a new one */
    assert_int_equal(outbox->count, 1);
}

static void test_many_joins_are_found_again(void **state)
{
    struct tl_outbox *outbox = *state;
    struct tl_pending_command *pending[3000];
    char visitor[32];
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(visitor, sizeof(visitor), "visitor-%u", i);
        assert_null(tl_outbox_joining(outbox, visitor));
        pending[i] = tl_outbox_join(outbox, visitor, 0, NULL, 0);
        assert_non_null(pending[i]);
    }
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(visitor, sizeof(visitor), "visitor-%u", i);
        assert_ptr_equal(tl_outbox_join(outbox, visitor, 0, NULL, 0), pending[i]);
    }
    /* Full batches, one in the air at a time. */
    expect_batch(outbox, 1, TL_BATCH_COMMANDS_MAX);
    expect_nothing(outbox);
    sent(outbox, 1, true);
    expect_batch(outbox, 2, TL_BATCH_COMMANDS_MAX);
    sent(outbox, 2, true);
    assert_false(tl_outbox_flushed(outbox));
    expect_batch(outbox, 3, 1000);
    sent(outbox, 3, true);
    assert_true(tl_outbox_flushed(outbox));
    assert_int_equal(outbox->count, 3000);
    apply(outbox, 1, 1, NULL, 0);
    assert_null(tl_outbox_joining(outbox, "visitor-0"));
    for (unsigned i = TL_BATCH_COMMANDS_MAX; i < 3000; i++)
        assert_ptr_equal(tl_outbox_joining(outbox, pending[i]->visitor), pending[i]);
    apply(outbox, 2, 1001, NULL, 0);
    apply(outbox, 3, 2001, NULL, 0);
    assert_int_equal(seen.n, 3000);
    assert_int_equal(tl_place_seq(end_of("visitor-2999")->result.place), 3000);
    /* They are not found any more: these are new ones. */
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(visitor, sizeof(visitor), "visitor-%u", i);
        join(outbox, visitor, 0);
        assert_int_equal(outbox->count, i + 1);
    }
}

static void test_refused_number_is_not_used_again(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "a", 0);
    expect_batch(outbox, 1, 1);
    join(outbox, "b", 0);
    sent(outbox, 1, false);
    assert_int_equal(end_of("a")->result.end, TL_PENDING_REFUSED);
    assert_int_equal(outbox->count, 1);
    join(outbox, "a", 0);
    expect_batch(outbox, 2, 2);
    sent(outbox, 2, true);
    apply(outbox, 2, 1, NULL, 0);
    assert_int_equal(seen.n, 3);
}

static void test_applied_before_its_receipt(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "a", 0);
    expect_batch(outbox, 1, 1);
    apply(outbox, 1, 1, NULL, 0);
    assert_int_equal(end_of("a")->result.end, TL_PENDING_APPLIED);
    join(outbox, "b", 0);
    expect_nothing(outbox); /* the first is still in the air */
    sent(outbox, 1, true);
    expect_batch(outbox, 2, 1);
    apply(outbox, 1, 1, NULL, 0); /* the repeat of a batch changes nothing */
    assert_int_equal(seen.n, 1);
}

static void expect_no_check(struct tl_outbox *outbox, int64_t now_ms)
{
    uint64_t number;
    const char *entry;
    assert_false(tl_outbox_overdue(outbox, 0, now_ms, &number, &entry));
}

/* The store is asked about the oldest batch, and says that it waits to be applied, or is gone. */
static void check(struct tl_outbox *outbox, int64_t now_ms, uint64_t expected, bool waits)
{
    uint64_t number;
    const char *entry;
    assert_true(tl_outbox_overdue(outbox, 0, now_ms, &number, &entry));
    assert_int_equal(number, expected);
    assert_string_equal(entry, "7-1");
    expect_no_check(outbox, now_ms); /* it is asked once */
    tl_outbox_checked(outbox, number, &(struct tl_batch_check){.waits = waits}, now_ms);
}

/* After a gap: what the store applied or lost meanwhile is sent again, what waits there is not. */
static void test_missed_events(void **state)
{
    struct tl_outbox *outbox = *state;
    struct tl_pending_command *a = tl_outbox_join(outbox, "a", 2, NULL, 0);
    assert_true(tl_outbox_seen(outbox, 5, 3));
    assert_non_null(tl_outbox_command(outbox, TL_COMMAND_LEAVE, "x", tl_place_make(1, 7), NULL));
    expect_batch(outbox, 1, 3);
    sent(outbox, 1, true);
    join(outbox, "b", 0);
    expect_batch(outbox, 2, 1);
    sent(outbox, 2, true);
    expect_no_check(outbox, T + 2999);
    tl_outbox_missed(outbox);
    check(outbox, T, 1, false);
    assert_int_equal(seen.n, 0); /* who waits for it stays attached */
    assert_ptr_equal(tl_outbox_join(outbox, "a", 2, NULL, 0), a);
    check(outbox, T, 2, true);
    assert_int_equal(outbox->count, 3);
    expect_batch(outbox, 3, 2); /* presence comes again by itself */
    sent(outbox, 3, true);
    apply(outbox, 2, 8, NULL, 0);
    struct tl_exception exceptions[] = {
        {.index = 0, .outcome = TL_OUTCOME_WAITING, .place = tl_place_make(2, 3)},
        {.index = 1, .outcome = TL_OUTCOME_GONE, .place = tl_place_make(1, 7)}};
    apply(outbox, 3, 9, exceptions, 2);
    assert_int_equal(end_of("a")->result.place, tl_place_make(2, 3));
    assert_int_equal(end_of("b")->result.place, tl_place_make(0, 8));
    assert_int_equal(end_of("x")->result.outcome, TL_OUTCOME_GONE);
    assert_int_equal(outbox->count, 0);
}

/* Events are missed between XADD and its receipt. */
static void test_missed_while_being_sent(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "a", 0);
    expect_batch(outbox, 1, 1);
    tl_outbox_missed(outbox);
    expect_no_check(outbox, T);
    sent(outbox, 1, true);
    check(outbox, T, 1, false);
    expect_no_check(outbox, T);
    expect_batch(outbox, 2, 1);
}

/* While no dispatcher runs the batch waits: it is not sent again, and the store is asked less and
 * less often. */
static void test_a_batch_that_waits_is_left_alone(void **state)
{
    struct tl_outbox *outbox = *state;
    int64_t now_ms = T;
    join(outbox, "a", 0);
    expect_batch(outbox, 1, 1);
    sent(outbox, 1, true);
    for (int64_t pause = 3000; pause < 30000; pause *= 2) {
        expect_no_check(outbox, now_ms + pause - 1);
        now_ms += pause;
        check(outbox, now_ms, 1, true);
    }
    expect_nothing(outbox);
    check(outbox, now_ms + 60000, 1, true);
    apply(outbox, 1, 1, NULL, 0);
    assert_int_equal(end_of("a")->result.end, TL_PENDING_APPLIED);
    expect_no_check(outbox, now_ms + 1000000);
}

static void test_an_answer_too_late(void **state)
{
    struct tl_outbox *outbox = *state;
    uint64_t number;
    const char *entry;
    join(outbox, "a", 0);
    expect_batch(outbox, 1, 1);
    sent(outbox, 1, true);
    assert_true(tl_outbox_overdue(outbox, 0, T + 3000, &number, &entry));
    apply(outbox, 1, 1, NULL, 0);
    tl_outbox_checked(outbox, number, &(struct tl_batch_check){.waits = false}, T + 3000);
    expect_no_check(outbox, T + 3000);
    expect_nothing(outbox);
    assert_int_equal(end_of("a")->result.end, TL_PENDING_APPLIED);
}

/* It is applied, and this worker is behind: the outcome is in an event that is not read yet. */
static void test_an_outcome_on_its_way_is_waited_for(void **state)
{
    struct tl_outbox *outbox = *state;
    uint64_t number;
    const char *entry;
    join(outbox, "a", 0);
    expect_batch(outbox, 1, 1);
    sent(outbox, 1, true);
    assert_true(tl_outbox_overdue(outbox, 30, T + 3000, &number, &entry));
    tl_outbox_checked(outbox, number, &(struct tl_batch_check){.event = 41}, T + 3000);
    assert_false(tl_outbox_overdue(outbox, 40, T + 90000, &number, &entry));
    expect_nothing(outbox);
    assert_false(tl_outbox_overdue(outbox, 41, T + 90000, &number, &entry));
    expect_batch(outbox, 2, 1);
}

/* A batch that vanishes again and again ends in nothing, but never in "refused". */
static void test_a_command_is_not_sent_for_ever(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "a", 0);
    for (uint64_t number = 1; number <= 5; number++) {
        assert_int_equal(seen.n, 0);
        expect_batch(outbox, number, 1);
        sent(outbox, number, true);
        check(outbox, T + 3000, number, false);
        expect_no_check(outbox, T + 3000);
    }
    expect_nothing(outbox);
    assert_int_equal(end_of("a")->result.end, TL_PENDING_LOST);
    assert_int_equal(outbox->count, 0);
}

/* A later batch is applied: the one before it never will be. */
static void test_an_earlier_batch_is_lost(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "a", 0);
    expect_batch(outbox, 1, 1);
    sent(outbox, 1, true);
    join(outbox, "b", 0);
    expect_batch(outbox, 2, 1);
    sent(outbox, 2, true);
    apply(outbox, 2, 8, NULL, 0);
    assert_int_equal(tl_place_seq(end_of("b")->result.place), 8);
    assert_int_equal(seen.n, 1);
    expect_batch(outbox, 3, 1);
    sent(outbox, 3, true);
    apply(outbox, 3, 9, NULL, 0);
    assert_int_equal(tl_place_seq(end_of("a")->result.place), 9);
}

/* The first attempt may have reached the store: no later refusal makes it "refused". */
static void test_unknown_fate(void **state)
{
    struct tl_outbox *outbox = *state;
    assert_non_null(tl_outbox_join(outbox, "a", 1, "invite-1", 99000));
    expect_batch(outbox, 1, 1);
    tl_outbox_sent(outbox, 1, TL_BATCH_UNKNOWN, "", T);
    assert_int_equal(seen.n, 0);
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    assert_true(tl_outbox_next(outbox, &payload));
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
    assert_int_equal(batch.number, 2);
    assert_int_equal(batch.commands[0].numbers[0], 1);
    assert_int_equal(batch.commands[0].invite_until_ms, 99000);
    assert_memory_equal(batch.commands[0].invite, "invite-1", 8);
    tl_batch_free(&batch);
    free(payload.bytes);
    sent(outbox, 2, false);
    assert_int_equal(end_of("a")->result.end, TL_PENDING_LOST);
}

/* What a worker remembers of a lost generation arrives, although its first batch does not. */
static void test_a_memory_is_sent_again(void **state)
{
    struct tl_outbox *outbox = *state;
    const uint64_t numbers[TL_PENDING_NUMBERS] = {5, 6, 7, 8};
    assert_non_null(tl_outbox_command(outbox, TL_COMMAND_LOST, "", 0, numbers));
    expect_batch(outbox, 1, 1);
    tl_outbox_sent(outbox, 1, TL_BATCH_UNKNOWN, "", T);
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    assert_true(tl_outbox_next(outbox, &payload));
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
    assert_int_equal(batch.number, 2);
    assert_int_equal(batch.commands[0].kind, TL_COMMAND_LOST);
    assert_memory_equal(batch.commands[0].numbers, numbers, sizeof(numbers));
    tl_batch_free(&batch);
    free(payload.bytes);
    sent(outbox, 2, true);
    apply(outbox, 2, 1, NULL, 0);
    assert_int_equal(outbox->count, 0);
}

static void test_places_of_a_lost_generation(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "sent", 0);
    assert_non_null(tl_outbox_command(outbox, TL_COMMAND_LEAVE, "leaves", 7, NULL));
    expect_batch(outbox, 1, 2);
    sent(outbox, 1, true);
    assert_non_null(tl_outbox_command(outbox, TL_COMMAND_RENEW, "renews", 8, NULL));
    join(outbox, "gathered", 0);
    outbox->generation = 2;
    assert_non_null(tl_outbox_command(outbox, TL_COMMAND_LOST, "", 0, NULL));
    seen.asks_back = outbox; /* at once: of the present generation */
    tl_outbox_forget_places(outbox);
    seen.asks_back = NULL;
    assert_int_equal(seen.n, 2);
    assert_int_equal(end_of("leaves")->result.end, TL_PENDING_LOST);
    assert_int_equal(end_of("renews")->result.end, TL_PENDING_LOST);
    apply(outbox, 1, 1, NULL, 0);
    assert_int_equal(tl_place_seq(end_of("sent")->result.place), 1);
    expect_batch(outbox, 2, 2);
    sent(outbox, 2, true);
    apply(outbox, 2, 2, NULL, 0);
    assert_int_equal(tl_place_seq(end_of("gathered")->result.place), 2);
    expect_batch(outbox, 3, 3);
    sent(outbox, 3, true);
    apply(outbox, 3, 3, NULL, 0);
    assert_int_equal(seen.ends[4].kind, TL_COMMAND_LOST); /* what is remembered, first */
    for (size_t i = 4; i < 7; i++)
        assert_int_equal(seen.ends[i].result.end, TL_PENDING_APPLIED);
}

static void test_settled(void **state)
{
    struct tl_outbox *outbox = *state;
    assert_true(tl_outbox_settled(outbox, 0));
    assert_true(tl_outbox_seen(outbox, 1, 1));
    uint64_t number = outbox->next_number;
    assert_false(tl_outbox_settled(outbox, number));
    expect_batch(outbox, number, 1);
    assert_false(tl_outbox_settled(outbox, number));
    sent(outbox, number, true);
    assert_false(tl_outbox_settled(outbox, number));
    apply(outbox, number, 1, NULL, 0);
    assert_true(tl_outbox_settled(outbox, number));
}

static void test_free_settles_everything(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "sent", 0);
    expect_batch(outbox, 1, 1);
    sent(outbox, 1, true);
    join(outbox, "sending", 0);
    expect_batch(outbox, 2, 1);
    join(outbox, "gathered", 0);
    tl_outbox_free(&outbox);
    *state = NULL;
    assert_int_equal(end_of("sent")->result.end, TL_PENDING_LOST);
    assert_int_equal(end_of("sending")->result.end, TL_PENDING_LOST); /* XADD may be on its way */
    assert_int_equal(end_of("gathered")->result.end, TL_PENDING_REFUSED);
}

static void a_batch_has_places_of_one_generation(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "before", 0); /* no line yet */
    outbox->generation = 7;
    assert_non_null(tl_outbox_command(outbox, TL_COMMAND_LEAVE, "old", 4, NULL));
    outbox->generation = 8;
    assert_non_null(tl_outbox_command(outbox, TL_COMMAND_LEAVE, "new", 5, NULL));
    expect_generation(outbox, 0);
    expect_generation(outbox, 7);
    expect_generation(outbox, 8);
    expect_nothing(outbox);
}

/* A join by the store's clock, which goes on from this time. */
static void join_at(struct tl_outbox *outbox, int64_t *store_offset_ms, int64_t store_ms,
                    const char *visitor)
{
    *store_offset_ms = store_ms - tl_clock_ms();
    join(outbox, visitor, 0);
}

/* Takes the next batch, of so many commands; returns when the first join in it was made. */
static uint64_t made_ms(struct tl_outbox *outbox, size_t n, uint64_t *number)
{
    const struct tl_batch batch = take(outbox, n);
    *number = batch.number;
    return batch.made_ms / 200 * 200; /* the test may take some time */
}

/* Also when they are gathered again: a join that comes late must not give a place to a visitor who
 * was placed elsewhere meanwhile, and has gone. */
static void a_batch_says_when_its_joins_were_made(void **state)
{
    int64_t offset_ms = 0;
    struct tl_outbox *outbox = tl_outbox_new("worker-test", &offset_ms, note, &seen);
    uint64_t number;
    (void)state;
    assert_true(tl_outbox_seen(outbox, 5, 3));
    assert_int_equal(made_ms(outbox, 1, &number), 0);
    sent(outbox, number, true);
    join_at(outbox, &offset_ms, 50000, "a");
    join_at(outbox, &offset_ms, 50400, "b");
    assert_int_equal(made_ms(outbox, 2, &number), 50000);
    join_at(outbox, &offset_ms, 90000, "c");
    tl_outbox_sent(outbox, number, TL_BATCH_UNKNOWN, NULL, T);
    join_at(outbox, &offset_ms, 90000, "d");
    assert_int_equal(made_ms(outbox, 1, &number), 90000);
    sent(outbox, number, true);
    assert_int_equal(made_ms(outbox, 2, &number), 50000);
    sent(outbox, number, true);
    assert_int_equal(made_ms(outbox, 1, &number), 90000);
    sent(outbox, number, true);
    expect_nothing(outbox);
    tl_outbox_free(&outbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_batch_has_places_of_one_generation, start, finish),
        cmocka_unit_test_setup_teardown(a_batch_says_when_its_joins_were_made, start, finish),
        cmocka_unit_test_setup_teardown(test_places_of_joins, start, finish),
        cmocka_unit_test_setup_teardown(test_second_join_shares_the_first, start, finish),
        cmocka_unit_test_setup_teardown(test_many_joins_are_found_again, start, finish),
        cmocka_unit_test_setup_teardown(test_refused_number_is_not_used_again, start, finish),
        cmocka_unit_test_setup_teardown(test_applied_before_its_receipt, start, finish),
        cmocka_unit_test_setup_teardown(test_missed_events, start, finish),
        cmocka_unit_test_setup_teardown(test_missed_while_being_sent, start, finish),
        cmocka_unit_test_setup_teardown(test_a_batch_that_waits_is_left_alone, start, finish),
        cmocka_unit_test_setup_teardown(test_an_answer_too_late, start, finish),
        cmocka_unit_test_setup_teardown(test_an_outcome_on_its_way_is_waited_for, start, finish),
        cmocka_unit_test_setup_teardown(test_a_command_is_not_sent_for_ever, start, finish),
        cmocka_unit_test_setup_teardown(test_an_earlier_batch_is_lost, start, finish),
        cmocka_unit_test_setup_teardown(test_unknown_fate, start, finish),
        cmocka_unit_test_setup_teardown(test_a_memory_is_sent_again, start, finish),
        cmocka_unit_test_setup_teardown(test_places_of_a_lost_generation, start, finish),
        cmocka_unit_test_setup_teardown(test_settled, start, finish),
        cmocka_unit_test_setup_teardown(test_free_settles_everything, start, finish),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
