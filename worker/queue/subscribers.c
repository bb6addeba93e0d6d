/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/http/sse.h"
#include "worker/http/stream.h"
#include "worker/queue/subscriber_table.h"
#include "worker/queue/subscribers.h"
#include "worker/queue/tickets.h"
#include "worker/report/worker_metrics.h"

enum {
    ROUND_MS = 500,          /* each subscriber has one turn in this time */
    ADMISSION_WAIT_MS = 250, /* a running admitter needs a few ms */
    ASK_AGAIN_MS = 1000,     /* between two questions about an unknown place */
    RESTORE_AGAIN_MS = 5000, /* between two questions for a place of a lost generation */
    REPLACED_MS = 60000,     /* before the reader of a replaced stream reconnects, the least */
    RETRY_MIN_MS = 1000,     /* clients wait this long before they reconnect, spread evenly */
    RETRY_SPREAD_MS = 3000,
};

struct tl_subscribers {
    struct tl_subscribers_settings settings;
    struct tl_subscriber_table *table;
    int64_t swept_ms;
    uint64_t owed;          /* turns due, in subscribers * ms; the fraction of a turn is kept */
    int64_t drain_until_ms; /* 0: not draining */
};

struct tl_subscribers *tl_subscribers_new(const struct tl_subscribers_settings *settings)
{
    struct tl_subscribers *subscribers = calloc(1, sizeof(*subscribers));
    if (subscribers == NULL)
        return NULL;
    subscribers->settings = *settings;
    subscribers->table = tl_subscriber_table_new();
    if (subscribers->table == NULL) {
        free(subscribers);
        return NULL;
    }
    return subscribers;
}

size_t tl_subscribers_count(const struct tl_subscribers *subscribers)
{
    return tl_subscriber_table_count(subscribers->table);
}

/* client: NULL: its address is not known, or it is not counted. */
static struct tl_subscriber *add(struct tl_subscribers *self, struct tl_queue *queue,
                                 const struct tl_ticket *ticket, const struct tl_address *client)
{
    struct tl_subscriber *subscriber = tl_subscriber_table_add(self->table, queue, ticket);
    if (subscriber == NULL)
        return NULL;
    subscriber->owner = self;
    subscriber->blocks = self->settings.queues->blocks_version;
    subscriber->has_address = client != NULL;
    if (client != NULL) {
        subscriber->address = *client;
        subscriber->client = tl_clients_enter(self->settings.clients, client);
    }
    tl_metrics_add(self->settings.metrics, TL_WORKER_SUBSCRIBERS, 1);
    return subscriber;
}

/* Removes the subscriber. Its request, if it is one, is the caller's to answer. */
static struct tl_request *drop(struct tl_subscriber *subscriber)
{
    struct tl_subscribers *self = subscriber->owner;
    struct tl_request *request = subscriber->request;
    tl_metrics_add(self->settings.metrics, TL_WORKER_SUBSCRIBERS, -1);
    if (subscriber->stream != NULL)
        tl_metrics_add(self->settings.metrics, TL_WORKER_EVENT_STREAMS, -1);
    tl_stream_close(&subscriber->stream);
    tl_clients_leave(self->settings.clients, subscriber->client);
    tl_subscriber_table_remove(self->table, subscriber);
    return request;
}

/* Removes the subscriber, and answers its request, if it is one. */
static void answer(struct tl_subscriber *subscriber, const struct tl_ticket *ticket,
                   bool give_ticket)
{
    const struct tl_subscribers *self = subscriber->owner;
    struct tl_queue *queue = subscriber->queue;
    struct tl_request *request = drop(subscriber);
    if (request != NULL)
        self->settings.answer(self->settings.context, queue, request, ticket, give_ticket);
}

/* The same with a refusal. */
static void refuse(struct tl_subscriber *subscriber, bool blocked)
{
    const struct tl_subscribers *self = subscriber->owner;
    struct tl_queue *queue = subscriber->queue;
    struct tl_request *request = drop(subscriber);
    if (request != NULL)
        self->settings.refuse(self->settings.context, queue, request, blocked);
}

