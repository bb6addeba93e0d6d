/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's state of one queue: its line, its claims, presence, the estimate and the notice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/store/queue.h"
#include "common/wire/notice_text.h"
#include "tests/unit/worker/queue/world.h"
#include "worker/queue/queue.h"

static const struct tl_line_view active = {.status = TL_LINE_ACTIVE};
static const struct tl_line_view waiting = {.status = TL_LINE_WAITING};

static int start(void **state)
{
    static struct world world;
    world_start(&world, 5);
    *state = &world;
    return 0;
}

static int finish(void **state)
{
    world_end(*state);
    return 0;
}

static size_t pending(const struct world *world)
{
    return world->queue->outbox->count;
}

static bool known(const struct world *world, tl_place place, enum tl_line_status *status)
{
    bool known;
    *status = tl_queue_look(world->queue, place, &known).status;
    return known;
}

/* ---- lines ---- */

static void learn(struct world *world)
{
    tl_queue_touch(world->queue, "a", 1, &active, 1000);
    tl_queue_touch(world->queue, "d", 4, &waiting, 1000);
    tl_queue_touch(world->queue, "f", 6, &waiting, 1000);
    tl_queue_remember_end(world->queue, 900, TL_REASON_LEFT);
    assert_int_equal(world_send(world), 1);
    assert_int_equal(pending(world), 1);
}

static void a_fresh_line_keeps_what_is_known_of_places(void **state)
{
    struct world *world = *state;
    enum tl_line_status status;
    learn(world);
    world_apply(world, 5, 3, "[6,2,1700000090000]", 1000);
    assert_false(tl_queue_set_line(world->queue, world_line(5), 1000));
    assert_true(tl_claims_made(&world->queue->claims, 2));
    tl_queue_touch(world->queue, "a", 1, &active, 1000);
    assert_int_equal(pending(world), 1); /* the claim of before is on its way */
    assert_true(known(world, 900, &status));
    assert_int_equal(status, TL_LINE_ENDED);
    uint64_t number;
    const char *entry;
    struct tl_outbox *outbox = world->queue->outbox;
    assert_true(tl_outbox_overdue(outbox, 0, 1000, &number, &entry)); /* it may have been applied */
    tl_queue_tick(world->queue, 1000);
    assert_int_equal(world_send(world), 2); /* the presence of 4 and of 6 */
}

static void a_line_of_another_generation_forgets_places(void **state)
{
    struct world *world = *state;
    enum tl_line_status status;
    learn(world);
    struct tl_line *line = tl_line_new();
    tl_line_start(line, 8, 0);
    assert_true(tl_line_add_waiting(line, 4, 5));
    assert_true(tl_queue_set_line(world->queue, line, 1000));
    assert_int_equal(world->queue->line->generation, 8);
    assert_false(tl_claims_made(&world->queue->claims, 1));
    assert_false(known(world, 900, &status));
    tl_queue_tick(world->queue, 1000);
    assert_int_equal(world_send(world), 1); /* only that none was seen */
}

