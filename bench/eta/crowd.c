/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/line/line.h"
#include "worker/queue/eta.h"

#include "lab/crowd.h"
#include "lab/memory.h"

#include "bench/eta/baselines.h"
#include "bench/eta/crowd.h"

enum kind { ARRIVE, LEAVE, END, CHANGE, LOOK };

enum { KIND_SHIFT = 48 };

/* The worker process beside the simulated store. */
struct world {
    const struct crowd *crowd;
    struct outcome *outcome;
    uint64_t random;
    struct tl_dues dues; /* the kind, and the index of the visitor or the change */
    struct tl_line *line;
    struct tl_eta eta;
    struct tl_promises promises;
    struct baselines baselines;
    uint64_t event, capacity;
    bool paused;
    int64_t changed_ms;
    size_t first;   /* promise of this run */
    double *told_s; /* the shortest wait told to each visitor; below 0: none yet */
};

/* Of all that is due at the same moment, the lowest kind comes first. */
static void push(struct world *world, int64_t at_ms, enum kind kind, size_t index)
{
    tl_dues_push(&world->dues, (struct tl_due){at_ms, (size_t)kind << KIND_SHIFT | index});
}

/* ---- events, as the functions report them ---- */

static tl_place place_of(size_t visitor)
{
    return tl_place_make(0, visitor + 1);
}

static void report(struct world *world, enum tl_event_kind kind, size_t visitor,
                   enum tl_reason reason, int64_t now_ms)
{
    struct tl_run run = {.first = place_of(visitor), .count = 1};
    struct tl_event event = {
        .kind = kind, .places = {.n = 1, .runs = &run}, .deadline_ms = 1, .reason = reason};
    struct tl_event_entry entry = {.number = ++world->event, .n_events = 1, .events = &event};
    if (tl_line_apply(world->line, &entry, now_ms) != TL_LINE_APPLIED)
        abort();
    entry.waiting = tl_line_waiting(world->line);
    entry.active = tl_line_active(world->line);
    tl_eta_apply(&world->eta, &entry, now_ms);
    tl_promises_apply(&world->promises, world->line, &entry, now_ms);
}

/* The admitter, without delay. */
static void admit(struct world *world, int64_t now_ms)
{
    const struct tl_order *order;
    uint64_t seq;
    while (!world->paused && tl_line_active(world->line) < world->capacity &&
           (order = tl_line_order(world->line, 0)) != NULL && tl_order_next(order, 1, &seq)) {
        struct visitor *visitor = &world->crowd->visitors[seq - 1];
        visitor->admitted_ms = now_ms;
        baselines_admitted(&world->baselines);
        report(world, TL_EVENT_ADMITTED, seq - 1, 0, now_ms);
        push(world, now_ms + visitor->session_ms, END, seq - 1);
    }
    (void)tl_line_forget(world->line, now_ms, 100);
}

static void set_rule(struct world *world, int64_t now_ms)
{
    const struct tl_eta_rule rule = {.counted = true, .capacity = world->capacity};
    world->baselines.capacity = world->capacity;
    tl_eta_set_rule(&world->eta, &rule, now_ms);
    tl_eta_set_open(&world->eta, !world->paused, now_ms);
}

/* ---- what is told ---- */

/* Notes whether the wait told to a visitor has risen without a reason. */
static void note_rise(struct world *world, size_t visitor, double wait_s, bool named)
{
    double *least = &world->told_s[visitor];
    if (*least >= 0 && wait_s > *least * 1.1 + 2) {
        world->outcome->rises++;
        world->outcome->unnamed += !named;
        *least = wait_s;
    } else if (*least < 0 || wait_s < *least) {
        *least = wait_s;
    }
}

static void tell(struct world *world, uint64_t position, int64_t now_ms)
{
    struct outcome *outcome = world->outcome;
    struct promise promise = {
        .position = position, .at_ms = now_ms, .since_change_ms = now_ms - world->changed_ms};
    struct tl_eta_range range;
    enum tl_eta_reason reason;
    uint64_t seq;
    if (!tl_order_select(tl_line_order(world->line, 0), position - 1, &seq))
        return;
    promise.visitor = seq - 1;
    outcome->views++;
    bool known = tl_eta_estimate(&world->eta, position, now_ms, &range, &reason);
    if (!known) {
        outcome->unknown++;
        return;
    }
    note_rise(world, promise.visitor, range.median_s, reason != TL_ETA_PLAIN);
    promise.told[OURS] = (struct told){range.low_s, range.median_s, range.high_s};
    if (world->paused || now_ms < world->crowd->judge_from ||
        !baselines_tell(&world->baselines, position, promise.told))
        return;
    outcome->promises =
        tl_xgrow(outcome->promises, &outcome->room, outcome->n + 1, sizeof(promise));
    outcome->promises[outcome->n++] = promise;
}

/* Tells one visitor of each class. */
static void look(struct world *world, int64_t now_ms)
{
    static const uint64_t from[] = {1, 5, 20, 50, UINT64_MAX};
    uint64_t waiting = tl_line_waiting(world->line);
    tl_promises_tick(&world->promises, &world->eta, world->line, now_ms);
    for (int i = 0; i < 4 && from[i] <= waiting; i++) {
        uint64_t last = from[i + 1] - 1 < waiting ? from[i + 1] - 1 : waiting;
        tell(world, from[i] + tl_random_next(&world->random) % (last - from[i] + 1), now_ms);
    }
    if (waiting > 0) /* one who is asked again and again */
        tell(world, 1 + waiting / 2, now_ms);
}