static void on_broken(void *context)
{
    (void)drop(context);
}

void tl_subscribers_end(struct tl_subscribers *subscribers, const struct tl_queue *queue)
{
    for (size_t n = tl_subscriber_table_count(subscribers->table); n > 0; n--) {
        struct tl_subscriber *subscriber = tl_subscriber_table_next(subscribers->table);
        if (queue == NULL || subscriber->queue == queue)
            refuse(subscriber, false);
    }
}

void tl_subscribers_free(struct tl_subscribers **subscribers)
{
    if (*subscribers == NULL)
        return;
    tl_subscribers_end(*subscribers, NULL);
    tl_subscriber_table_free(&(*subscribers)->table);
    free(*subscribers);
    *subscribers = NULL;
}

/* ---- telling ---- */

/* Sends the view of the place, or answers the request with it. Frees the subscriber if it is done.
 */
static void tell(struct tl_subscriber *subscriber, const struct tl_line_view *state, int64_t now_ms)
{
    const struct tl_subscribers *self = subscriber->owner;
    if (subscriber->request != NULL) {
        const struct tl_ticket ticket = tl_telling_ticket(subscriber);
        answer(subscriber, &ticket, tl_telling_gives_ticket(subscriber, state, now_ms));
    } else if (!tl_telling_view(&self->settings.telling, subscriber, state, now_ms)) {
        (void)drop(subscriber);
    }
}

/* Asks for the number of a pending place, or asks the store about a place the line does not know.
 */
static void ask(struct tl_subscriber *subscriber, int64_t now_ms)
{
    const struct tl_subscribers *self = subscriber->owner;
    const struct tl_subscribers_settings *settings = &self->settings;
    const struct tl_ticket ticket = tl_telling_ticket(subscriber);
    if (now_ms < subscriber->ask_after_ms ||
        (subscriber->asked_ms != 0 && now_ms - subscriber->asked_ms < ASK_AGAIN_MS))
        return;
    subscriber->asked_ms = now_ms;
    if (tl_place_seq(ticket.place) == 0 && !subscriber->spent)
        settings->ask_number(settings->context, subscriber->queue, &ticket);
    else
        settings->ask_place(settings->context, subscriber->queue, &ticket);
}

/* Asks for a lost place, for a stream. A request does so itself when it is handled again. */
static void ask_back(struct tl_subscriber *subscriber, const struct tl_ticket *ticket,
                     int64_t now_ms)
{
    if (subscriber->request != NULL) {
        answer(subscriber, ticket, subscriber->give_ticket);
    } else if (subscriber->asked_ms == 0 || now_ms - subscriber->asked_ms >= RESTORE_AGAIN_MS) {
        subscriber->asked_ms = now_ms;
        (void)tl_queue_restore(subscriber->queue, ticket, 0, 0); /* else it is asked again */
    }
}

/* Tells the reader of a stream that ends why, as far as it takes that. */
static void say(struct tl_subscriber *subscriber, const char *event, int64_t now_ms)
{
    const struct tl_subscribers *self = subscriber->owner;
    if (subscriber->stream != NULL && tl_stream_ready(subscriber->stream))
        (void)tl_telling_event(&self->settings.telling, subscriber, event, "{}", 2, now_ms);
}

/* Judges the subscriber's ticket, and follows its place. *state: of that place; *known is false
 * when only the store can tell it. False if the subscriber is not to be told anything now; then it
 * may be freed: the store was asked for its lost place, or another device has it, or it is void. */