/* Place 4 is known to the store; 5 to 20 are lost. This process knows that 5 has left. */
static void what_the_store_has_lost_may_return_unless_it_ended(void **state)
{
    struct world *world = *state;
    enum tl_line_status status;
    struct tl_ticket ticket = {.generation = 7, .place = 6, .visitor = "f"};
    assert_false(tl_queue_may_return(world->queue, &ticket));
    world_apply(world, 4, 3, "[4,[5,1],2]", 1000);
    struct tl_line *line = world_line(1);
    tl_line_set_lost(line, 4, 20);
    tl_queue_set_line(world->queue, line, 1000);
    assert_true(known(world, 5, &status));
    assert_int_equal(status, TL_LINE_ENDED);
    const bool returns[] = {[4] = false, [5] = false, [6] = true, [20] = true, [21] = false};
    const tl_place places[] = {4, 5, 6, 20, 21};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        ticket.place = places[i];
        assert_int_equal(tl_queue_may_return(world->queue, &ticket), returns[places[i]]);
    }
    ticket.place = 6;
    tl_queue_remember_end(world->queue, 6, 0); /* the store does not know it */
    assert_true(tl_queue_may_return(world->queue, &ticket));
    assert_false(tl_queue_lost(world->queue, 6));
    assert_non_null(tl_queue_restore(world->queue, &ticket, 0, 0));
    assert_int_equal(world_send(world), 1);
    world_apply_text(world, "[1,11,7,1,3,[[1,\"w\",1,8,[[0,3,6,0]]]]]", 1000); /* GONE */
    assert_int_equal(world->applied, 1);
    assert_false(tl_queue_may_return(world->queue, &ticket));
    assert_true(tl_queue_lost(world->queue, 6));
    assert_false(tl_queue_lost(world->queue, 21));
}

/* The queue is there again before this process can send: a recovery to which no worker has spoken
 * does not end. */
static void what_was_not_told_of_a_loss_is_told_again(void **state)
{
    struct world *world = *state;
    struct tl_outbox *outbox = world->queue->outbox;
    struct tl_outbox_payload payload;
    const struct tl_recovery recovery = {.lost_generation = 7, .present = 8, .until_ms = 1};
    struct tl_line *line = tl_line_new();
    tl_line_start(line, 8, 0);
    tl_queue_set_recovery(world->queue, &recovery);
    tl_queue_set_line(world->queue, line, 1000);
    for (int fate = 0; fate < 2; fate++) {
        assert_true(tl_outbox_next(outbox, &payload));
        assert_int_equal(payload.n_commands, 1 + 1 + 3); /* LOST, the front and three sessions */
        free(payload.bytes);
        world->env.ingest_up = false;
        tl_outbox_sent(outbox, payload.number, TL_BATCH_REFUSED, "", 0);
        tl_queue_tick(world->queue, 1000);
        assert_int_equal(pending(world), 0); /* not while the store is away */
        world->env.ingest_up = true;
        tl_queue_tick(world->queue, 1050);
    }
    assert_int_equal(world_send(world), 1 + 1 + 3);
    tl_queue_tick(world->queue, 1100);
    assert_int_equal(pending(world), 1 + 1 + 3); /* on their way */
}

static void a_gap_asks_for_one_rebuild(void **state)
{
    struct world *world = *state;
    world_apply(world, 5, 3, "", 0);
    assert_int_equal(world->rebuilds, 0);
    world->event++; /* one is missing */
    world_apply(world, 5, 3, "", 0);
    world_apply(world, 5, 3, "", 0);
    assert_int_equal(world->rebuilds, 1);
    assert_int_equal(world->changes, 1);
    assert_int_equal(world_metric(world, TL_WORKER_GAPS), 1);
    tl_queue_set_line(world->queue, world_line(5), 0); /* at event 10 */
    world_apply(world, 5, 3, "", 0);
    assert_int_equal(world->rebuilds, 2);
}

static struct tl_line *compared_line(void)
{
    struct tl_line *line = world_line(5);
    line->compare_from = 10;
    return line;
}

/* The store is inconsistent, so rebuilding does not help: it is done now and then. */
static void other_sizes_ask_for_a_rebuild_now_and_then(void **state)
{
    struct world *world = *state;
    tl_queue_set_line(world->queue, compared_line(), 0);
    world_apply(world, 5, 3, "", 1);
    assert_int_equal(world->rebuilds, 0);
    world_apply(world, 6, 3, "", 2);
    assert_int_equal(world->rebuilds, 1);
    assert_int_equal(world_metric(world, TL_WORKER_DIFFERED), 1);
    assert_int_equal(world->changes, 2); /* it was applied nevertheless */
    world->event = 10;
    tl_queue_set_line(world->queue, compared_line(), 3);
    world_apply(world, 6, 3, "", 20000);
    assert_int_equal(world->rebuilds, 1);
    world_apply(world, 5, 4, "", 40000);
    assert_int_equal(world->rebuilds, 2);
}