/* ---- turns ---- */

static void arrive(struct world *world, size_t i, int64_t now_ms)
{
    const struct visitor *visitor = &world->crowd->visitors[i];
    report(world, TL_EVENT_JOINED, i, 0, now_ms);
    if (i + 1 < world->crowd->n)
        push(world, world->crowd->visitors[i + 1].arrives_ms, ARRIVE, i + 1);
    if (visitor->patience_ms != INT64_MAX)
        push(world, now_ms + visitor->patience_ms, LEAVE, i);
    admit(world, now_ms);
    struct tl_line_view view = tl_line_look(world->line, place_of(i));
    if (view.status == TL_LINE_WAITING)
        tell(world, view.ahead + 1, now_ms);
}

static void take_turn(struct world *world, enum kind kind, size_t index, int64_t now_ms)
{
    switch (kind) {
    case ARRIVE:
        arrive(world, index, now_ms);
        break;
    case LEAVE:
        if (tl_line_look(world->line, place_of(index)).status == TL_LINE_WAITING)
            report(world, TL_EVENT_REMOVED, index, TL_REASON_LEFT, now_ms);
        break;
    case END:
        report(world, TL_EVENT_FREED, index, TL_REASON_COMPLETED, now_ms);
        baselines_ended(&world->baselines, world->crowd->visitors[index].session_ms);
        if (now_ms < world->crowd->judge_from) /* what an operator knows by then */
            world->baselines.constant_ms = world->baselines.sessions_ms / world->baselines.sessions;
        break;
    case CHANGE:
        world->capacity = world->crowd->changes[index].capacity;
        world->paused = world->crowd->changes[index].paused;
        world->changed_ms = now_ms;
        set_rule(world, now_ms);
        break;
    case LOOK:
        look(world, now_ms);
        push(world, now_ms + world->crowd->look_ms, LOOK, 0);
        break;
    }
    admit(world, now_ms);
    baselines_pass(&world->baselines, now_ms, !world->paused && tl_line_waiting(world->line) > 0);
}

/* ---- what came true ---- */

/* When the visitor was admitted, or would have been, had they not left: instead of the next one
 * behind who was. INT64_MAX: not known. */
static int64_t truth_ms(const struct crowd *crowd, size_t visitor)
{
    while (visitor < crowd->n && crowd->visitors[visitor].admitted_ms == INT64_MAX)
        visitor++;
    return visitor < crowd->n ? crowd->visitors[visitor].admitted_ms : INT64_MAX;
}

static void settle(const struct world *world)
{
    const struct crowd *crowd = world->crowd;
    struct outcome *outcome = world->outcome;
    size_t kept = world->first;
    for (size_t i = world->first; i < outcome->n; i++) {
        struct promise promise = outcome->promises[i];
        int64_t at_ms = truth_ms(crowd, promise.visitor);
        if (at_ms == INT64_MAX)
            continue;
        promise.truth_s = (double)(at_ms - promise.at_ms) / 1000;
        for (size_t c = 0; c < crowd->n_changes; c++)
            promise.overtaken = promise.overtaken || (crowd->changes[c].at_ms > promise.at_ms &&
                                                      crowd->changes[c].at_ms <= at_ms);
        outcome->promises[kept++] = promise;
    }
    outcome->n = kept;
}

void crowd_run(const struct crowd *crowd, struct outcome *outcome)
{
    struct world world = {.crowd = crowd,
                          .outcome = outcome,
                          .random = crowd->seed,
                          .line = tl_line_new(),
                          .promises = {.random = crowd->seed},
                          .capacity = crowd->capacity,
                          .changed_ms = INT64_MIN / 2,
                          .first = outcome->n};
    world.told_s = tl_xalloc(crowd->n, sizeof(*world.told_s));
    if (world.line == NULL)
        abort();
    world.baselines.constant_ms = crowd->session_ms;
    for (size_t i = 0; i < crowd->n; i++) {
        world.told_s[i] = -1;
        crowd->visitors[i].admitted_ms = INT64_MAX;
    }
    tl_line_start(world.line, 0, 0);
    set_rule(&world, 0);
    push(&world, crowd->visitors[0].arrives_ms, ARRIVE, 0);
    push(&world, crowd->look_ms, LOOK, 0);
    for (size_t i = 0; i < crowd->n_changes; i++)
        push(&world, crowd->changes[i].at_ms, CHANGE, i);
    while (world.dues.n > 0 && world.dues.list[0].at_ms <= crowd->until_ms) {
        struct tl_due due = tl_dues_pop(&world.dues);
        take_turn(&world, (enum kind)(due.visitor >> KIND_SHIFT),
                  due.visitor & (((size_t)1 << KIND_SHIFT) - 1), due.at_ms);
    }
    settle(&world);
    free(world.dues.list);
    free(world.told_s);
    tl_placemap_clear(&world.eta.sessions.running);
    tl_line_free(&world.line);
}

void outcome_free(struct outcome *outcome)
{
    free(outcome->promises);
    *outcome = (struct outcome){0};
}
