/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"
#include "worker/archive/archive.h"
#include "worker/feed/ingest.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/visit.h"

/* An event is read within a few ms of its making. A worker that is further behind than this is in
 * trouble, and those who wait should hear something. */
enum { EVENT_WAIT_MS = 250 };

void tl_visit_take(struct tl_visit *visit, tl_step *step)
{
    visit->now_ms = tl_clock_ms();
    if (!step(visit))
        tl_render_refusal(visit->request, &visit->refusal);
}

uint64_t tl_waits_count(const struct tl_waits *waits)
{
    uint64_t count = 0;
    for (size_t kind = 0; kind < TL_WAIT_KINDS; kind++)
        count += waits->lists[kind].count;
    return count;
}

/* ---- beginning ---- */

void tl_wait_begin(struct tl_visit *visit, enum tl_wait_kind kind, int64_t ms, tl_step *step)
{
    struct tl_wait_list *list = &visit->worker->waits.lists[kind];
    struct tl_wait *wait = &visit->wait;
    wait->kind = kind;
    wait->step = step;
    wait->since_us = tl_clock_us();
    wait->deadline_ms = visit->now_ms + ms;
    wait->known = wait->behind = false;
    wait->ended = 0;
    wait->result = NULL;
    wait->ids = NULL;
    wait->archived = NULL;
    wait->next = NULL;
    wait->prev = list->last;
    *(list->last != NULL ? &list->last->wait.next : &list->first) = visit;
    list->last = visit;
    list->count++;
    if (visit->request != NULL)
        tl_request_hold(visit->request);
}

bool tl_wait_command(struct tl_visit *visit, struct tl_pending_command *pending, tl_step *step)
{
    if (pending == NULL)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                         "There is no memory for this command; try again");
    tl_wait_begin(visit, TL_WAIT_COMMAND, visit->worker->config->http.join_wait_ms, step);
    visit->wait.pending = pending;
    visit->wait.next_waiter = pending->waiters;
    pending->waiters = visit;
    return true;
}

bool tl_wait_lookup(struct tl_visit *visit, tl_step *step)
{
    struct tl_worker *worker = visit->worker;
    visit->wait.number = ++worker->waits.last_number;
    if (!tl_queue_env_store_up(worker->env) ||
        !tl_ingest_look(worker->env->ingest, visit->name, &visit->ticket, visit->wait.number))
        return false;
    tl_wait_begin(visit, TL_WAIT_LOOKUP, worker->config->http.join_wait_ms, step);
    tl_metrics_add(worker->env->metrics, TL_WORKER_LOOKUPS, 1);
    return true;
}

bool tl_wait_archive(struct tl_visit *visit, const struct tl_archive_job *question, tl_step *step)
{
    struct tl_worker *worker = visit->worker;
    struct tl_archive_job numbered = *question;
    numbered.number = visit->wait.number = ++worker->waits.last_number;
    if (!tl_archive_ask(worker->env->archive, &numbered, visit->now_ms))
        return false;
    tl_wait_begin(visit, TL_WAIT_ARCHIVE, TL_ARCHIVE_WAIT_MS, step);
    return true;
}

void tl_wait_event(struct tl_visit *visit, uint64_t event, tl_step *step)
{
    visit->wait.number = event;
    tl_wait_begin(visit, TL_WAIT_EVENT, EVENT_WAIT_MS, step);
}

/* ---- ending ---- */

bool tl_wait_applied(const struct tl_wait *wait)
{
    return wait->result != NULL && wait->result->end == TL_PENDING_APPLIED;
}

/* The queue was deleted, and its commands are refused. */
static bool refuse_deleted(struct tl_visit *visit)
{
    return tl_refuse(&visit->refusal, TL_REFUSAL_NO_QUEUE, "The queue was deleted");
}

/* First it is no longer in the list, as it may begin again at once. */
void tl_wait_end(struct tl_visit *visit)
{
    struct tl_wait *wait = &visit->wait;
    struct tl_wait_list *list = &visit->worker->waits.lists[wait->kind];
    *(wait->prev != NULL ? &wait->prev->wait.next : &list->first) = wait->next;
    *(wait->next != NULL ? &wait->next->wait.prev : &list->last) = wait->prev;
    list->count--;
    tl_visit_take(visit,
                  wait->result != NULL && visit->queue->deleted ? refuse_deleted : wait->step);
}