static void an_entry_that_cannot_be_read_asks_for_a_rebuild(void **state)
{
    struct world *world = *state;
    world_apply_text(world, "[1,11,7,5,3,[[99,4]]]", 0);
    world_apply_text(world, "\"?\"", 0);
    assert_int_equal(world->rebuilds, 1);
    assert_int_equal(world->changes, 0);
}

static void what_an_entry_says_is_passed_on(void **state)
{
    struct world *world = *state;
    world_apply(world, 5, 3, "[7]", 0);
    assert_int_equal(world->reloads, 1);
    world_apply(world, 5, 3, "[8,\"Soon\"]", 0);
    assert_string_equal(tl_notice_text(&world->queue->notice, NULL), "Soon");
    assert_int_equal(world->changes, 2);
    assert_int_equal(world_metric(world, TL_WORKER_EVENTS), 2);
}

/* ---- commands ---- */

static void applied_settles_the_commands_of_this_worker(void **state)
{
    struct world *world = *state;
    assert_non_null(tl_outbox_join(world->queue->outbox, "new", 0, NULL, 0));
    assert_int_equal(world_send(world), 1);
    world_apply(world, 5, 3, "[1,\"another\",1,9,[]]", 0);
    assert_int_equal(world->applied, 0);
    world_apply(world, 6, 3, "[1,\"w\",1,9,[]],[2,[9,1]]", 0);
    assert_int_equal(world->applied, 1);
    assert_int_equal(world->result.place, 9);
    assert_int_equal(pending(world), 0);
}

static void applied_counts_also_in_an_entry_that_the_snapshot_contains(void **state)
{
    struct world *world = *state;
    assert_non_null(tl_outbox_join(world->queue->outbox, "new", 0, NULL, 0));
    assert_int_equal(world_send(world), 1);
    world_apply_text(world, "[1,10,7,5,3,[[1,\"w\",1,8,[]],[2,[8,1]]]]", 0);
    assert_int_equal(world->applied, 1);
    assert_int_equal(tl_line_waiting(world->queue->line), 5);
}

static void a_session_is_claimed_once(void **state)
{
    struct world *world = *state;
    world->env.full = true;
    tl_queue_touch(world->queue, "a", 1, &active, 1000);
    assert_int_equal(pending(world), 0);
    assert_false(tl_claims_made(&world->queue->claims, 1));
    world->env.full = false;
    tl_queue_touch(world->queue, "a", 1, &active, 1000);
    tl_queue_touch(world->queue, "a", 1, &active, 50000);
    assert_int_equal(pending(world), 1);
}

/* Until the store says so, the deadline is still that of the claim. */
static void a_claim_on_its_way_is_not_made_yet(void **state)
{
    struct world *world = *state;
    tl_queue_touch(world->queue, "a", 1, &active, 1000);
    tl_queue_use(world->queue, "b", 2, &active, 1000);
    assert_int_equal(pending(world), 2);
    assert_false(tl_claims_made(&world->queue->claims, 1));
    assert_false(tl_claims_made(&world->queue->claims, 2));
    world_apply(world, 5, 3, "[6,1,1700000090000],[6,2,1700000090000]", 1000);
    assert_true(tl_claims_made(&world->queue->claims, 1));
    assert_true(tl_claims_made(&world->queue->claims, 2));
    struct tl_queue_settings settings = world_settings();
    settings.session_sliding = true;
    tl_queue_set_settings(world->queue, &settings, 0);
    tl_queue_use(world->queue, "a", 1, &active, 9000); /* extends it */
    assert_int_equal(pending(world), 3);
    assert_true(tl_claims_made(&world->queue->claims, 1));
}

