/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/http/router.h"
#include "worker/http/sse.h"
#include "worker/http/stream.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/subscriber_table.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/visit.h"

enum {
    ROUND_MS = 500,          /* each subscriber has one turn in this time */
    ASK_AGAIN_MS = 1000,     /* between two questions about an unknown place */
    RESTORE_AGAIN_MS = 5000, /* between two questions for a place of a lost generation */
    REPLACED_MS = 60000,     /* before the reader of a replaced stream reconnects, the least */
    RETRY_MIN_MS = 1000,     /* clients wait this long before they reconnect, spread evenly */
    RETRY_SPREAD_MS = 3000,
    DISMISSED_MIN_MS = 100, /* the same when they are sent to another worker */
};

/* The subscriber of a visit. Is it counted for its address? */
static struct tl_subscriber *add(const struct tl_visit *visit, bool counted)
{
    struct tl_worker *worker = visit->worker;
    struct tl_subscriber *subscriber =
        tl_subscriber_table_add(&worker->subscribers.table, visit->queue, &visit->ticket);
    if (subscriber == NULL)
        return NULL;
    subscriber->worker = worker;
    subscriber->blocks = worker->queues.blocks_version;
    subscriber->address = visit->address;
    subscriber->has_address = counted && visit->has_address;
    if (subscriber->has_address)
        subscriber->client = tl_clients_enter(worker->clients, &subscriber->address);
    tl_metrics_add(worker->env->metrics, TL_WORKER_SUBSCRIBERS, 1);
    return subscriber;
}

/* Removes the subscriber. Its request, if it is one, is the caller's to answer. */
static void drop(struct tl_subscriber *subscriber)
{
    struct tl_worker *worker = subscriber->worker;
    tl_metrics_add(worker->env->metrics, TL_WORKER_SUBSCRIBERS, -1);
    if (subscriber->stream != NULL)
        tl_metrics_add(worker->env->metrics, TL_WORKER_EVENT_STREAMS, -1);
    tl_stream_close(&subscriber->stream);
    tl_clients_leave(worker->clients, subscriber->client);
    tl_subscriber_table_remove(&worker->subscribers.table, subscriber);
}

static void on_broken(void *context)
{
    drop(context);
}

/* ---- the end of a subscription ---- */

/* The place of a request that waited for a change is lost. Is that a join, which gets a new place?
 * Not if the request brought a ticket with which the place comes back, or asks about one. */
static bool joins_anew(const struct tl_visit *visit, bool returns)
{
    struct tl_ticket brought;
    bool numbered = tl_visit_brought(visit, &brought) && tl_place_seq(brought.place) != 0;
    return !numbered || (!returns && strcmp(tl_request_method(visit->request), "POST") == 0);
}

/* A long poll, or a join about to be admitted, waits no longer. */
static bool changed(struct tl_visit *visit)
{
    struct tl_ticket *ticket = &visit->ticket;
    bool returns = tl_queue_may_return(visit->queue, ticket);
    bool lost = returns || tl_queue_outdated(visit->queue, ticket);
    if (visit->gives_ticket && lost && joins_anew(visit, returns)) {
        ticket->invite = TL_TICKET_TRUSTED;
        return tl_answer_pending(visit);
    }
    ticket->issued = (uint32_t)(tl_queue_env_store_ms(visit->queue->env, tl_clock_ms()) / 1000);
    return tl_answer_anew(visit);
}

/* Removes the subscriber, and answers its request, if it is one. */
static void answer(struct tl_subscriber *subscriber)
{
    struct tl_visit *visit = subscriber->visit;
    if (visit != NULL) {
        visit->ticket = subscriber->ticket;
        visit->gives_ticket = subscriber->give_ticket;
    }
    drop(subscriber);
    if (visit != NULL)
        tl_visit_take(visit, changed);
}

/* The same with a refusal. */
static void refuse(struct tl_subscriber *subscriber, enum tl_refusal_kind kind)
{
    const struct tl_visit *visit = subscriber->visit;
    drop(subscriber);
    if (visit != NULL)
        tl_render_refused(visit->request, kind, "");
}

void tl_subscribers_end(struct tl_worker *worker, const struct tl_queue *queue)
{
    for (size_t n = worker->subscribers.table.n; n > 0; n--) {
        struct tl_subscriber *subscriber = tl_subscriber_table_next(&worker->subscribers.table);
        if (queue == NULL || subscriber->queue == queue)
            refuse(subscriber,
                   subscriber->queue->deleted ? TL_REFUSAL_NO_QUEUE : TL_REFUSAL_STOPPING);
    }
}

