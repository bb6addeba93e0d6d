/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of pending tickets whose join the store refuses. */
#include "tests/unit/worker/queue/stage.h"

/* The worker asks no more than a client would that minds Retry-After. */
static void a_full_line_is_asked_seldom(void **state)
{
    struct stage *stage = *state;
    struct tl_stream *stream = open_stream(stage, "new", 0);
    static const char full[] = "event: full\ndata: {\"poll_after_ms\":20000}\n\n";
    expect(stream, "event: pending\ndata: u0\n\n");
    assert_int_equal(stage->number_questions, 1);
    tl_subscribers_full(stage->subscribers, stage->world.queue, "other", 20000, T);
    expect(stream, "");
    tl_subscribers_full(stage->subscribers, stage->world.queue, "new", 20000, T);
    tl_subscribers_full(stage->subscribers, stage->world.queue, "new", 25000,
                        T + 10); /* another question's outcome */
    expect(stream, full);
    for (int64_t now_ms = T; now_ms < T + 20000; now_ms += 500)
        sweep(stage, now_ms);
    assert_int_equal(stage->number_questions, 1);
    sweep(stage, T + 20000);
    assert_int_equal(stage->number_questions, 2);
    stream->length = 0; /* a heartbeat */
    tl_subscribers_full(stage->subscribers, stage->world.queue, "new", 20000, T + 20005);
    expect(stream, full);
    tl_subscribers_numbered(stage->subscribers, stage->world.queue, "new", 5, T + 60000);
    expect(stream, POSITION("w1+ticket"));
}

/* The join of its ticket is refused: the store is asked how the place ended, with no more JOINs. */
static void the_end_of_a_pending_place_is_told(void **state)
{
    struct stage *stage = *state;
    struct tl_stream *stream = open_stream(stage, "new", 0);
    const struct tl_ticket ticket = ticket_of("new", 0);
    expect(stream, "event: pending\ndata: u0\n\n");
    tl_subscribers_spent(stage->subscribers, stage->world.queue, "new", ticket.issued + 1,
                         T); /* of another ticket */
    assert_int_equal(stage->place_questions, 0);
    tl_subscribers_spent(stage->subscribers, stage->world.queue, "new", ticket.issued, T);
    tl_subscribers_spent(stage->subscribers, stage->world.queue, "new", ticket.issued, T + 10);
    assert_int_equal(stage->place_questions, 1);
    sweep(stage, T + 1500); /* no answer: asks again */
    assert_int_equal(stage->place_questions, 2);
    assert_int_equal(stage->number_questions, 1);
    expect(stream, "");
    tl_subscribers_over(stage->subscribers, stage->world.queue, &ticket, TL_REASON_LEFT, T + 1600);
    expect(stream, "event: ended\ndata: e0\n\n");
    for (int64_t now_ms = T + 2000; now_ms < T + 10000; now_ms += 500)
        sweep(stage, now_ms);
    assert_int_equal(stage->place_questions + stage->number_questions, 3);
    assert_true(stream->open);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_full_line_is_asked_seldom),
        TEST(the_end_of_a_pending_place_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