/* It was another process's, before this one started: no event tells of it. */
static void a_claim_of_a_claimed_session_is_made_by_its_outcome(void **state)
{
    struct world *world = *state;
    tl_queue_touch(world->queue, "a", 1, &active, 1000);
    assert_int_equal(world_send(world), 1);
    world_apply_text(world, "[1,10,7,5,3,[[1,\"w\",1,0,[]]]]", 1000);
    assert_true(tl_claims_made(&world->queue->claims, 1));
}

static void use_extends_a_sliding_session_every_tenth_of_it(void **state)
{
    struct world *world = *state;
    struct tl_queue_settings settings = world_settings();
    settings.session_sliding = true;
    tl_queue_set_settings(world->queue, &settings, 0);
    tl_queue_use(world->queue, "a", 1, &active, 1000);
    tl_queue_use(world->queue, "a", 1, &active, 6999);
    assert_int_equal(pending(world), 1);
    tl_queue_use(world->queue, "a", 1, &active, 7000);
    assert_int_equal(pending(world), 2);
    settings.session_ttl_ms = 500; /* not more often than every second */
    tl_queue_set_settings(world->queue, &settings, 0);
    tl_queue_use(world->queue, "a", 1, &active, 7999);
    assert_int_equal(pending(world), 2);
    tl_queue_use(world->queue, "a", 1, &active, 8000);
    assert_int_equal(pending(world), 3);
}

static void asking_extends_no_session(void **state)
{
    struct world *world = *state;
    struct tl_queue_settings settings = world_settings();
    settings.session_sliding = true;
    tl_queue_set_settings(world->queue, &settings, 0);
    tl_queue_use(world->queue, "a", 1, &active, 1000);
    for (int64_t now_ms = 2000; now_ms < 100000; now_ms += 1000)
        tl_queue_touch(world->queue, "a", 1, &active, now_ms);
    assert_int_equal(pending(world), 1);
    /* A process that does not know the claim sends one; the next use extends at once. */
    tl_queue_touch(world->queue, "b", 2, &active, 100000);
    assert_int_equal(pending(world), 2);
    tl_queue_use(world->queue, "b", 2, &active, 100001);
    assert_int_equal(pending(world), 3);
}

static void a_refused_claim_is_made_again(void **state)
{
    struct world *world = *state;
    struct tl_outbox *outbox = world->queue->outbox;
    struct tl_outbox_payload payload;
    tl_queue_touch(world->queue, "a", 1, &active, 1000);
    assert_true(tl_outbox_next(outbox, &payload));
    free(payload.bytes);
    tl_outbox_sent(outbox, payload.number, TL_BATCH_REFUSED, "", 0);
    assert_int_equal(world->refused, 1);
    assert_false(tl_claims_made(&world->queue->claims, 1));
    tl_queue_touch(world->queue, "a", 1, &active, 1001);
    assert_int_equal(pending(world), 1);
}

static void claims_follow_the_events(void **state)
{
    struct world *world = *state;
    world_apply(world, 5, 3, "[6,2,1700000090000]", 1000); /* another worker's */
    assert_true(tl_claims_made(&world->queue->claims, 2));
    tl_queue_touch(world->queue, "b", 2, &active, 1000);
    assert_int_equal(pending(world), 0);
    world_apply(world, 5, 2, "[5,[1,2],1]", 1000);
    assert_false(tl_claims_made(&world->queue->claims, 2));
}

static void a_claim_and_the_end_of_its_session_may_come_in_one_entry(void **state)
{
    struct world *world = *state;
    world_apply(world, 5, 2, "[5,[1,1],1],[6,1,1700000090000],[6,2,1700000090000]", 1000);
    assert_false(tl_claims_made(&world->queue->claims, 1));
    assert_true(tl_claims_made(&world->queue->claims, 2));
}