/* ---- telling ---- */

/* Sends the view of the place, or answers the request with it. Frees the subscriber if it is done.
 */
static void tell(struct tl_subscriber *subscriber, const struct tl_line_view *state, int64_t now_ms)
{
    if (subscriber->visit != NULL) {
        subscriber->give_ticket = tl_telling_gives_ticket(subscriber, state, now_ms);
        answer(subscriber);
    } else if (!tl_telling_view(subscriber, state, now_ms)) {
        drop(subscriber);
    }
}

/* Asks for the lost place of a stream. */
static void ask_back(struct tl_subscriber *subscriber, int64_t now_ms)
{
    if (subscriber->asked_ms != 0 && now_ms - subscriber->asked_ms < RESTORE_AGAIN_MS)
        return;
    subscriber->asked_ms = now_ms;
    (void)tl_queue_restore(subscriber->queue, &subscriber->ticket, 0,
                           0); /* else it is asked again */
}

/* Tells the reader of a stream that ends why, as far as it takes that. */
static void say(struct tl_subscriber *subscriber, const char *event, int64_t now_ms)
{
    if (subscriber->stream != NULL)
        (void)tl_telling_event(subscriber, event, "{}", 2, now_ms);
}

/* Judges the subscriber's ticket, and follows its place. *state: of that place; *known is false
 * when only the store can tell it. False if the subscriber is not to be told anything now; then it
 * may be freed: the store was asked for its lost place, or another device has it, or it is void. */
static bool judge(struct tl_subscriber *subscriber, int64_t now_ms, struct tl_line_view *state,
                  bool *known)
{
    struct tl_ticket ticket = subscriber->ticket;
    const enum tl_worth worth = tl_queue_worth(subscriber->queue, &ticket, now_ms, state);
    *known = worth != TL_WORTH_ASK_STORE;
    if (worth == TL_WORTH_PENDING) {
        *known = subscriber->over;
        *state = (struct tl_line_view){.status = subscriber->over ? TL_LINE_ENDED : TL_LINE_UNKNOWN,
                                       .reason = (enum tl_reason)subscriber->reason};
        return true;
    }
    if (ticket.outdated) {
        if (!tl_subscriber_table_set_place(&subscriber->worker->subscribers.table, subscriber,
                                           ticket.generation, ticket.place))
            return false; /* tried again at the next turn */
        subscriber->give_ticket = true;
        subscriber->told = false;
        subscriber->asked_ms = 0;
    }
    switch (worth) {
    case TL_WORTH_MOVED:
        say(subscriber, "moved", now_ms);
        subscriber->give_ticket = false;
        answer(subscriber);
        return false;
    case TL_WORTH_AHEAD: /* the store's clock was set back */
    case TL_WORTH_MAY_RETURN:
    case TL_WORTH_VOID:
        if (subscriber->stream != NULL && tl_queue_may_return(subscriber->queue, &ticket))
            ask_back(subscriber, now_ms);
        else /* the client asks again and is told so */
            answer(subscriber);
        return false;
    default:
        return true;
    }
}

/* The store's answer about the place of an event stream, which asks again if need be. */
static tl_step found;

/* Asks for the number of a pending place, or asks the store about a place the line does not know.
 */
static void ask(struct tl_subscriber *subscriber, int64_t now_ms)
{
    struct tl_worker *worker = subscriber->worker;
    const struct tl_ticket *ticket = &subscriber->ticket;
    if (now_ms < subscriber->ask_after_ms ||
        (subscriber->asked_ms != 0 && now_ms - subscriber->asked_ms < ASK_AGAIN_MS))
        return;
    subscriber->asked_ms = now_ms;
    struct tl_visit asks = tl_visit_of(worker, subscriber->queue, ticket, now_ms);
    if (tl_place_seq(ticket->place) == 0 && !subscriber->spent) {
        if (tl_rejoin_may(&asks) && tl_visit_may_send(&asks))
            (void)tl_rejoin(subscriber->queue, ticket);
        return;
    }
    struct tl_visit *visit = malloc(sizeof(*visit));
    if (visit == NULL)
        return;
    *visit = asks;
    if (!tl_wait_lookup(visit, found))
        free(visit);
}

/* Tells the subscriber what it does not know yet of this state. Frees it if it is done. */
static void update(struct tl_subscriber *subscriber, const struct tl_line_view *state, bool known,
                   int64_t now_ms)
{
    if (!known && subscriber->stream != NULL) {
        ask(subscriber, now_ms);
        if (tl_place_seq(subscriber->ticket.place) != 0 || subscriber->told)
            return; /* nothing to say yet */
    }
    if (tl_telling_due(subscriber, state, now_ms))
        tell(subscriber, state, now_ms);
}

