/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "worker/queue/holds.h"
#include "worker/report/worker_metrics.h"

/* An event is read within a few ms of its making. A worker that is further behind than this is in
 * trouble, and those who wait should hear something. */
enum { EVENT_WAIT_MS = 250 };

struct hold {
    struct hold *prev, *next; /* in its list, the earliest deadline first */
    struct hold *next_waiter; /* of the same command */
    struct tl_held held;
    int64_t deadline_ms;
    struct tl_pending_command *pending; /* in the list of commands */
    uint64_t number;                    /* in the list of lookups */
    bool behind;    /* a lookup: the store knows the place, the line does not yet */
    uint64_t event; /* in the list of events */
};

struct list {
    struct hold *first, *last;
    uint64_t count;
};

struct tl_holds {
    struct tl_holds_settings settings;
    struct list commands, lookups, events;
    uint64_t last_number;
};

struct tl_holds *tl_holds_new(const struct tl_holds_settings *settings)
{
    struct tl_holds *holds = calloc(1, sizeof(*holds));
    if (holds != NULL)
        holds->settings = *settings;
    return holds;
}

void tl_holds_free(struct tl_holds **holds)
{
    free(*holds);
    *holds = NULL;
}

uint64_t tl_holds_count(const struct tl_holds *holds)
{
    return holds->commands.count + holds->lookups.count + holds->events.count;
}

static struct hold *hold_new(struct list *list, const struct tl_held *held, int64_t wait_ms)
{
    struct hold *hold = calloc(1, sizeof(*hold));
    if (hold == NULL)
        return NULL;
    hold->held = *held;
    hold->deadline_ms = held->since_us / 1000 + wait_ms;
    hold->prev = list->last;
    if (list->last != NULL)
        list->last->next = hold;
    else
        list->first = hold;
    list->last = hold;
    list->count++;
    if (held->request != NULL)
        tl_request_hold(held->request);
    return hold;
}

/* Takes the hold out of its list and frees it. Returns what its answer needs. */
static struct tl_held release(struct list *list, struct hold *hold)
{
    struct tl_held held = hold->held;
    if (hold->prev != NULL)
        hold->prev->next = hold->next;
    else
        list->first = hold->next;
    if (hold->next != NULL)
        hold->next->prev = hold->prev;
    else
        list->last = hold->prev;
    list->count--;
    free(hold);
    return held;
}

/* ---- commands ---- */

bool tl_holds_command(struct tl_holds *holds, const struct tl_held *held,
                      struct tl_pending_command *pending)
{
    struct hold *hold = hold_new(&holds->commands, held, holds->settings.wait_ms);
    if (hold == NULL)
        return false;
    hold->pending = pending;
    hold->next_waiter = pending->waiters;
    pending->waiters = hold;
    return true;
}

static void end_command(struct tl_holds *holds, struct hold *hold,
                        const struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    struct tl_held held = release(&holds->commands, hold);
    held.pending = pending;
    held.result = result;
    holds->settings.over(holds->settings.context, &held);
}

void tl_holds_settle(struct tl_holds *holds, struct tl_pending_command *pending,
                     const struct tl_pending_result *result)
{
    while (pending->waiters != NULL) {
        struct hold *hold = pending->waiters;
        pending->waiters = hold->next_waiter;
        end_command(holds, hold, pending, result);
    }
}

/* Ends a request at its deadline. The command itself continues. */
static void time_out(struct tl_holds *holds, struct hold *hold)
{
    const struct tl_pending_command *pending = hold->pending;
    struct hold *before = NULL;
    for (struct hold *waiter = hold->pending->waiters; waiter != hold; waiter = waiter->next_waiter)
        before = waiter;
    if (before != NULL)
        before->next_waiter = hold->next_waiter;
    else
        hold->pending->waiters = hold->next_waiter;
    end_command(holds, hold, pending, NULL);
}

/* ---- lookups ---- */

bool tl_holds_lookup(struct tl_holds *holds, const struct tl_held *held)
{
    uint64_t number = holds->last_number + 1;
    if (!tl_ingest_look(holds->settings.env->ingest, held->queue->name, &held->ticket, number))
        return false;
    holds->last_number = number;
    struct hold *hold = hold_new(&holds->lookups, held, holds->settings.wait_ms);
    if (hold == NULL)
        return false; /* the store's answer will find no hold */
    hold->number = number;
    tl_metrics_add(holds->settings.env->metrics, TL_WORKER_LOOKUPS, 1);
    return true;
}

static void end_lookup(struct tl_holds *holds, struct hold *hold, bool known)
{
    struct tl_held held = release(&holds->lookups, hold);
    held.known = known;
    holds->settings.over(holds->settings.context, &held);
}

void tl_holds_found(struct tl_holds *holds, uint64_t number, enum tl_lookup_found found,
                    enum tl_reason reason)
{
    struct hold *hold = holds->lookups.first;
    while (hold != NULL && hold->number != number)
        hold = hold->next;
    if (hold == NULL)
        return; /* it has timed out */
    if (found == TL_LOOKUP_ALIVE) {
        hold->behind = true;
        return;
    }
    const unsigned ended = found == TL_LOOKUP_ENDED ? reason : 0;
    if (tl_place_seq(hold->held.ticket.place) == 0)
        hold->held.ended = ended;
    else if (found != TL_LOOKUP_FAILED)
        tl_queue_remember_end(hold->held.queue, hold->held.ticket.place, ended);
    end_lookup(holds, hold, found != TL_LOOKUP_FAILED);
}

/* ---- events ---- */

bool tl_holds_event(struct tl_holds *holds, const struct tl_held *held, uint64_t event)
{
    struct hold *hold = hold_new(&holds->events, held, EVENT_WAIT_MS);
    if (hold != NULL)
        hold->event = event;
    return hold != NULL;
}

static void end_event(struct tl_holds *holds, struct hold *hold)
{
    const struct tl_held held = release(&holds->events, hold);
    holds->settings.over(holds->settings.context, &held);
}

void tl_holds_drop(struct tl_holds *holds, const struct tl_queue *queue)
{
    struct hold *next;
    for (struct hold *hold = holds->lookups.first; hold != NULL; hold = next) {
        next = hold->next;
        if (queue == NULL || hold->held.queue == queue)
            end_lookup(holds, hold, false);
    }
    for (struct hold *hold = holds->events.first; hold != NULL; hold = next) {
        next = hold->next;
        if (queue == NULL || hold->held.queue == queue)
            end_event(holds, hold);
    }
}

/* ---- time ---- */

void tl_holds_tick(struct tl_holds *holds, int64_t now_ms)
{
    struct hold *next;
    for (struct hold *hold = holds->commands.first; hold != NULL && hold->deadline_ms <= now_ms;
         hold = next) {
        next = hold->next;
        time_out(holds, hold);
    }
    for (struct hold *hold = holds->lookups.first; hold != NULL; hold = next) {
        bool known = false;
        next = hold->next;
        if (hold->behind)
            (void)tl_queue_look(hold->held.queue, hold->held.ticket.place, &known);
        if (known || hold->deadline_ms <= now_ms)
            end_lookup(holds, hold, known);
    }
    for (struct hold *hold = holds->events.first; hold != NULL; hold = next) {
        next = hold->next;
        if (hold->deadline_ms <= now_ms || tl_line_event(hold->held.queue->line) >= hold->event)
            end_event(holds, hold);
    }
}