static void a_fresh_line_ends_the_claims_of_sessions_it_does_not_have(void **state)
{
    struct world *world = *state;
    world_apply(world, 5, 3, "[6,1,1700000090000],[6,2,1700000090000]", 1000);
    struct tl_line *line = tl_line_new();
    tl_line_start(line, 7, 20);
    assert_true(tl_line_add_active(line, 2, WORLD_STORE_MS + 60000));
    tl_queue_set_line(world->queue, line, 1000);
    assert_false(tl_claims_made(&world->queue->claims, 1));
    assert_true(tl_claims_made(&world->queue->claims, 2));
}

static void presence_waits_until_the_last_was_applied(void **state)
{
    struct world *world = *state;
    world->env.ingest_up = false;
    tl_queue_touch(world->queue, "d", 4, &waiting, 1000);
    tl_queue_tick(world->queue, 1000);
    assert_int_equal(pending(world), 0);
    world->env.ingest_up = true;
    tl_queue_tick(world->queue, 1000);
    assert_int_equal(world_send(world), 1);
    tl_queue_touch(world->queue, "d", 4, &waiting, 1500);
    tl_queue_tick(world->queue, 2000);
    assert_int_equal(world_send(world), 0);
    world_apply(world, 5, 3, "[1,\"w\",1,9,[]]", 2100);
    tl_queue_tick(world->queue, 2100);
    assert_int_equal(world_send(world), 1);
}

/* ---- what is known ---- */

static void the_stores_answers_are_remembered(void **state)
{
    struct world *world = *state;
    enum tl_line_status status;
    assert_false(known(world, 900, &status));
    tl_queue_remember_end(world->queue, 900, TL_REASON_EXPIRED);
    assert_true(known(world, 900, &status));
    assert_int_equal(status, TL_LINE_ENDED);
    tl_queue_remember_end(world->queue, 901, 0);
    assert_true(known(world, 901, &status));
    assert_int_equal(status, TL_LINE_UNKNOWN);
    tl_queue_remember_end(world->queue, 4, TL_REASON_LEFT); /* the line knows better */
    assert_true(known(world, 4, &status));
    assert_int_equal(status, TL_LINE_WAITING);
}

static void expect_notice(const struct world *world, const char *text, const char *json,
                          uint64_t version)
{
    const struct tl_notice *notice = &world->queue->notice;
    const char *as_json = tl_notice_json(notice, NULL);
    assert_int_equal(notice->version, version);
    assert_string_equal(tl_notice_text(notice, NULL), text);
    if (json == NULL)
        assert_null(as_json);
    else
        assert_string_equal(as_json, json);
}

static void a_notice_has_a_version(void **state)
{
    struct world *world = *state;
    char much[TL_NOTICE_TEXT_MAX + 100];
    expect_notice(world, "", NULL, 0);
    tl_queue_set_notice(world->queue, "A \"late\" start", 14);
    expect_notice(world, "A \"late\" start", "{\"text\":\"A \\\"late\\\" start\"}\n", 1);
    tl_queue_set_notice(world->queue, "A \"late\" start", 14);
    expect_notice(world, "A \"late\" start", "{\"text\":\"A \\\"late\\\" start\"}\n", 1);
    tl_queue_set_notice(world->queue, "", 0);
    expect_notice(world, "", "{\"text\":\"\"}\n", 2);
    memset(much, 'x', sizeof(much));
    tl_queue_set_notice(world->queue, much, sizeof(much));
    const struct tl_notice *notice = &world->queue->notice;
    assert_int_equal(strlen(tl_notice_text(notice, NULL)), TL_NOTICE_TEXT_MAX);
}