static void look(struct tl_subscriber *subscriber, int64_t now_ms)
{
    struct tl_line_view state;
    bool known;
    if (judge(subscriber, now_ms, &state, &known))
        update(subscriber, &state, known, now_ms);
}

/* ---- from events and answers ---- */

void tl_subscribers_look(struct tl_worker *worker, const struct tl_queue *queue, tl_place place,
                         int64_t now_ms)
{
    struct tl_subscriber *next =
        tl_subscriber_table_first(&worker->subscribers.table, queue, "", place);
    while (next != NULL) {
        struct tl_subscriber *subscriber = next;
        next = next->chain;
        look(subscriber, now_ms);
    }
}

void tl_subscribers_entry(struct tl_worker *worker, const struct tl_queue *queue,
                          const struct tl_event_entry *entry, int64_t now_ms)
{
    bool moved = false;
    for (size_t i = 0; worker->subscribers.table.n > 0 && i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        if ((event->kind == TL_EVENT_RENEWED || event->kind == TL_EVENT_HANDED) &&
            event->places.n > 0) /* a turn has come, or another device */
            tl_subscribers_look(worker, queue, event->places.runs[0].first, now_ms);
        if (event->kind != TL_EVENT_ADMITTED && event->kind != TL_EVENT_REMOVED &&
            event->kind != TL_EVENT_FREED)
            continue;
        moved = true;
        for (size_t r = 0; r < event->places.n; r++)
            for (uint64_t k = 0; k < event->places.runs[r].count; k++)
                tl_subscribers_look(worker, queue, event->places.runs[r].first + k, now_ms);
    }
    if (!moved || worker->subscribers.table.n == 0)
        return;
    tl_place front[TL_TELLING_FRONT];
    size_t n = tl_line_first(queue->line, front, TL_TELLING_FRONT);
    for (size_t i = 0; i < n; i++)
        tl_subscribers_look(worker, queue, front[i], now_ms);
}

/* The pending place has this number. */
static void number(struct tl_subscriber *subscriber, tl_place place, int64_t now_ms)
{
    if (!tl_subscriber_table_set_place(&subscriber->worker->subscribers.table, subscriber,
                                       subscriber->queue->line->generation, place))
        return;
    subscriber->give_ticket = true;
    subscriber->told = false;
    subscriber->asked_ms = subscriber->ask_after_ms = 0;
    look(subscriber, now_ms);
}

/* The line is full: the join of this stream was refused. It asks again after wait_ms. */
static void wait_for_room(struct tl_subscriber *subscriber, int64_t wait_ms, int64_t now_ms)
{
    char data[48];
    if (now_ms < subscriber->ask_after_ms)
        return;
    subscriber->ask_after_ms = now_ms + wait_ms;
    snprintf(data, sizeof(data), "{\"poll_after_ms\":%lld}", (long long)wait_ms);
    if (!tl_telling_event(subscriber, "full", data, strlen(data), now_ms))
        drop(subscriber);
}

void tl_subscribers_joined(struct tl_worker *worker, const struct tl_queue *queue,
                           const struct tl_pending_command *join,
                           const struct tl_pending_result *result, int64_t now_ms)
{
    const int64_t wait_ms = INT64_C(1000) * tl_problem_retry_after_s(TL_REFUSAL_FULL);
    uint32_t issued;
    const bool spent = result->outcome == TL_OUTCOME_SPENT && tl_rejoin_issued(join, &issued);
    struct tl_subscriber *next =
        tl_subscriber_table_first(&worker->subscribers.table, queue, join->visitor, 0);
    while (next != NULL) {
        struct tl_subscriber *subscriber = next;
        next = next->chain;
        if (tl_place_seq(result->place) != 0) {
            number(subscriber, result->place, now_ms);
        } else if (result->outcome == TL_OUTCOME_FULL) {
            wait_for_room(subscriber, wait_ms, now_ms);
        } else if (spent && subscriber->ticket.issued == issued && !subscriber->spent) {
            subscriber->spent = true; /* asks whether the place has ended */
            subscriber->asked_ms = 0;
            ask(subscriber, now_ms);
        }
    }
}

