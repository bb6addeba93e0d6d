#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "worker/feed/outbox.h"

/* The outcomes of each visitor's command, as the outbox reports them. */
struct end {
    char visitor[TL_VISITOR_MAX + 1];
    enum tl_command_kind kind;
    struct tl_pending_result result;
};

struct ends {
    size_t n;
    struct end ends[4096];
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
}

static int start(void **state)
{
    seen.n = 0;
    *state = tl_outbox_new("worker-test", note, &seen);
    return *state == NULL;
}

static int finish(void **state)
{
    struct tl_outbox *outbox = *state;
    tl_outbox_free(&outbox);
    return outbox != NULL;
}

static void join(struct tl_outbox *outbox, const char *visitor, unsigned lane)
{
    assert_non_null(tl_outbox_join(outbox, visitor, lane));
}

/* Takes the next batch, checks its number and how many commands it holds. */
static void expect_batch(struct tl_outbox *outbox, uint64_t number, size_t n)
{
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    assert_true(tl_outbox_next(outbox, &payload));
    assert_int_equal(payload.number, number);
    assert_int_equal(payload.n_commands, n);
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
    assert_int_equal(batch.number, number);
    assert_int_equal(batch.n_commands, n);
    assert_string_equal(batch.worker, "worker-test");
    tl_batch_free(&batch);
    free(payload.bytes);
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
    assert_non_null(tl_outbox_command(outbox, TL_COMMAND_LEAVE, "x", tl_place_make(1, 7)));
    join(outbox, "c", 1);
    join(outbox, "d", 1);
    assert_int_equal(tl_outbox_count(outbox), 6);
    expect_batch(outbox, 1, 6);
    tl_outbox_sent(outbox, 1, true);
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
    assert_int_equal(tl_outbox_count(outbox), 0);
}

static void test_second_join_shares_the_first(void **state)
{
    struct tl_outbox *outbox = *state;
    struct tl_pending_command *first = tl_outbox_join(outbox, "a", 0);
    assert_ptr_equal(tl_outbox_join(outbox, "a", 0), first);
    expect_batch(outbox, 1, 1);
    assert_ptr_equal(tl_outbox_join(outbox, "a", 0), first);
    apply(outbox, 1, 1, NULL, 0);
    assert_int_equal(seen.n, 1);
    join(outbox, "a", 0); /* the first is over: this is a new one */
    assert_int_equal(tl_outbox_count(outbox), 1);
}

static void test_many_joins_are_found_again(void **state)
{
    struct tl_outbox *outbox = *state;
    struct tl_pending_command *pending[3000];
    char visitor[32];
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(visitor, sizeof(visitor), "visitor-%u", i);
        pending[i] = tl_outbox_join(outbox, visitor, 0);
        assert_non_null(pending[i]);
    }
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(visitor, sizeof(visitor), "visitor-%u", i);
        assert_ptr_equal(tl_outbox_join(outbox, visitor, 0), pending[i]);
    }
    /* Full batches, one in the air at a time. */
    expect_batch(outbox, 1, TL_BATCH_COMMANDS_MAX);
    expect_nothing(outbox);
    tl_outbox_sent(outbox, 1, true);
    expect_batch(outbox, 2, TL_BATCH_COMMANDS_MAX);
    tl_outbox_sent(outbox, 2, true);
    assert_false(tl_outbox_flushed(outbox));
    expect_batch(outbox, 3, 1000);
    tl_outbox_sent(outbox, 3, true);
    assert_true(tl_outbox_flushed(outbox));
    assert_int_equal(tl_outbox_count(outbox), 3000);
    apply(outbox, 1, 1, NULL, 0);
    apply(outbox, 2, 1001, NULL, 0);
    apply(outbox, 3, 2001, NULL, 0);
    assert_int_equal(seen.n, 3000);
    assert_int_equal(tl_place_seq(end_of("visitor-2999")->result.place), 3000);
}

static void test_refused_number_is_not_used_again(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "a", 0);
    expect_batch(outbox, 1, 1);
    join(outbox, "b", 0);
    tl_outbox_sent(outbox, 1, false);
    assert_int_equal(end_of("a")->result.end, TL_PENDING_REFUSED);
    assert_int_equal(tl_outbox_count(outbox), 1);
    join(outbox, "a", 0);
    expect_batch(outbox, 2, 2);
    tl_outbox_sent(outbox, 2, true);
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
    tl_outbox_sent(outbox, 1, true);
    expect_batch(outbox, 2, 1);
    apply(outbox, 1, 1, NULL, 0); /* the repeat of a batch changes nothing */
    assert_int_equal(seen.n, 1);
}

static void test_missed_events(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "a", 0);
    expect_batch(outbox, 1, 1);
    tl_outbox_sent(outbox, 1, true);
    join(outbox, "b", 0);
    expect_batch(outbox, 2, 1);
    tl_outbox_missed(
        outbox); /* the first may have been applied; the second is not even in the store */
    assert_int_equal(tl_outbox_count(outbox), 1);
    tl_outbox_sent(outbox, 2, true);
    apply(outbox, 2, 8, NULL, 0);
    assert_int_equal(end_of("a")->result.end, TL_PENDING_LOST);
    assert_int_equal(tl_place_seq(end_of("b")->result.place), 8);
    assert_int_equal(tl_outbox_count(outbox), 0);
}

static void test_settled(void **state)
{
    struct tl_outbox *outbox = *state;
    assert_true(tl_outbox_settled(outbox, 0));
    assert_true(tl_outbox_seen(outbox, 1, 1));
    uint64_t number = tl_outbox_gathering(outbox);
    assert_false(tl_outbox_settled(outbox, number));
    expect_batch(outbox, number, 1);
    assert_false(tl_outbox_settled(outbox, number));
    tl_outbox_sent(outbox, number, true);
    assert_false(tl_outbox_settled(outbox, number));
    apply(outbox, number, 1, NULL, 0);
    assert_true(tl_outbox_settled(outbox, number));
}

static void test_free_settles_everything(void **state)
{
    struct tl_outbox *outbox = *state;
    join(outbox, "sent", 0);
    expect_batch(outbox, 1, 1);
    tl_outbox_sent(outbox, 1, true);
    join(outbox, "sending", 0);
    expect_batch(outbox, 2, 1);
    join(outbox, "gathered", 0);
    tl_outbox_free(&outbox);
    *state = NULL;
    assert_int_equal(end_of("sent")->result.end, TL_PENDING_LOST);
    assert_int_equal(end_of("sending")->result.end, TL_PENDING_REFUSED);
    assert_int_equal(end_of("gathered")->result.end, TL_PENDING_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_places_of_joins, start, finish),
        cmocka_unit_test_setup_teardown(test_second_join_shares_the_first, start, finish),
        cmocka_unit_test_setup_teardown(test_many_joins_are_found_again, start, finish),
        cmocka_unit_test_setup_teardown(test_refused_number_is_not_used_again, start, finish),
        cmocka_unit_test_setup_teardown(test_applied_before_its_receipt, start, finish),
        cmocka_unit_test_setup_teardown(test_missed_events, start, finish),
        cmocka_unit_test_setup_teardown(test_settled, start, finish),
        cmocka_unit_test_setup_teardown(test_free_settles_everything, start, finish),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