void tl_waits_settle(struct tl_pending_command *pending, const struct tl_pending_result *result)
{
    while (pending->waiters != NULL) {
        struct tl_visit *visit = pending->waiters;
        pending->waiters = visit->wait.next_waiter;
        visit->wait.result = result;
        tl_wait_end(visit);
    }
}

/* The command itself continues. */
static void leave_command(struct tl_visit *visit)
{
    struct tl_visit **at = &visit->wait.pending->waiters;
    while (*at != visit)
        at = &(*at)->wait.next_waiter;
    *at = visit->wait.next_waiter;
}

/* The visit that waits for the answer to this question; NULL: it no longer does. */
static struct tl_visit *find(const struct tl_worker *worker, enum tl_wait_kind kind,
                             uint64_t number)
{
    struct tl_visit *visit = worker->waits.lists[kind].first;
    while (visit != NULL && visit->wait.number != number)
        visit = visit->wait.next;
    return visit;
}

void tl_waits_found(struct tl_worker *worker, uint64_t number, enum tl_lookup_found found,
                    enum tl_reason reason)
{
    struct tl_visit *visit = find(worker, TL_WAIT_LOOKUP, number);
    if (visit == NULL)
        return;
    visit->wait.behind = found == TL_LOOKUP_ALIVE;
    if (visit->wait.behind)
        return;
    const unsigned ended = found == TL_LOOKUP_ENDED ? reason : 0;
    if (tl_place_seq(visit->ticket.place) == 0)
        visit->wait.ended = ended;
    else if (found != TL_LOOKUP_FAILED)
        tl_queue_remember_end(visit->queue, visit->ticket.place, ended);
    visit->wait.known = found != TL_LOOKUP_FAILED;
    tl_wait_end(visit);
}

void tl_waits_drawn(struct tl_worker *worker, uint64_t number, const void *ids, size_t length)
{
    struct tl_visit *visit = find(worker, TL_WAIT_PAGE, number);
    if (visit == NULL)
        return;
    visit->wait.ids = ids;
    visit->wait.length = length;
    tl_wait_end(visit);
}

void tl_waits_archived(struct tl_worker *worker, const struct tl_archive_job *answer)
{
    struct tl_visit *visit = find(worker, TL_WAIT_ARCHIVE, answer->number);
    if (visit == NULL)
        return;
    visit->wait.archived = answer;
    tl_wait_end(visit);
}

/* Does the line know by now what this one waits for? The other kinds get a message. */
static bool has_come(struct tl_visit *visit)
{
    struct tl_wait *wait = &visit->wait;
    if (wait->kind == TL_WAIT_LOOKUP && wait->behind)
        (void)tl_queue_look(visit->queue, visit->ticket.place, &wait->known);
    return wait->known ||
           (wait->kind == TL_WAIT_EVENT && visit->queue->line->event >= wait->number);
}

void tl_waits_tick(struct tl_worker *worker, int64_t now_ms)
{
    struct tl_visit *next;
    for (enum tl_wait_kind kind = 0; kind < TL_WAIT_KINDS; kind++) {
        const bool looks = kind == TL_WAIT_LOOKUP || kind == TL_WAIT_EVENT;
        for (struct tl_visit *visit = worker->waits.lists[kind].first; visit != NULL;
             visit = next) {
            next = visit->wait.next;
            const bool late = visit->wait.deadline_ms <= now_ms;
            if (!late && !looks)
                break;
            if (late && kind == TL_WAIT_COMMAND)
                leave_command(visit);
            if ((looks && has_come(visit)) || late)
                tl_wait_end(visit);
        }
    }
}

void tl_waits_drop(struct tl_worker *worker, const struct tl_queue *queue)
{
    /* A draw's list, a verdict and what the archive knows can be given of a recreated queue, too.
     */
    const enum tl_wait_kind last =
        queue == NULL || queue->deleted ? TL_WAIT_ARCHIVE : TL_WAIT_EVENT;
    struct tl_visit *next;
    for (enum tl_wait_kind kind = TL_WAIT_LOOKUP; kind <= last; kind++)
        for (struct tl_visit *visit = worker->waits.lists[kind].first; visit != NULL;
             visit = next) {
            next = visit->wait.next;
            if (queue == NULL || visit->queue == queue)
                tl_wait_end(visit);
        }
}