/* The place of the pending ticket of this visit has ended. */
static void end_pending(const struct tl_visit *visit, int64_t now_ms)
{
    struct tl_subscriber *next = tl_subscriber_table_first(&visit->worker->subscribers.table,
                                                           visit->queue, visit->ticket.visitor, 0);
    while (next != NULL) {
        struct tl_subscriber *subscriber = next;
        next = next->chain;
        if (subscriber->ticket.issued != visit->ticket.issued)
            continue;
        subscriber->over = true;
        subscriber->reason = visit->wait.ended;
        look(subscriber, now_ms);
    }
}

static bool found(struct tl_visit *visit)
{
    const int64_t now_ms = tl_clock_ms();
    if (tl_place_seq(visit->ticket.place) != 0)
        tl_subscribers_look(visit->worker, visit->queue, visit->ticket.place, now_ms);
    else if (visit->wait.known)
        end_pending(visit, now_ms);
    free(visit);
    return true;
}

/* ---- another generation ---- */

void tl_subscribers_recreated(struct tl_worker *worker, const struct tl_queue *queue,
                              int64_t now_ms)
{
    uint64_t generation = queue->line->generation;
    for (size_t n = worker->subscribers.table.n; n > 0; n--) {
        struct tl_subscriber *subscriber = tl_subscriber_table_next(&worker->subscribers.table);
        struct tl_line_view state;
        bool known;
        if (subscriber->queue != queue || tl_place_seq(subscriber->ticket.place) == 0 ||
            subscriber->ticket.generation == generation)
            continue;
        if (subscriber->visit != NULL) { /* the client asks again and is told so */
            answer(subscriber);
        } else { /* ends the stream, unless the place may come back */
            subscriber->asked_ms = 0;
            (void)judge(subscriber, now_ms, &state, &known);
        }
    }
}

/* ---- in turn ---- */

/* While draining: answers the request, or ends the stream with a random delay before the client
 * reconnects. */
static void dismiss(struct tl_subscriber *subscriber, int64_t now_ms)
{
    bool known;
    if (subscriber->visit != NULL) {
        struct tl_line_view state =
            tl_queue_look(subscriber->queue, subscriber->ticket.place, &known);
        tell(subscriber, &state, now_ms);
        return;
    }
    (void)tl_telling_retry(subscriber, DISMISSED_MIN_MS, RETRY_SPREAD_MS); /* it ends anyway */
    drop(subscriber);
}

/* Was the client's address blocked since its last turn? */
static bool is_blocked(struct tl_subscriber *subscriber, int64_t now_ms)
{
    const struct tl_queues *queues = &subscriber->worker->queues;
    if (subscriber->blocks == queues->blocks_version)
        return false;
    subscriber->blocks = queues->blocks_version;
    return subscriber->has_address &&
           tl_blocks_find(queues->blocks, &subscriber->address, subscriber->queue->name,
                          tl_queue_env_store_ms(queues->env, now_ms)) != NULL;
}

/* One turn of a subscriber. Frees it if it is done. */
static void serve(struct tl_subscriber *subscriber, int64_t now_ms)
{
    if (subscriber->worker->subscribers.drain_until_ms != 0) {
        dismiss(subscriber, now_ms);
        return;
    }
    if (is_blocked(subscriber, now_ms)) {
        say(subscriber, "blocked", now_ms);
        if (subscriber->visit != NULL)
            tl_metrics_add(subscriber->worker->env->metrics, TL_WORKER_BLOCKED, 1);
        refuse(subscriber, TL_REFUSAL_BLOCKED); /* likewise when it asks again */
        return;
    }
    if (subscriber->stream != NULL && !tl_telling_maintain(subscriber, now_ms)) {
        drop(subscriber);
        return;
    }
    struct tl_line_view state;
    bool known;
    if (!judge(subscriber, now_ms, &state, &known))
        return;
    /* An open subscription marks its visitor as present. It also claims the session, in case the
     * store refused the claim sent at admission, but it does not extend one. */
    if (known)
        tl_queue_touch(subscriber->queue, subscriber->ticket.visitor, subscriber->ticket.place,
                       &state, now_ms);
    if (subscriber->visit != NULL && now_ms >= subscriber->deadline_ms)
        tell(subscriber, &state, now_ms);
    else
        update(subscriber, &state, known, now_ms);
}

