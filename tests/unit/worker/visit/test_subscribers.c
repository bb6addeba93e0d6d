/* SPDX-License-Identifier: Apache-2.0 */
/* When event streams and long polls are told which changes. */
#include "tests/unit/worker/visit/stage.h"

/* ---- streams ---- */

static void the_first_event_comes_at_once(void **state)
{
    (void)state;
    expect(open_stream("d", 4), POSITION("w0"));
    expect(open_stream("a", 1), ADMITTED);
    tl_queue_remember_end(stage.world.queue, 900000, TL_REASON_LEFT);
    expect(open_stream("x", 900000), "event: ended\ndata: e0\n\n");
    assert_int_equal(stage.worker.subscribers.table.n, 3);
    assert_int_equal(world_metric(&stage.world, TL_WORKER_EVENT_STREAMS), 3);
    assert_int_equal(world_metric(&stage.world, TL_WORKER_PUSHED), 3);
}

static void further_back_positions_are_told_less_often(void **state)
{
    static const struct {
        uint64_t ahead;
        int64_t pause_ms;
    } cases[] = {{10, 100},   {19, 100},    {50, 500},    {99, 500},    {500, 1000},
                 {999, 1000}, {5000, 2000}, {9999, 2000}, {15000, 4000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)state;
        char expected[64];
        /* Three steps come; the last leaves `ahead` in front. */
        struct tl_stream *stream = open_stream("x", 4 + cases[i].ahead + 3);
        stream->length = 0;
        admit_next(0, T + 1000); /* the first step is told in the next turn */
        sweep(T + 1000);
        assert_true(stream->length > 0);
        stream->length = 0;
        admit_next(1, T + 1000);
        admit_next(2, T + 1000);
        sweep(T + 1000 + cases[i].pause_ms - 1);
        expect(stream, "");
        sweep(T + 1000 + cases[i].pause_ms);
        snprintf(expected, sizeof(expected), POSITION("w%llu"), (unsigned long long)cases[i].ahead);
        expect(stream, expected);
        if (finish(state) != 0 || start(state) != 0)
            fail();
    }
}

static void the_front_is_told_by_the_event(void **state)
{
    (void)state;
    struct tl_stream *front = open_stream("f", 6);
    struct tl_stream *last = open_stream("l", 24); /* 20 are ahead: one too many */
    struct tl_stream *behind = open_stream("b", 25);
    expect(front, POSITION("w2"));
    expect(last, POSITION("w20"));
    expect(behind, POSITION("w21"));
    admit_next(0, T + 1);
    expect(front, POSITION("w1"));
    expect(last, POSITION("w19")); /* belongs to it now */
    expect(behind, "");
    admit_next(1, T + 50); /* too soon after the last step */
    expect(front, "");
    sweep(T + 101);
    expect(front, POSITION("w0"));
    expect(behind, POSITION("w19"));
}

static void admission_and_end_are_told_by_the_event(void **state)
{
    (void)state;
    struct tl_stream *first = open_stream("d", 4);
    struct tl_stream *other_tab = open_stream("d", 4);
    struct tl_stream *far_back = open_stream("z", 20003);
    expect(first, POSITION("w0"));
    expect(other_tab, POSITION("w0"));
    expect(far_back, POSITION("w19999"));
    world_apply(&stage.world, 19998, 3, "[5,[1,1],1],[3,[4,1],1700000200000],[4,[20003,1],5]",
                T + 1);
    expect(first, ADMITTED);
    expect(other_tab, ADMITTED);
    expect(far_back, "event: ended\ndata: e0\n\n");
    world_apply(&stage.world, 19998, 2, "[5,[4,1],1]", T + 2);
    expect(first, "event: ended\ndata: e0\n\n");
    for (int64_t t = T; t < T + 14000; t += 500)
        sweep(t);
    expect(first, "");
}

