/* SPDX-License-Identifier: Apache-2.0 */
/* What tickets are worth, by their generation, their serial, the draw and the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/worker/queue/world.h"
#include "worker/queue/queue.h"

#define OLDER   UINT64_C(1794999400000000)
#define LOST    UINT64_C(1795000000000000)
#define PRESENT UINT64_C(1795000600000000) /* ten minutes later */
#define LATER   UINT64_C(1795001200000000)

/* The seqs of the line: those up to DRAWN_LAST were given before the draw, those after LOST_AFTER
 * and up to LOST_UP_TO may have been given and lost. */
enum {
    ACTIVE = 1,
    ENDED = 2,
    WAITS = 4,       /* to 8 */
    HANDED_OVER = 6, /* with serial 2 */
    DRAWN_LAST = 15,
    BEFORE_DRAW = 12,
    DRAWN = 13,  /* to the place 7, as the store has answered */
    STAYED = 14, /* and this one did not come back */
    LOST_AFTER = 20,
    GONE = 30,
    REFUSED = 31,
    LOST_UP_TO = 40,
    UNKNOWN = 50,
    FORGOTTEN = 51, /* by the store, as it has answered */
    LEFT = 52,      /* likewise */
};

static struct tl_line *line_of(void)
{
    struct tl_line *line = tl_line_new();
    struct tl_run run = {.first = ENDED, .count = 1};
    struct tl_event freed = {
        .kind = TL_EVENT_FREED, .places = {.runs = &run, .n = 1}, .reason = TL_REASON_COMPLETED};
    const struct tl_event_entry entry = {.number = 10,
                                         .generation = PRESENT,
                                         .waiting = 5,
                                         .active = 2,
                                         .n_events = 1,
                                         .events = &freed};
    tl_line_start(line, PRESENT, 9);
    tl_line_set_lost(line, LOST_AFTER, LOST_UP_TO);
    for (tl_place place = 1; place <= 3; place++)
        assert_true(tl_line_add_active(line, place, WORLD_STORE_MS + 60000));
    assert_true(tl_line_add_waiting(line, WAITS, 5));
    assert_true(tl_line_add_serial(line, HANDED_OVER, 2));
    assert_int_equal(tl_line_apply(line, &entry, 0), TL_LINE_APPLIED);
    return line;
}

static int start(void **state)
{
    static struct world world;
    const struct tl_queue_settings settings = world_settings();
    const struct tl_recovery recovery = {
        .lost_generation = LOST,
        .present = PRESENT,
        .until_ms = 1,
        .draw = {.phase = TL_DRAW_DONE, .cut = DRAWN_LAST, .last = DRAWN_LAST, .event = 1}};
    world_start_env(&world);
    world.queue = tl_queue_new(&world.env, "q");
    assert_non_null(world.queue);
    tl_queue_set_settings(world.queue, &settings, 0);
    tl_queue_set_recovery(world.queue, &recovery);
    tl_queue_set_line(world.queue, line_of(), 0);
    tl_queue_remember_end(world.queue, FORGOTTEN, 0);
    tl_queue_remember_end(world.queue, LEFT, TL_REASON_LEFT);
    tl_lost_answered(&world.queue->lost, PRESENT, DRAWN, false, 7);
    tl_lost_answered(&world.queue->lost, PRESENT, STAYED, false, 0);
    tl_lost_answered(&world.queue->lost, PRESENT, REFUSED, false, 0);
    *state = &world;
    return 0;
}

static int finish(void **state)
{
    world_end(*state);
    return 0;
}

static struct tl_ticket ticket_of(uint64_t generation, tl_place place, uint32_t serial)
{
    return (struct tl_ticket){.visitor = "anna",
                              .generation = generation,
                              .place = place,
                              .issued = (uint32_t)(generation / 1000000) + 60,
                              .serial = serial};
}