static bool judge(struct tl_subscriber *subscriber, int64_t now_ms, struct tl_line_view *state,
                  bool *known)
{
    const struct tl_subscribers *self = subscriber->owner;
    struct tl_ticket ticket = tl_telling_ticket(subscriber);
    const enum tl_worth worth = tl_queue_worth(subscriber->queue, &ticket, now_ms, state);
    *known = worth != TL_WORTH_ASK_STORE;
    if (worth == TL_WORTH_PENDING) {
        *known = subscriber->over;
        *state = (struct tl_line_view){.status = subscriber->over ? TL_LINE_ENDED : TL_LINE_UNKNOWN,
                                       .reason = (enum tl_reason)subscriber->reason};
        return true;
    }
    if (ticket.outdated) {
        if (!tl_subscriber_table_set_place(self->table, subscriber, ticket.generation,
                                           ticket.place))
            return false; /* tried again at the next turn */
        subscriber->give_ticket = true;
        subscriber->told = false;
        subscriber->asked_ms = 0;
    }
    switch (worth) {
    case TL_WORTH_MOVED:
        say(subscriber, "moved", now_ms);
        answer(subscriber, &ticket, false);
        return false;
    case TL_WORTH_AHEAD: /* the store's clock was set back */
    case TL_WORTH_MAY_RETURN:
    case TL_WORTH_VOID:
        if (tl_queue_may_return(subscriber->queue, &ticket))
            ask_back(subscriber, &ticket, now_ms);
        else
            (void)drop(subscriber); /* the client asks again and is told so */
        return false;
    default:
        return true;
    }
}