static void a_silent_stream_gets_heartbeats_and_fresh_estimates(void **state)
{
    (void)state;
    struct tl_stream *waiting = open_stream("d", 4);
    struct tl_stream *active = open_stream("a", 1);
    expect(waiting, POSITION("w0"));
    expect(active, ADMITTED);
    sweep(T + 14999);
    expect(waiting, "");
    sweep(T + 15500);
    expect(waiting, ":\n\n");
    expect(active, ":\n\n");
    sweep(T + 29999);
    expect(waiting, "");
    sweep(T + 30000);
    expect(waiting, POSITION("w0"));
    sweep(T + 30200);
    sweep(T + 30400);
    expect(active, ""); /* what does not change is not sent again */
}

static void a_slow_reader_is_told_what_is_true_when_it_reads(void **state)
{
    (void)state;
    struct tl_stream *stream = open_stream("f", 6);
    expect(stream, POSITION("w2"));
    stream->stuck = true;
    admit_next(0, T + 1000);
    admit_next(1, T + 2000);
    sweep(T + 2500);
    expect(stream, "");
    stream->stuck = false;
    sweep(T + 3000);
    expect(stream, POSITION("w0"));
}

static void a_stuck_reader_is_dropped(void **state)
{
    (void)state;
    struct tl_stream *stream = open_stream("d", 4);
    stream->stuck = true;
    sweep(T + 29999);
    assert_true(stream->open);
    sweep(T + 30000);
    assert_false(stream->open);
    assert_int_equal(stage.worker.subscribers.table.n, 0);
}

static void a_broken_stream_is_dropped(void **state)
{
    (void)state;
    struct tl_stream *closed = open_stream("d", 4);
    struct tl_stream *breaking = open_stream("d", 4);
    struct tl_request request = {.gone = true};
    struct tl_ticket ticket = ticket_of("d", 4);
    closed->broken(closed->context);
    assert_false(closed->open);
    breaking->breaks = true;
    admit_next(0, T + 1);
    assert_false(breaking->open);
    assert_true(stream(&request, &ticket, NULL, NULL, T));
    assert_int_equal(stage.worker.subscribers.table.n, 0);
}

static void the_oldest_stream_of_a_ticket_gives_way(void **state)
{
    (void)state;
    stage.config.http.streams_per_ticket = 3;
    struct tl_stream *oldest = open_stream("d", 4);
    struct tl_stream *second = open_stream("d", 4);
    struct tl_stream *other = open_stream("f", 6);
    static struct tl_request poll; /* is refused when the test has ended */
    struct tl_request another = {0};
    struct tl_ticket ticket = ticket_of("d", 4);
    assert_true(wait_for(&poll, &ticket, NULL, T, T + 25000));
    assert_false(wait_for(&another, &ticket, NULL, T, T + 25000));
    assert_false(another.held); /* it replaces nothing */
    oldest->length = 0;
    struct tl_stream *third = open_stream("d", 4);
    assert_false(oldest->open);
    assert_non_null(strstr(oldest->text, "retry: "));
    assert_non_null(strstr(oldest->text, "event: replaced\ndata: {}\n\n"));
    assert_true(second->open && third->open && other->open);
    assert_true(poll.held);
    assert_int_equal(world_metric(&stage.world, TL_WORKER_STREAMS_REPLACED), 1);
    assert_int_equal(stage.worker.subscribers.table.n, 4);
}

static void a_pending_ticket_has_the_same_limit(void **state)
{
    (void)state;
    stage.config.http.streams_per_ticket = 2;
    struct tl_stream *oldest = open_stream("x", 0);
    struct tl_stream *other = open_stream("y", 0);
    struct tl_stream *second = open_stream("x", 0);
    struct tl_stream *third = open_stream("x", 0);
    assert_false(oldest->open);
    assert_true(other->open && second->open && third->open);
}

static void a_client_is_counted_as_long_as_it_listens(void **state)
{
    (void)state;
    const struct tl_clients *clients = stage.worker.clients;
    struct tl_address address;
    struct tl_request events = {0}, poll = {0};
    struct tl_ticket ticket = ticket_of("d", 4);
    assert_true(tl_address_parse("192.0.2.1", &address));
    assert_true(stream(&events, &ticket, &address, NULL, T));
    assert_true(tl_clients_may(clients, &address));
    assert_true(wait_for(&poll, &ticket, &address, T, T + 1000));
    assert_false(tl_clients_may(clients, &address));
    sweep(T + 1000);
    assert_int_equal(stage.answers, 1);
    assert_true(tl_clients_may(clients, &address));
    fake_streams[0].broken(fake_streams[0].context);
    assert_true(tl_clients_may(clients, &address));
}