void tl_subscribers_sweep(struct tl_worker *worker, int64_t now_ms)
{
    struct tl_subscribers *self = &worker->subscribers;
    int64_t passed = now_ms - self->swept_ms;
    self->swept_ms = now_ms;
    if (self->table.n == 0)
        return;
    if (passed > ROUND_MS || passed < 1)
        passed = ROUND_MS;
    int64_t round = ROUND_MS;
    if (self->drain_until_ms > now_ms)
        round = self->drain_until_ms - now_ms;
    self->owed += self->table.n * (uint64_t)passed;
    size_t share = (size_t)(self->owed / (uint64_t)round);
    self->owed %= (uint64_t)round;
    if (share == 0 && self->drain_until_ms == 0)
        share = 1; /* serve few subscribers sooner, but do not dismiss it early */
    struct tl_subscriber *subscriber;
    for (; share > 0 && (subscriber = tl_subscriber_table_next(&self->table)) != NULL; share--)
        serve(subscriber, now_ms);
}

void tl_subscribers_drain(struct tl_worker *worker, int64_t now_ms, int64_t until_ms)
{
    worker->subscribers.drain_until_ms = until_ms > now_ms ? until_ms : now_ms + 1;
}

/* ---- new subscribers ---- */

/* Has the ticket of a visit as many subscriptions as it may? *oldest is the last stream among them,
 * or NULL. */
static bool has_all(const struct tl_visit *visit, struct tl_subscriber **oldest)
{
    const uint64_t most = visit->worker->config->http.streams_per_ticket; /* 0: no limit */
    const struct tl_ticket *ticket = &visit->ticket;
    uint64_t n = 0;
    *oldest = NULL;
    for (struct tl_subscriber *subscriber = tl_subscriber_table_first(
             &visit->worker->subscribers.table, visit->queue, ticket->visitor, ticket->place);
         subscriber != NULL && n < most; subscriber = subscriber->chain) {
        if (strcmp(subscriber->ticket.visitor, ticket->visitor) != 0)
            continue; /* of a former generation */
        n++;
        if (subscriber->stream != NULL)
            *oldest = subscriber;
    }
    return most > 0 && n >= most;
}

bool tl_subscribers_stream(struct tl_visit *visit, const char *language)
{
    const int64_t now_ms = visit->now_ms;
    const struct tl_worker *worker = visit->worker;
    struct tl_metrics *metrics = worker->env->metrics;
    char head[TL_STREAM_HEAD_MAX];
    size_t length = tl_stream_head(visit->request, RETRY_MIN_MS, RETRY_SPREAD_MS, head);
    struct tl_subscriber *oldest;
    if (has_all(visit, &oldest) && oldest != NULL) {
        /* Its reader is told, so that the two do not replace each other in turns. */
        if (tl_telling_retry(oldest, REPLACED_MS, REPLACED_MS))
            say(oldest, "replaced", now_ms);
        tl_metrics_add(metrics, TL_WORKER_STREAMS_REPLACED, 1);
        drop(oldest);
    }
    struct tl_subscriber *subscriber = add(visit, true);
    if (subscriber == NULL)
        return false;
    subscriber->wrote_ms = subscriber->ticket_ms = now_ms;
    subscriber->language = language;
    subscriber->give_ticket = visit->ticket.outdated;
    int fd = tl_request_take_over(visit->request); /* and the visit with it */
    if (fd >= 0)
        subscriber->stream = tl_stream_open(worker->loop, fd, on_broken, subscriber);
    if (subscriber->stream != NULL) {
        tl_metrics_add(metrics, TL_WORKER_EVENT_STREAMS, 1);
        tl_metrics_add(metrics, TL_WORKER_STREAMS_OPENED, 1);
    }
    if (subscriber->stream == NULL || !tl_stream_send(subscriber->stream, head, length))
        drop(subscriber); /* the connection is gone: nothing to answer */
    else
        look(subscriber, now_ms);
    return true;
}

bool tl_subscribers_wait(struct tl_visit *visit, int64_t deadline_ms, bool until_admitted)
{
    struct tl_subscriber *oldest;
    bool known;
    struct tl_subscriber *subscriber =
        !until_admitted && has_all(visit, &oldest) ? NULL : add(visit, !until_admitted);
    if (subscriber == NULL)
        return false;
    struct tl_line_view state = tl_queue_look(visit->queue, visit->ticket.place, &known);
    tl_queue_touch(visit->queue, subscriber->ticket.visitor, subscriber->ticket.place, &state,
                   visit->now_ms);
    tl_telling_note(subscriber, &state, visit->now_ms);
    subscriber->until_admitted = until_admitted;
    subscriber->give_ticket = until_admitted || visit->ticket.outdated;
    subscriber->visit = visit;
    subscriber->ticket_ms = visit->now_ms;
    subscriber->deadline_ms = deadline_ms;
    tl_request_hold(visit->request);
    return true;
}
