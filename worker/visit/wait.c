/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "worker/report/worker_metrics.h"
#include "worker/visit/wait.h"

/* An event is read within a few ms of its making. A worker that is further behind than this is in
 * trouble, and those who wait should hear something. */
enum { EVENT_WAIT_MS = 250 };

struct list {
    struct tl_wait *first, *last;
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

static void begin(struct list *list, struct tl_wait *wait, int64_t wait_ms)
{
    wait->deadline_ms = wait->since_us / 1000 + wait_ms;
    wait->next = NULL;
    wait->prev = list->last;
    if (list->last != NULL)
        list->last->next = wait;
    else
        list->first = wait;
    list->last = wait;
    list->count++;
    if (wait->request != NULL)
        tl_request_hold(wait->request);
}

/* Takes it out of its list. It may begin again at once. */
static void end(struct tl_holds *holds, struct list *list, struct tl_wait *wait)
{
    if (wait->prev != NULL)
        wait->prev->next = wait->next;
    else
        list->first = wait->next;
    if (wait->next != NULL)
        wait->next->prev = wait->prev;
    else
        list->last = wait->prev;
    list->count--;
    holds->settings.over(wait);
}

/* ---- commands ---- */

void tl_holds_command(struct tl_holds *holds, struct tl_wait *wait,
                      struct tl_pending_command *pending)
{
    begin(&holds->commands, wait, holds->settings.wait_ms);
    wait->pending = pending;
    wait->next_waiter = pending->waiters;
    pending->waiters = wait;
}

void tl_holds_settle(struct tl_holds *holds, struct tl_pending_command *pending,
                     const struct tl_pending_result *result)
{
    while (pending->waiters != NULL) {
        struct tl_wait *wait = pending->waiters;
        pending->waiters = wait->next_waiter;
        wait->result = result;
        end(holds, &holds->commands, wait);
    }
}

/* Ends a request at its deadline. The command itself continues. */
static void time_out(struct tl_holds *holds, struct tl_wait *wait)
{
    struct tl_wait *before = NULL;
    for (struct tl_wait *waiter = wait->pending->waiters; waiter != wait;
         waiter = waiter->next_waiter)
        before = waiter;
    if (before != NULL)
        before->next_waiter = wait->next_waiter;
    else
        wait->pending->waiters = wait->next_waiter;
    wait->result = NULL;
    end(holds, &holds->commands, wait);
}

/* ---- lookups ---- */

bool tl_holds_lookup(struct tl_holds *holds, struct tl_wait *wait)
{
    uint64_t number = holds->last_number + 1;
    if (!tl_ingest_look(holds->settings.env->ingest, wait->queue->name, wait->ticket, number))
        return false;
    holds->last_number = wait->number = number;
    wait->behind = false;
    wait->ended = 0;
    begin(&holds->lookups, wait, holds->settings.wait_ms);
    tl_metrics_add(holds->settings.env->metrics, TL_WORKER_LOOKUPS, 1);
    return true;
}

static void end_lookup(struct tl_holds *holds, struct tl_wait *wait, bool known)
{
    wait->known = known;
    end(holds, &holds->lookups, wait);
}

void tl_holds_found(struct tl_holds *holds, uint64_t number, enum tl_lookup_found found,
                    enum tl_reason reason)
{
    struct tl_wait *wait = holds->lookups.first;
    while (wait != NULL && wait->number != number)
        wait = wait->next;
    if (wait == NULL)
        return; /* it has timed out */
    if (found == TL_LOOKUP_ALIVE) {
        wait->behind = true;
        return;
    }
    const unsigned ended = found == TL_LOOKUP_ENDED ? reason : 0;
    if (tl_place_seq(wait->ticket->place) == 0)
        wait->ended = ended;
    else if (found != TL_LOOKUP_FAILED)
        tl_queue_remember_end(wait->queue, wait->ticket->place, ended);
    end_lookup(holds, wait, found != TL_LOOKUP_FAILED);
}

/* ---- events ---- */

void tl_holds_event(struct tl_holds *holds, struct tl_wait *wait, uint64_t event)
{
    begin(&holds->events, wait, EVENT_WAIT_MS);
    wait->event = event;
}

void tl_holds_drop(struct tl_holds *holds, const struct tl_queue *queue)
{
    struct tl_wait *next;
    for (struct tl_wait *wait = holds->lookups.first; wait != NULL; wait = next) {
        next = wait->next;
        if (queue == NULL || wait->queue == queue)
            end_lookup(holds, wait, false);
    }
    for (struct tl_wait *wait = holds->events.first; wait != NULL; wait = next) {
        next = wait->next;
        if (queue == NULL || wait->queue == queue)
            end(holds, &holds->events, wait);
    }
}

/* ---- time ---- */

void tl_holds_tick(struct tl_holds *holds, int64_t now_ms)
{
    struct tl_wait *next;
    for (struct tl_wait *wait = holds->commands.first; wait != NULL && wait->deadline_ms <= now_ms;
         wait = next) {
        next = wait->next;
        time_out(holds, wait);
    }
    for (struct tl_wait *wait = holds->lookups.first; wait != NULL; wait = next) {
        bool known = false;
        next = wait->next;
        if (wait->behind)
            (void)tl_queue_look(wait->queue, wait->ticket->place, &known);
        if (known || wait->deadline_ms <= now_ms)
            end_lookup(holds, wait, known);
    }
    for (struct tl_wait *wait = holds->events.first; wait != NULL; wait = next) {
        next = wait->next;
        if (wait->deadline_ms <= now_ms || tl_line_event(wait->queue->line) >= wait->event)
            end(holds, &holds->events, wait);
    }
}