static void a_notice_is_told_to_all_in_turn(void **state)
{
    (void)state;
    struct tl_stream *stream = open_stream("a", 1);
    expect(stream, ADMITTED);
    tl_queue_set_notice(stage.world.queue, "Soon", 4);
    sweep(T + 1);
    sweep(T + 500);
    expect(stream, "event: notice\ndata: {\"text\":\"Soon\"}\n\n");
    stream = open_stream("b", 2); /* hears what was said before */
    expect(stream, ADMITTED);
    sweep(T + 1000);
    expect(stream, "event: notice\ndata: {\"text\":\"Soon\"}\n\n");
}

static void an_open_stream_is_a_sign_of_life(void **state)
{
    (void)state;
    struct tl_queue_settings settings = world_settings();
    settings.session_sliding = true;
    tl_queue_set_settings(stage.world.queue, &settings, T);
    (void)open_stream("d", 4);
    (void)open_stream("f", 6);
    tl_queue_tick(stage.world.queue, T);
    assert_int_equal(world_send(&stage.world), 2); /* 4 and 6 were seen */
    world_apply(&stage.world, 20000, 3, "[1,\"w\",1,20004,[]]", T);
    sweep(T + 500);
    tl_queue_tick(stage.world.queue, T + 1000);
    assert_int_equal(world_send(&stage.world), 2); /* and again */
    world_apply(&stage.world, 20000, 3, "[1,\"w\",2,20004,[]]", T + 1000);

    admit_next(0, T + 1500);
    assert_int_equal(world_send(&stage.world), 1); /* the claim */
    sweep(T + 30000); /* a visitor who only listens does not extend the session */
    assert_int_equal(world_send(&stage.world), 0);
}

/* ---- places that are not known yet ---- */

static void a_pending_stream_is_told_its_number(void **state)
{
    (void)state;
    struct tl_stream *stream = open_stream("d", 0);
    struct tl_stream *another = open_stream("e", tl_place_make(1, 0));
    expect(stream, "event: pending\ndata: u0\n\n");
    expect(another, "event: pending\ndata: u0\n\n");
    assert_int_equal(stage.number_questions, 2);
    sweep(T + 500);
    sweep(T + 999);
    assert_int_equal(stage.number_questions, 2);
    sweep(T + 1500);
    assert_int_equal(stage.number_questions, 4);
    expect(stream, ""); /* "pending" is said once */

    numbered("d", 4, T + 1600);
    expect(stream, POSITION("w0+ticket"));
    expect(another, "");
    admit_next(0, T + 1700);
    expect(stream, ADMITTED); /* the ticket is given once */
    assert_int_equal(stage.place_questions, 0);
}

static void a_number_may_come_before_the_line_knows_it(void **state)
{
    (void)state;
    struct tl_stream *stream = open_stream("d", 0);
    expect(stream, "event: pending\ndata: u0\n\n");
    numbered("d", 20004, T + 1);
    expect(stream, "");
    assert_int_equal(stage.place_questions, 1);
    world_apply(&stage.world, 20001, 3, "[2,[20004,1]]", T + 2);
    sweep(T + 3);
    expect(stream, POSITION("w20000+ticket"));
}

static void an_unknown_place_asks_the_store(void **state)
{
    (void)state;
    struct tl_stream *stream = open_stream("x", 20004);
    struct tl_stream *nowhere = open_stream("y", 30000);
    expect(stream, "");
    assert_int_equal(stage.place_questions, 2);
    assert_int_equal(stage.asked_place, 30000);
    sweep(T + 999);
    assert_int_equal(stage.place_questions, 2);
    sweep(T + 1500);
    assert_int_equal(stage.place_questions, 4);

    tl_queue_remember_end(stage.world.queue, 20004, TL_REASON_COMPLETED);
    tl_queue_remember_end(stage.world.queue, 30000, 0);
    tl_subscribers_look(&stage.worker, stage.world.queue, 20004, T + 1600);
    expect(stream, "event: ended\ndata: e0\n\n");
    expect(nowhere, "");
    tl_subscribers_look(&stage.worker, stage.world.queue, 30000, T + 1600);
    expect(nowhere, "event: ended\ndata: u0\n\n");
    sweep(T + 3000);
    assert_int_equal(stage.place_questions, 4);
}