/* Tells the subscriber what it does not know yet of this state. Frees it if it is done. */
static void update(struct tl_subscriber *subscriber, const struct tl_line_view *state, bool known,
                   int64_t now_ms)
{
    if (!known && subscriber->stream != NULL) {
        ask(subscriber, now_ms);
        if (tl_place_seq(subscriber->place) != 0 || subscriber->told)
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

void tl_subscribers_look(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                         tl_place place, int64_t now_ms)
{
    struct tl_subscriber *next;
    for (struct tl_subscriber *subscriber =
             tl_subscriber_table_first(subscribers->table, queue, "", place);
         subscriber != NULL; subscriber = next) {
        next = subscriber->chain;
        look(subscriber, now_ms);
    }
}

void tl_subscribers_entry(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                          const struct tl_event_entry *entry, int64_t now_ms)
{
    bool moved = false;
    for (size_t i = 0; tl_subscriber_table_count(subscribers->table) > 0 && i < entry->n_events;
         i++) {
        const struct tl_event *event = &entry->events[i];
        if ((event->kind == TL_EVENT_RENEWED || event->kind == TL_EVENT_HANDED) &&
            event->places.n > 0) /* a turn has come, or another device */
            tl_subscribers_look(subscribers, queue, event->places.runs[0].first, now_ms);
        if (event->kind != TL_EVENT_ADMITTED && event->kind != TL_EVENT_REMOVED &&
            event->kind != TL_EVENT_FREED)
            continue;
        moved = true;
        for (size_t r = 0; r < event->places.n; r++)
            for (uint64_t k = 0; k < event->places.runs[r].count; k++)
                tl_subscribers_look(subscribers, queue, event->places.runs[r].first + k, now_ms);
    }
    if (!moved || tl_subscriber_table_count(subscribers->table) == 0)
        return;
    tl_place front[TL_TELLING_FRONT];
    size_t n = tl_line_first(queue->line, front, TL_TELLING_FRONT);
    for (size_t i = 0; i < n; i++)
        tl_subscribers_look(subscribers, queue, front[i], now_ms);
}

void tl_subscribers_numbered(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                             const char *visitor, tl_place place, int64_t now_ms)
{
    struct tl_subscriber *next;
    for (struct tl_subscriber *subscriber =
             tl_subscriber_table_first(subscribers->table, queue, visitor, 0);
         subscriber != NULL; subscriber = next) {
        next = subscriber->chain;
        if (strcmp(subscriber->visitor, visitor) != 0 ||
            !tl_subscriber_table_set_place(subscribers->table, subscriber,
                                           tl_line_generation(queue->line), place))
            continue;
        subscriber->give_ticket = true;
        subscriber->told = false;
        subscriber->asked_ms = subscriber->ask_after_ms = 0;
        look(subscriber, now_ms);
    }
}

/* The next pending stream with such a ticket, from this subscriber on; NULL: none. */
static struct tl_subscriber *next_pending(struct tl_subscriber *subscriber, const char *visitor,
                                          uint32_t issued)
{
    while (subscriber != NULL &&
           (strcmp(subscriber->visitor, visitor) != 0 || subscriber->issued != issued ||
            subscriber->stream == NULL || tl_place_seq(subscriber->place) != 0))
        subscriber = subscriber->chain;
    return subscriber;
}

void tl_subscribers_spent(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                          const char *visitor, uint32_t issued, int64_t now_ms)
{
    struct tl_subscriber *subscriber =
        tl_subscriber_table_first(subscribers->table, queue, visitor, 0);
    while ((subscriber = next_pending(subscriber, visitor, issued)) != NULL) {
        if (!subscriber->spent) {
            subscriber->spent = true;
            subscriber->asked_ms = 0;
            ask(subscriber, now_ms);
        }
        subscriber = subscriber->chain;
    }
}

void tl_subscribers_over(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                         const struct tl_ticket *ticket, unsigned reason, int64_t now_ms)
{
    struct tl_subscriber *next =
        tl_subscriber_table_first(subscribers->table, queue, ticket->visitor, 0);
    while ((next = next_pending(next, ticket->visitor, ticket->issued)) != NULL) {
        struct tl_subscriber *subscriber = next;
        next = next->chain;
        subscriber->over = true;
        subscriber->reason = reason;
        look(subscriber, now_ms);
    }
}

static bool say_full(struct tl_subscriber *subscriber, int64_t wait_ms, int64_t now_ms)
{
    const struct tl_subscribers *self = subscriber->owner;
    char data[48];
    subscriber->ask_after_ms = now_ms + wait_ms;
    int n = snprintf(data, sizeof(data), "{\"poll_after_ms\":%lld}", (long long)wait_ms);
    return !tl_stream_ready(subscriber->stream) ||
           tl_telling_event(&self->settings.telling, subscriber, "full", data, (size_t)n, now_ms);
}

void tl_subscribers_full(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                         const char *visitor, int64_t wait_ms, int64_t now_ms)
{
    struct tl_subscriber *next;
    for (struct tl_subscriber *subscriber =
             tl_subscriber_table_first(subscribers->table, queue, visitor, 0);
         subscriber != NULL; subscriber = next) {
        next = subscriber->chain;
        if (strcmp(subscriber->visitor, visitor) == 0 && subscriber->stream != NULL &&
            tl_place_seq(subscriber->place) == 0 && now_ms >= subscriber->ask_after_ms &&
            !say_full(subscriber, wait_ms, now_ms))
            (void)drop(subscriber);
    }
}

/* ---- another generation ---- */

/* The place of this subscriber is of a generation that the store has lost. Ends its stream, unless
 * the place may come back, or answers its request: the client asks again and is told so. */
static void hand_over(struct tl_subscriber *subscriber, int64_t now_ms)
{
    if (subscriber->stream != NULL) {
        struct tl_line_view state;
        bool known;
        subscriber->asked_ms = 0;
        (void)judge(subscriber, now_ms, &state, &known);
        return;
    }
    const struct tl_ticket ticket = tl_telling_ticket(subscriber);
    answer(subscriber, &ticket, subscriber->give_ticket);
}

void tl_subscribers_recreated(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                              int64_t now_ms)
{
    uint64_t generation = tl_line_generation(queue->line);
    for (size_t n = tl_subscriber_table_count(subscribers->table); n > 0; n--) {
        struct tl_subscriber *subscriber = tl_subscriber_table_next(subscribers->table);
        if (subscriber->queue == queue && tl_place_seq(subscriber->place) != 0 &&
            subscriber->generation != generation)
            hand_over(subscriber, now_ms);
    }
}

/* ---- in turn ---- */

/* While draining: answers the request, or ends the stream with a random delay before the client
 * reconnects. */
static void dismiss(struct tl_subscriber *subscriber, int64_t now_ms)
{
    bool known;
    char text[48];
    if (subscriber->request != NULL) {
        struct tl_line_view state = tl_queue_look(subscriber->queue, subscriber->place, &known);
        tell(subscriber, &state, now_ms);
        return;
    }
    size_t length = tl_sse_retry(text, sizeof(text), 100, RETRY_SPREAD_MS);
    if (tl_stream_ready(subscriber->stream)) /* best effort: the stream ends anyway */
        (void)tl_stream_send(subscriber->stream, text, length);
    (void)drop(subscriber);
}

/* Was the client's address blocked since its last turn? */
static bool is_blocked(struct tl_subscriber *subscriber, int64_t now_ms)
{
    const struct tl_subscribers *self = subscriber->owner;
    const struct tl_queues *queues = self->settings.queues;
    if (subscriber->blocks == queues->blocks_version)
        return false;
    subscriber->blocks = queues->blocks_version;
    return subscriber->has_address &&
           tl_blocks_find(queues->blocks, &subscriber->address, subscriber->queue->name,
                          tl_queue_env_store_ms(subscriber->queue->env, now_ms)) != NULL;
}

/* One turn of a subscriber. Frees it if it is done. */
static void serve(struct tl_subscriber *subscriber, int64_t now_ms)
{
    struct tl_subscribers *self = subscriber->owner;
    if (self->drain_until_ms != 0) {
        dismiss(subscriber, now_ms);
        return;
    }
    if (is_blocked(subscriber, now_ms)) {
        say(subscriber, "blocked", now_ms);
        refuse(subscriber, true); /* likewise when it asks again */
        return;
    }
    if (subscriber->stream != NULL &&
        !tl_telling_maintain(&self->settings.telling, subscriber, now_ms)) {
        (void)drop(subscriber);
        return;
    }
    struct tl_line_view state;
    bool known;
    if (!judge(subscriber, now_ms, &state, &known))
        return;
    /* An open subscription marks its visitor as present. It also claims the session, in case the
     * store refused the claim sent at admission, but it does not extend one. */
    if (known)
        tl_queue_touch(subscriber->queue, subscriber->visitor, subscriber->place, &state, now_ms);
    if (subscriber->request != NULL && now_ms >= subscriber->deadline_ms)
        tell(subscriber, &state, now_ms);
    else
        update(subscriber, &state, known, now_ms);
}

void tl_subscribers_sweep(struct tl_subscribers *subscribers, int64_t now_ms)
{
    struct tl_subscribers *self = subscribers;
    int64_t passed = now_ms - self->swept_ms;
    self->swept_ms = now_ms;
    if (passed > ROUND_MS || passed < 1)
        passed = ROUND_MS;
    int64_t round = ROUND_MS;
    if (self->drain_until_ms > now_ms)
        round = self->drain_until_ms - now_ms;
    self->owed += tl_subscriber_table_count(self->table) * (uint64_t)passed;
    size_t share = (size_t)(self->owed / (uint64_t)round);
    self->owed %= (uint64_t)round;
    if (share == 0 && self->drain_until_ms == 0)
        share = 1; /* serve few subscribers sooner, but do not dismiss it early */
    struct tl_subscriber *subscriber;
    for (; share > 0 && (subscriber = tl_subscriber_table_next(self->table)) != NULL; share--)
        serve(subscriber, now_ms);
}

void tl_subscribers_drain(struct tl_subscribers *subscribers, int64_t now_ms, int64_t until_ms)
{
    subscribers->drain_until_ms = until_ms > now_ms ? until_ms : now_ms + 1;
}

/* ---- new subscribers ---- */

/* How many subscriptions the ticket has, as far as its limit; *oldest is the last stream among
 * them, or NULL. */
static uint64_t count_of(const struct tl_subscribers *self, const struct tl_queue *queue,
                         const struct tl_ticket *ticket, struct tl_subscriber **oldest)
{
    uint64_t n = 0;
    *oldest = NULL;
    for (struct tl_subscriber *subscriber =
             tl_subscriber_table_first(self->table, queue, ticket->visitor, ticket->place);
         subscriber != NULL && n < self->settings.per_ticket; subscriber = subscriber->chain) {
        if (strcmp(subscriber->visitor, ticket->visitor) != 0)
            continue;
        n++;
        if (subscriber->stream != NULL)
            *oldest = subscriber;
    }
    return n;
}

/* Ends a stream in favour of a newer one of the same ticket, and tells its reader, so that the two
 * do not replace each other in turns. */
static void replace(struct tl_subscriber *subscriber, int64_t now_ms)
{
    const struct tl_subscribers *self = subscriber->owner;
    char text[48];
    size_t length = tl_sse_retry(text, sizeof(text), REPLACED_MS, REPLACED_MS);
    if (tl_stream_ready(subscriber->stream) && tl_stream_send(subscriber->stream, text, length))
        say(subscriber, "replaced", now_ms);
    tl_metrics_add(self->settings.metrics, TL_WORKER_STREAMS_REPLACED, 1);
    (void)drop(subscriber);
}

bool tl_subscribers_stream(struct tl_subscribers *subscribers, struct tl_queue *queue,
                           struct tl_request *request, const struct tl_ticket *ticket,
                           const struct tl_address *client, const char *language, int64_t now_ms)
{
    const struct tl_subscribers_settings *settings = &subscribers->settings;
    char head[TL_STREAM_HEAD_MAX];
    size_t length = tl_stream_head(request, RETRY_MIN_MS, RETRY_SPREAD_MS, head);
    struct tl_subscriber *oldest;
    if (settings->per_ticket > 0 &&
        count_of(subscribers, queue, ticket, &oldest) >= settings->per_ticket && oldest != NULL)
        replace(oldest, now_ms);
    struct tl_subscriber *subscriber = add(subscribers, queue, ticket, client);
    if (subscriber == NULL)
        return false;
    int fd = tl_request_take_over(request);
    subscriber->wrote_ms = subscriber->ticket_ms = now_ms;
    subscriber->language = language;
    subscriber->give_ticket = ticket->outdated;
    if (fd >= 0)
        subscriber->stream = tl_stream_open(settings->loop, fd, on_broken, subscriber);
    if (subscriber->stream != NULL) {
        tl_metrics_add(settings->metrics, TL_WORKER_EVENT_STREAMS, 1);
        tl_metrics_add(settings->metrics, TL_WORKER_STREAMS_OPENED, 1);
    }
    if (subscriber->stream == NULL || !tl_stream_send(subscriber->stream, head, length))
        (void)drop(subscriber); /* the connection is gone: nothing to answer */
    else
        look(subscriber, now_ms);
    return true;
}

/* The subscriber is this request, which waits until its place changes; NULL: out of memory. */
static bool wait_for_change(struct tl_subscriber *subscriber, struct tl_request *request,
                            int64_t now_ms, int64_t deadline_ms)
{
    if (subscriber == NULL)
        return false;
    bool known;
    struct tl_line_view state = tl_queue_look(subscriber->queue, subscriber->place, &known);
    tl_queue_touch(subscriber->queue, subscriber->visitor, subscriber->place, &state, now_ms);
    tl_telling_note(subscriber, &state, now_ms);
    subscriber->request = request;
    subscriber->ticket_ms = now_ms;
    subscriber->deadline_ms = deadline_ms;
    tl_request_hold(request);
    return true;
}

bool tl_subscribers_wait(struct tl_subscribers *subscribers, struct tl_queue *queue,
                         struct tl_request *request, const struct tl_ticket *ticket,
                         const struct tl_address *client, int64_t now_ms, int64_t deadline_ms)
{
    uint64_t most = subscribers->settings.per_ticket;
    struct tl_subscriber *oldest;
    if (most > 0 && count_of(subscribers, queue, ticket, &oldest) >= most)
        return false;
    struct tl_subscriber *subscriber = add(subscribers, queue, ticket, client);
    if (subscriber != NULL)
        subscriber->give_ticket = ticket->outdated;
    return wait_for_change(subscriber, request, now_ms, deadline_ms);
}

bool tl_subscribers_wait_for_admission(struct tl_subscribers *subscribers, struct tl_queue *queue,
                                       struct tl_request *request, const struct tl_ticket *ticket,
                                       int64_t now_ms)
{
    struct tl_subscriber *subscriber = add(subscribers, queue, ticket, NULL);
    if (subscriber != NULL)
        subscriber->until_admitted = subscriber->give_ticket = true;
    return wait_for_change(subscriber, request, now_ms, now_ms + ADMISSION_WAIT_MS);
}
