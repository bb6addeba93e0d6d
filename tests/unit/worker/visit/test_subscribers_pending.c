/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of pending tickets whose join the store refuses. */
#include "tests/unit/worker/visit/stage.h"

/* The join of this visitor found no room. */
static void full(const char *visitor, unsigned retry_s, int64_t now_ms)
{
    stage.retry_s = retry_s;
    joined(visitor, 0, &(struct tl_pending_result){.outcome = TL_OUTCOME_FULL}, now_ms);
}

/* The join of such a pending ticket is not repeated. */
static void spent(const char *visitor, uint32_t issued, int64_t now_ms)
{
    joined(visitor, issued, &(struct tl_pending_result){.outcome = TL_OUTCOME_SPENT}, now_ms);
}

/* The store answers the last question. */
static void answered(enum tl_reason ended)
{
    struct tl_visit *visit = stage.lookup;
    stage.lookup = NULL;
    visit->wait.known = true;
    visit->wait.ended = ended;
    assert_true(visit->wait.step(visit)); /* frees it */
}

/* The worker asks no more than a client would that minds Retry-After. */
static void a_full_line_is_asked_seldom(void **state)
{
    (void)state;
    struct tl_stream *stream = open_stream("new", 0);
    static const char told[] = "event: full\ndata: {\"poll_after_ms\":20000}\n\n";
    expect(stream, "event: pending\ndata: u0\n\n");
    assert_int_equal(stage.number_questions, 1);
    full("other", 20, T);
    expect(stream, "");
    full("new", 20, T);
    full("new", 25, T + 10); /* another question's outcome */
    expect(stream, told);
    for (int64_t now_ms = T; now_ms < T + 20000; now_ms += 500)
        sweep(now_ms);
    assert_int_equal(stage.number_questions, 1);
    sweep(T + 20000);
    assert_int_equal(stage.number_questions, 2);
    stream->length = 0; /* a heartbeat */
    full("new", 20, T + 20005);
    expect(stream, told);
    numbered("new", 5, T + 60000);
    expect(stream, POSITION("w1+ticket"));
}

/* The join of its ticket is refused: the store is asked how the place ended, with no more JOINs. */
static void the_end_of_a_pending_place_is_told(void **state)
{
    (void)state;
    struct tl_stream *stream = open_stream("new", 0);
    const struct tl_ticket ticket = ticket_of("new", 0);
    expect(stream, "event: pending\ndata: u0\n\n");
    spent("new", ticket.issued + 1, T); /* of another ticket */
    assert_int_equal(stage.place_questions, 0);
    spent("new", ticket.issued, T);
    spent("new", ticket.issued, T + 10);
    assert_int_equal(stage.place_questions, 1);
    sweep(T + 1500); /* no answer: asks again */
    assert_int_equal(stage.place_questions, 2);
    assert_int_equal(stage.number_questions, 1);
    expect(stream, "");
    answered(TL_REASON_LEFT);
    expect(stream, "event: ended\ndata: e0\n\n");
    for (int64_t now_ms = T + 2000; now_ms < T + 10000; now_ms += 500)
        sweep(now_ms);
    assert_int_equal(stage.place_questions + stage.number_questions, 3);
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