/* ---- requests that wait ---- */

static void a_long_poll_is_answered_at_a_change(void **state)
{
    (void)state;
    struct tl_request near = {0}, far = {0};
    struct tl_ticket near_ticket = ticket_of("f", 6), far_ticket = ticket_of("z", 20003);
    assert_true(wait_for(&near, &near_ticket, NULL, T, T + 25000));
    assert_true(wait_for(&far, &far_ticket, NULL, T, T + 25000));
    assert_true(near.held);
    sweep(T + 500);
    assert_int_equal(stage.answers, 0);
    admit_next(0, T + 600);
    assert_int_equal(stage.answers, 1);
    assert_ptr_equal(stage.answered, &near);
    assert_false(stage.answered_with_ticket);
    sweep(T + 601);
    assert_int_equal(stage.answers, 2);
    assert_ptr_equal(stage.answered, &far);
    assert_int_equal(stage.worker.subscribers.table.n, 0);
}

static void a_long_poll_is_answered_at_its_deadline(void **state)
{
    (void)state;
    struct tl_request request = {0};
    struct tl_ticket ticket = ticket_of("a", 1);
    assert_true(wait_for(&request, &ticket, NULL, T, T + 40000));
    assert_int_equal(world_send(&stage.world), 1); /* the request is a sign of life: it claims */
    sweep(T + 39999); /* neither heartbeat nor refresh is for requests */
    assert_int_equal(stage.answers, 0);
    sweep(T + 40000);
    assert_int_equal(stage.answers, 1);
    assert_int_equal(stage.worker.subscribers.table.n, 0);
}

static void a_join_waits_a_moment_for_its_admission(void **state)
{
    (void)state;
    struct tl_request first = {0}, second = {0};
    struct tl_ticket first_ticket = ticket_of("d", 4), second_ticket = ticket_of("e", 5);
    assert_true(tl_subscribers_wait(visit_of(&first, &first_ticket, T), T + 250, true));
    assert_true(tl_subscribers_wait(visit_of(&second, &second_ticket, T), T + 250, true));
    admit_next(0, T + 100); /* the second moves up, which is not enough */
    assert_int_equal(stage.answers, 1);
    assert_ptr_equal(stage.answered, &first);
    assert_true(stage.answered_with_ticket);
    sweep(T + 249);
    assert_int_equal(stage.answers, 1);
    sweep(T + 250);
    assert_int_equal(stage.answers, 2);
    assert_true(stage.answered_with_ticket);
}

/* ---- pace and end ---- */

static void a_round_takes_half_a_second(void **state)
{
    (void)state;
    enum { N = 50 };
    sweep(T);
    for (tl_place place = 1001; place <= 1000 + N; place++)
        open_stream("x", place)->length = 0;
    admit_next(0, T);
    for (int64_t t = 10; t <= 500; t += 10) {
        sweep(T + t);
        size_t told = 0;
        for (size_t i = 0; i < N; i++)
            told += fake_streams[i].length > 0;
        assert_int_equal(told, t / 10);
    }
}

static void draining_spreads_the_farewells(void **state)
{
    (void)state;
    enum { N = 40 };
    struct tl_request request = {0};
    struct tl_ticket ticket = ticket_of("d", 4);
    sweep(T);
    for (size_t i = 0; i < N; i++)
        expect(open_stream("d", 4), POSITION("w0"));
    assert_true(wait_for(&request, &ticket, NULL, T, T + 25000));
    tl_subscribers_drain(&stage.worker, T, T + 10000);
    for (int64_t t = 250; t < 10000; t += 250) {
        sweep(T + t);
        size_t steady = (N + 1) - (N + 1) * (size_t)t / 10000;
        size_t left = stage.worker.subscribers.table.n;
        assert_true(left + 2 >= steady && left <= steady + 2);
    }
    sweep(T + 10000);
    sweep(T + 10500);
    assert_int_equal(stage.worker.subscribers.table.n, 0);
    for (size_t i = 0; i < N; i++) {
        assert_false(fake_streams[i].open);
        assert_memory_equal(fake_streams[i].text, "retry: ", 7);
    }
    assert_int_equal(stage.answers, 1);
}