static void a_notice_is_told_in_the_visitors_language(void **state)
{
    struct world *world = *state;
    const struct tl_notice *notice = &world->queue->notice;
    static const char texts[] = "\x1e[ko] \xea\xb3\xa7\x1e[en] Soon";
    assert_false(tl_notice_varies(notice));
    tl_queue_set_notice(world->queue, texts, sizeof(texts) - 1);
    assert_true(tl_notice_varies(notice));
    assert_string_equal(tl_notice_text(notice, "ko"), "\xea\xb3\xa7");
    assert_string_equal(tl_notice_text(notice, "de"), "Soon");
    assert_string_equal(tl_notice_text(notice, NULL), "Soon");
    assert_string_equal(tl_notice_json(notice, "ko"), "{\"text\":\"\xea\xb3\xa7\"}\n");
    assert_int_equal(notice->version, 1);
    tl_queue_set_notice(world->queue, "", 0);
    assert_string_equal(tl_notice_text(notice, "ko"), "");
}

static bool estimate(const struct world *world, uint64_t position, int64_t now_ms,
                     struct tl_eta_range *range, enum tl_eta_reason expected)
{
    enum tl_eta_reason reason;
    bool known = tl_queue_estimate(world->queue, position, now_ms, range, &reason);
    assert_int_equal(reason, expected);
    return known;
}

static void the_estimate_follows_sessions(void **state)
{
    struct world *world = *state;
    struct tl_queue_settings settings = world_settings();
    struct tl_eta_range range;
    tl_queue_set_line(world->queue, world_line(100), 0);
    for (int i = 1; i <= 30; i++) { /* one goes, one comes, every two seconds */
        char events[96];
        snprintf(events, sizeof(events), "[5,[%d,1],1],[3,[%d,1],1700000090000]", i, i + 3);
        assert_true(i > 8 || !estimate(world, 1, i * 2000 - 1, &range, TL_ETA_NOT_KNOWN));
        world_apply(world, 100 - (uint64_t)i, 3, events, (int64_t)i * 2000);
    }
    assert_int_equal(world->rebuilds, 0);
    assert_true(estimate(world, 30, 60000, &range, TL_ETA_PLAIN));
    assert_true(range.median_s > 54 && range.median_s < 66);
    assert_true(range.low_s < range.median_s && range.median_s < range.high_s);

    settings.mode = TL_MODE_PAUSED;
    tl_queue_set_settings(world->queue, &settings, 60000);
    assert_false(estimate(world, 30, 60000, &range, TL_ETA_PAUSED));
    settings.mode = TL_MODE_OPEN; /* the pause does not count, and what was learned stays known */
    tl_queue_set_settings(world->queue, &settings, 90000);
    tl_queue_set_line(world->queue, world_line(100), 90000);
    assert_true(estimate(world, 30, 90000, &range, TL_ETA_PLAIN));
    assert_true(range.median_s > 50 && range.median_s < 70);
    settings.capacity = 1;
    tl_queue_set_settings(world->queue, &settings, 90000);
    assert_true(estimate(world, 30, 90000, &range, TL_ETA_CAPACITY_LOWERED));
    assert_true(range.median_s > 150);
}

/* What was told is compared with what came true. */
static void promises_are_judged(void **state)
{
    struct world *world = *state;
    tl_queue_set_line(world->queue, world_line(100), 0);
    for (int i = 1; i <= 90; i++) {
        char events[96];
        snprintf(events, sizeof(events), "[5,[%d,1],1],[3,[%d,1],1700000090000]", i, i + 3);
        world_apply(world, 100 - (uint64_t)i, 3, events, (int64_t)i * 2000);
        tl_queue_tick(world->queue, (int64_t)i * 2000);
    }
    struct tl_promises_score score = world->queue->promises.score;
    assert_true(score.judged >= 10 && score.inside > 0.7 && score.error < 0.5);
}

static void a_queue_opens_by_the_stores_clock(void **state)
{
    struct world *world = *state;
    struct tl_queue_settings settings = world_settings();
    assert_true(tl_queue_weather(world->queue, 0)->open);
    settings.opens_at_ms = WORLD_STORE_MS + 5000;
    tl_queue_set_settings(world->queue, &settings, 0);
    assert_false(tl_queue_weather(world->queue, 4999)->open);
    assert_true(tl_queue_weather(world->queue, 5000)->open);
    settings.mode = TL_MODE_PAUSED;
    tl_queue_set_settings(world->queue, &settings, 0);
    assert_false(tl_queue_weather(world->queue, 5000)->open);
}