static void every_ticket_has_one_worth(void **state)
{
    struct world *world = *state;
    const tl_place elsewhere = tl_place_make(1, WAITS); /* was moved to lane 0 */
    const size_t told = world->queue->outbox->count;
    const struct {
        uint64_t generation;
        tl_place place;
        uint32_t serial;
        enum tl_worth worth;
        tl_place becomes;
    } cases[] = {
        {0, 0, 0, TL_WORTH_PENDING, 0},
        {0, tl_place_make(1, 0), 0, TL_WORTH_PENDING, tl_place_make(1, 0)},
        /* the present generation */
        {PRESENT, WAITS, 0, TL_WORTH_WAITS, WAITS},
        {PRESENT, elsewhere, 0, TL_WORTH_WAITS, WAITS},
        {PRESENT, ACTIVE, 0, TL_WORTH_ACTIVE, ACTIVE},
        {PRESENT, ENDED, 0, TL_WORTH_OVER, ENDED},
        {PRESENT, LEFT, 0, TL_WORTH_OVER, LEFT},
        {PRESENT, FORGOTTEN, 0, TL_WORTH_FORGOTTEN, FORGOTTEN},
        {PRESENT, UNKNOWN, 0, TL_WORTH_ASK_STORE, UNKNOWN},
        {PRESENT, GONE, 0, TL_WORTH_MAY_RETURN, GONE},
        {PRESENT, REFUSED, 0, TL_WORTH_ASK_STORE, REFUSED},
        {PRESENT, HANDED_OVER, 0, TL_WORTH_MOVED, HANDED_OVER},
        {PRESENT, HANDED_OVER, 1, TL_WORTH_MOVED, HANDED_OVER},
        {PRESENT, HANDED_OVER, 2, TL_WORTH_WAITS, HANDED_OVER},
        {PRESENT, BEFORE_DRAW, 0, TL_WORTH_MAY_RETURN, BEFORE_DRAW},
        {PRESENT, DRAWN, 0, TL_WORTH_WAITS, 7},
        {PRESENT, STAYED, 0, TL_WORTH_ASK_STORE, STAYED},
        /* the lost one: what came back has the place that it had */
        {LOST, WAITS, 0, TL_WORTH_WAITS, WAITS},
        {LOST, ENDED, 0, TL_WORTH_OVER, ENDED},
        {LOST, HANDED_OVER, 1, TL_WORTH_MOVED, HANDED_OVER},
        {LOST, UNKNOWN, 0, TL_WORTH_MAY_RETURN, UNKNOWN},
        {LOST, DRAWN, 0, TL_WORTH_WAITS, 7},
        {LOST, REFUSED, 0, TL_WORTH_VOID, REFUSED},
        /* others */
        {OLDER, WAITS, 0, TL_WORTH_VOID, WAITS},
        {OLDER, UNKNOWN, 0, TL_WORTH_VOID, UNKNOWN},
        {LATER, WAITS, 0, TL_WORTH_AHEAD, WAITS},
        {LATER, UNKNOWN, 0, TL_WORTH_AHEAD, UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_ticket ticket = ticket_of(cases[i].generation, cases[i].place, cases[i].serial);
        struct tl_line_view place_state;
        assert_int_equal(tl_queue_worth(world->queue, &ticket, 1000, &place_state), cases[i].worth);
        assert_int_equal(ticket.place, cases[i].becomes);
        assert_int_equal(ticket.outdated,
                         cases[i].becomes != cases[i].place ||
                             (cases[i].generation == LOST && ticket.generation == PRESENT));
    }
    struct tl_ticket later = ticket_of(LATER, WAITS, 0);
    struct tl_line_view place_state;
    assert_int_equal(tl_queue_worth(world->queue, &later, 11000, &place_state), TL_WORTH_AHEAD);
    assert_int_equal(world->queue->outbox->count, told);
}

static void the_state_is_that_of_the_place(void **state)
{
    struct world *world = *state;
    struct tl_line_view place_state;
    struct tl_ticket ticket = ticket_of(PRESENT, 7, 0);
    assert_int_equal(tl_queue_worth(world->queue, &ticket, 0, &place_state), TL_WORTH_WAITS);
    assert_int_equal(place_state.ahead, 3);
    ticket = ticket_of(PRESENT, LEFT, 0);
    assert_int_equal(tl_queue_worth(world->queue, &ticket, 0, &place_state), TL_WORTH_OVER);
    assert_int_equal(place_state.reason, TL_REASON_LEFT);
    ticket = ticket_of(PRESENT, HANDED_OVER, 0);
    assert_int_equal(tl_queue_worth(world->queue, &ticket, 0, &place_state), TL_WORTH_MOVED);
    assert_int_equal(place_state.status, TL_LINE_WAITING);
    ticket = ticket_of(OLDER, WAITS, 0);
    assert_int_equal(tl_queue_worth(world->queue, &ticket, 0, &place_state), TL_WORTH_VOID);
    assert_int_equal(place_state.status, TL_LINE_UNKNOWN);
}

/* The store lost the hand-over, and the ticket of the device that has the place proves it. */
static void a_ticket_proves_the_hand_over_of_its_place(void **state)
{
    struct world *world = *state;
    const size_t told = world->queue->outbox->count;
    struct tl_line_view place_state;
    struct tl_ticket ticket = ticket_of(PRESENT, HANDED_OVER, 3);
    assert_int_equal(tl_queue_worth(world->queue, &ticket, 0, &place_state), TL_WORTH_WAITS);
    assert_int_equal(tl_queue_worth(world->queue, &ticket, 0, &place_state), TL_WORTH_WAITS);
    assert_int_equal(world->queue->outbox->count, told + 1);
    ticket.serial = 2;
    assert_int_equal(tl_queue_worth(world->queue, &ticket, 0, &place_state), TL_WORTH_MOVED);
    ticket = ticket_of(PRESENT, ENDED, 3); /* of what has ended nobody needs to know */
    assert_int_equal(tl_queue_worth(world->queue, &ticket, 0, &place_state), TL_WORTH_OVER);
    assert_int_equal(world->queue->outbox->count, told + 1);
}

/* The questions one by one, as those ask them that need only some. */
static enum tl_worth by_questions(struct tl_queue *queue, struct tl_ticket ticket, int64_t now_ms)
{
    bool known;
    if (tl_place_seq(ticket.place) == 0)
        return TL_WORTH_PENDING;
    (void)tl_queue_adopt(queue, &ticket);
    if (tl_queue_outdated(queue, &ticket) && tl_queue_behind(queue, &ticket, now_ms))
        return TL_WORTH_AHEAD;
    if (tl_queue_may_return(queue, &ticket))
        return TL_WORTH_MAY_RETURN;
    if (tl_queue_outdated(queue, &ticket))
        return TL_WORTH_VOID;
    if (tl_queue_serial(queue, ticket.place) > ticket.serial)
        return TL_WORTH_MOVED;
    switch (tl_queue_look(queue, ticket.place, &known).status) {
    case TL_LINE_WAITING:
        return TL_WORTH_WAITS;
    case TL_LINE_ACTIVE:
        return TL_WORTH_ACTIVE;
    case TL_LINE_ENDED:
        return TL_WORTH_OVER;
    case TL_LINE_UNKNOWN:
    default:
        return known ? TL_WORTH_FORGOTTEN : TL_WORTH_ASK_STORE;
    }
}

static void the_questions_agree(void **state)
{
    struct world *world = *state;
    static const uint64_t generations[] = {0, OLDER, LOST, PRESENT, LATER};
    for (size_t g = 0; g < sizeof(generations) / sizeof(generations[0]); g++)
        for (unsigned lane = 0; lane < 2; lane++)
            for (uint64_t seq = 0; seq < 60; seq++)
                for (uint32_t serial = 0; serial < 4; serial++) {
                    struct tl_ticket ticket =
                        ticket_of(generations[g], tl_place_make(lane, seq), serial);
                    struct tl_line_view place_state;
                    const int64_t now_ms = (int64_t)seq * 300; /* the news may be overdue */
                    const enum tl_worth worth = by_questions(world->queue, ticket, now_ms);
                    assert_int_equal(tl_queue_worth(world->queue, &ticket, now_ms, &place_state),
                                     worth);
                }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_ticket_has_one_worth),
        TEST(the_state_is_that_of_the_place),
        TEST(a_ticket_proves_the_hand_over_of_its_place),
        TEST(the_questions_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