static void a_few_subscribers_are_not_sent_away_early(void **state)
{
    (void)state;
    sweep(T);
    (void)open_stream("d", 4);
    (void)open_stream("d", 4);
    tl_subscribers_drain(&stage.worker, T, T + 10000);
    for (int64_t t = 10; t <= 3000; t += 10)
        sweep(T + t);
    assert_int_equal(stage.worker.subscribers.table.n, 2);
    for (int64_t t = 3010; t <= 10500; t += 10)
        sweep(T + t);
    assert_int_equal(stage.worker.subscribers.table.n, 0);
}

static void another_generation_ends_the_subscriptions_to_places_of_the_former(void **state)
{
    (void)state;
    struct tl_request request = {0};
    const struct tl_ticket ticket = ticket_of("d", 4);
    struct tl_stream *waiting = open_stream("d", 4);
    struct tl_stream *pending = open_stream("p", 0);
    assert_true(wait_for(&request, &ticket, NULL, T, T + 25000));
    pending->length = 0;
    struct tl_line *line = tl_line_new();
    tl_line_start(line, 8, 0);
    assert_true(tl_line_add_active(line, 4, WORLD_STORE_MS + 60000)); /* a stranger */
    assert_true(tl_queue_set_line(stage.world.queue, line, T + 100));
    tl_subscribers_recreated(&stage.worker, stage.world.queue, T + 100);
    expect(waiting, POSITION("w0")); /* and nothing else */
    assert_false(waiting->open);
    assert_ptr_equal(stage.answered, &request);
    assert_int_equal(stage.answered_ticket.generation, 7); /* is told that this one is void */
    assert_int_equal(stage.answered_ticket.place, 4);
    numbered("p", 4, T + 2000);
    expect(pending, "event: admitted\ndata: a0+ticket\n\n");
}

/* How often the store is asked for this lost place, of those that the next batch asks for. */
static size_t restores(tl_place place)
{
    struct tl_outbox *outbox = stage.world.queue->outbox;
    struct tl_outbox_payload payload;
    struct tl_batch batch;
    size_t n = 0;
    if (!tl_outbox_next(outbox, &payload))
        return 0;
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, NULL));
    for (size_t i = 0; i < batch.n_commands; i++)
        n += batch.commands[i].kind == TL_COMMAND_RESTORE && batch.commands[i].numbers[0] == place;
    assert_int_equal(n, batch.n_commands);
    tl_outbox_sent(outbox, payload.number, TL_BATCH_TAKEN, "1-1", 0);
    tl_batch_free(&batch);
    free(payload.bytes);
    return n;
}

static void who_listens_at_a_lost_place_asks_for_it(void **state)
{
    (void)state;
    struct tl_request request = {0};
    const struct tl_ticket ticket = ticket_of("f", 6);
    struct tl_stream *lost = open_stream("f", 6);
    struct tl_stream *found = open_stream("d", 4);
    expect(lost, POSITION("w2"));
    expect(found, POSITION("w0"));
    assert_true(wait_for(&request, &ticket, NULL, T, T + 25000));
    struct tl_line *line = world_line(1);
    tl_line_set_lost(line, 4, 20);
    tl_queue_set_line(stage.world.queue, line, T + 100);
    for (int64_t t = 600; t < 4000; t += 500)
        sweep(T + t);
    assert_int_equal(restores(6), 1);
    assert_int_equal(stage.answers, 1); /* the request is handled again */
    assert_int_equal(stage.place_questions, 0);
    expect(lost, "");
    expect(found, "");
    sweep(T + 6000); /* the first question came to nothing */
    assert_int_equal(restores(6), 1);
    world_apply(&stage.world, 2, 3, "[2,[6,1]]", T + 6100);
    sweep(T + 6600);
    expect(lost, POSITION("w1"));
    assert_int_equal(restores(6), 0);
}