static void admission_is_near_while_there_is_capacity(void **state)
{
    struct world *world = *state;
    struct tl_queue_settings settings = world_settings();
    assert_false(tl_queue_about_to_admit(world->queue, 4, 0));
    settings.capacity = 5; /* three are active */
    tl_queue_set_settings(world->queue, &settings, 0);
    assert_true(tl_queue_about_to_admit(world->queue, 4, 0));
    assert_true(tl_queue_about_to_admit(world->queue, 5, 0));
    assert_false(tl_queue_about_to_admit(world->queue, 6, 0));
    assert_false(tl_queue_about_to_admit(world->queue, 1, 0)); /* is admitted already */
    settings.mode = TL_MODE_PAUSED;
    tl_queue_set_settings(world->queue, &settings, 0);
    assert_false(tl_queue_about_to_admit(world->queue, 4, 0));
}

static void the_front_goes_over_the_lanes(void **state)
{
    struct world *world = *state;
    tl_place places[8];
    struct tl_line *line = tl_line_new();
    tl_line_start(line, 7, 10);
    assert_true(tl_line_add_waiting(line, tl_place_make(2, 5), 1));
    assert_true(tl_line_add_waiting(line, tl_place_make(0, 7), 2));
    assert_true(tl_line_add_waiting(line, tl_place_make(2, 10), 2));
    tl_queue_set_line(world->queue, line, 0);
    assert_int_equal(tl_line_first(world->queue->line, places, 8), 5);
    assert_int_equal(places[0], 7);
    assert_int_equal(places[1], 8);
    assert_int_equal(places[2], tl_place_make(2, 5));
    assert_int_equal(places[3], tl_place_make(2, 10));
    assert_int_equal(places[4], tl_place_make(2, 11));
    assert_int_equal(tl_line_first(world->queue->line, places, 3), 3);
    assert_int_equal(tl_line_first(world->queue->line, places, 0), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fresh_line_keeps_what_is_known_of_places),
        TEST(a_line_of_another_generation_forgets_places),
        TEST(what_the_store_has_lost_may_return_unless_it_ended),
        TEST(what_was_not_told_of_a_loss_is_told_again),
        TEST(a_gap_asks_for_one_rebuild),
        TEST(other_sizes_ask_for_a_rebuild_now_and_then),
        TEST(an_entry_that_cannot_be_read_asks_for_a_rebuild),
        TEST(what_an_entry_says_is_passed_on),
        TEST(applied_settles_the_commands_of_this_worker),
        TEST(applied_counts_also_in_an_entry_that_the_snapshot_contains),
        TEST(a_session_is_claimed_once),
        TEST(a_claim_on_its_way_is_not_made_yet),
        TEST(a_claim_of_a_claimed_session_is_made_by_its_outcome),
        TEST(use_extends_a_sliding_session_every_tenth_of_it),
        TEST(asking_extends_no_session),
        TEST(a_refused_claim_is_made_again),
        TEST(claims_follow_the_events),
        TEST(a_claim_and_the_end_of_its_session_may_come_in_one_entry),
        TEST(a_fresh_line_ends_the_claims_of_sessions_it_does_not_have),
        TEST(presence_waits_until_the_last_was_applied),
        TEST(the_stores_answers_are_remembered),
        TEST(a_notice_has_a_version),
        TEST(a_notice_is_told_in_the_visitors_language),
        TEST(the_estimate_follows_sessions),
        TEST(promises_are_judged),
        TEST(a_queue_opens_by_the_stores_clock),
        TEST(admission_is_near_while_there_is_capacity),
        TEST(the_front_goes_over_the_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