static void ending_ends_streams_and_refuses_requests(void **state)
{
    (void)state;
    struct tl_request request = {0};
    struct tl_ticket ticket = ticket_of("d", 4);
    struct tl_stream *stream = open_stream("d", 4);
    assert_true(wait_for(&request, &ticket, NULL, T, T + 25000));
    tl_subscribers_end(&stage.worker, NULL);
    assert_int_equal(stage.worker.subscribers.table.n, 0);
    assert_false(stream->open);
    assert_int_equal(stage.refusals, 1);
    assert_int_equal(stage.answers, 0);
}

/* Within one round, and only those whose address is blocked; each is asked about once. */
static void blocked_clients_are_sent_off(void **state)
{
    (void)state;
    struct tl_address bad, good;
    struct tl_blocks *blocks = malloc(sizeof(*blocks) + sizeof(blocks->list[0]));
    struct tl_request streams[2] = {{0}}, poll = {0};
    struct tl_ticket first = ticket_of("d", 4), second = ticket_of("e", 5),
                     third = ticket_of("f", 6);
    assert_true(tl_address_parse("192.0.2.7", &bad));
    assert_true(tl_address_parse("192.0.2.8", &good));
    assert_true(stream(&streams[0], &first, &bad, NULL, T));
    assert_true(stream(&streams[1], &second, &good, NULL, T));
    assert_true(wait_for(&poll, &third, &bad, T, T + 25000));
    struct tl_stream *unknown = open_stream("g", 7);
    sweep(T + 500);
    fake_streams[0].length = 0;
    assert_non_null(blocks);
    blocks->n = 1;
    assert_true(tl_block_parse("192.0.2.7", "q", &blocks->list[0], NULL));
    stage.worker.queues.blocks = blocks;
    stage.worker.queues.blocks_version++;
    sweep(T + 1000);
    assert_false(fake_streams[0].open);
    expect(&fake_streams[0], "event: blocked\ndata: {}\n\n");
    assert_true(fake_streams[1].open);
    assert_true(unknown->open);
    assert_int_equal(stage.refusals, 1);
    assert_int_equal(stage.blocks, 1);
    assert_int_equal(stage.worker.subscribers.table.n, 2);
    assert_true(tl_block_parse("192.0.2.8", "q", &blocks->list[0], NULL)); /* says nobody */
    sweep(T + 1500);
    assert_true(fake_streams[1].open);
    free(blocks);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_event_comes_at_once),
        TEST(further_back_positions_are_told_less_often),
        TEST(the_front_is_told_by_the_event),
        TEST(admission_and_end_are_told_by_the_event),
        TEST(a_silent_stream_gets_heartbeats_and_fresh_estimates),
        TEST(a_slow_reader_is_told_what_is_true_when_it_reads),
        TEST(a_stuck_reader_is_dropped),
        TEST(a_broken_stream_is_dropped),
        TEST(the_oldest_stream_of_a_ticket_gives_way),
        TEST(a_pending_ticket_has_the_same_limit),
        TEST(a_client_is_counted_as_long_as_it_listens),
        TEST(blocked_clients_are_sent_off),
        TEST(a_notice_is_told_to_all_in_turn),
        TEST(an_open_stream_is_a_sign_of_life),
        TEST(a_pending_stream_is_told_its_number),
        TEST(a_number_may_come_before_the_line_knows_it),
        TEST(an_unknown_place_asks_the_store),
        TEST(a_long_poll_is_answered_at_a_change),
        TEST(a_long_poll_is_answered_at_its_deadline),
        TEST(a_join_waits_a_moment_for_its_admission),
        TEST(a_round_takes_half_a_second),
        TEST(draining_spreads_the_farewells),
        TEST(a_few_subscribers_are_not_sent_away_early),
        TEST(another_generation_ends_the_subscriptions_to_places_of_the_former),
        TEST(who_listens_at_a_lost_place_asks_for_it),
        TEST(ending_ends_streams_and_refuses_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
