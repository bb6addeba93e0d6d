/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/http/sse.h"
#include "worker/http/stream.h"
#include "worker/queue/queue.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/subscriber_table.h"
#include "worker/visit/view.h"

enum {
    STEP_MS = 100,        /* the first in the line are told of steps at most once in this time */
    HEARTBEAT_MS = 15000, /* proxies drop connections that are silent for longer */
    REFRESH_MS = 30000,   /* an unchanged position is sent again: its estimate has changed */
    TICKET_MS = 300000,   /* a stream gets a new ticket: it tells the front of the line */
    STUCK_MS = 30000,     /* a reader that takes nothing for this long is dropped */
    EVENT_MAX = TL_VIEW_MAX + 64,
};

/* The minimum time between two messages about a changed position. */
static int64_t pause_ms(uint64_t ahead)
{
    if (ahead < TL_TELLING_FRONT)
        return STEP_MS;
    if (ahead < 100)
        return 500;
    if (ahead < 1000)
        return 1000;
    return ahead < 10000 ? 2000 : 4000;
}

bool tl_telling_due(const struct tl_subscriber *subscriber, const struct tl_line_view *state,
                    int64_t now_ms)
{
    if (!subscriber->told || state->status != subscriber->status)
        return true;
    if (state->status != TL_LINE_WAITING || subscriber->until_admitted)
        return false;
    if (subscriber->stream != NULL &&
        tl_queue_weather(subscriber->queue, now_ms)->told != subscriber->told_weather)
        return true;
    if (state->ahead != subscriber->ahead && (subscriber->told_weather & TL_TOLD_DRAWING) == 0)
        return now_ms - subscriber->moved_ms >= pause_ms(state->ahead);
    return now_ms - subscriber->told_ms >= REFRESH_MS && subscriber->stream != NULL;
}

bool tl_telling_gives_ticket(const struct tl_subscriber *subscriber,
                             const struct tl_line_view *state, int64_t now_ms)
{
    return subscriber->give_ticket ||
           (state->status == TL_LINE_WAITING && now_ms - subscriber->ticket_ms >= TICKET_MS);
}

void tl_telling_note(struct tl_subscriber *subscriber, const struct tl_line_view *state,
                     int64_t now_ms)
{
    if (subscriber->told && state->ahead != subscriber->ahead)
        subscriber->moved_ms = now_ms;
    subscriber->told = true;
    subscriber->told_ms = now_ms;
    subscriber->told_weather = tl_queue_weather(subscriber->queue, now_ms)->told;
    subscriber->status = state->status;
    subscriber->ahead = state->ahead;
}

/* ---- streams ---- */

bool tl_telling_event(struct tl_subscriber *subscriber, const char *event, const char *data,
                      size_t length, int64_t now_ms)
{
    char text[EVENT_MAX];
    if (!tl_stream_ready(subscriber->stream))
        return true;
    size_t n = tl_sse_event(text, sizeof(text), event, data, length);
    if (n == 0)
        return false;
    subscriber->wrote_ms = now_ms;
    tl_metrics_add(subscriber->worker->env->metrics, TL_WORKER_PUSHED, 1);
    return tl_stream_send(subscriber->stream, text, n);
}

bool tl_telling_view(struct tl_subscriber *subscriber, const struct tl_line_view *state,
                     int64_t now_ms)
{
    char text[TL_VIEW_MAX];
    if (!tl_stream_ready(subscriber->stream))
        return true;
    const struct tl_ticket *ticket = &subscriber->ticket;
    struct tl_visit visit = tl_visit_of(subscriber->worker, subscriber->queue, ticket, now_ms);
    visit.state = *state;
    visit.gives_ticket = tl_telling_gives_ticket(subscriber, state, now_ms);
    tl_queue_touch(subscriber->queue, ticket->visitor, ticket->place, state, now_ms);
    const size_t length = tl_answer_write_view(&visit, subscriber->language, text);
    tl_telling_note(subscriber, state, now_ms);
    subscriber->give_ticket = false;
    if (visit.gives_ticket)
        subscriber->ticket_ms = now_ms;
    const char *event = tl_view_event_name(ticket->place, state->status);
    return tl_telling_event(subscriber, event, text, length, now_ms);
}

bool tl_telling_retry(struct tl_subscriber *subscriber, unsigned min_ms, unsigned spread_ms)
{
    char text[48];
    size_t length = tl_sse_retry(text, sizeof(text), min_ms, spread_ms);
    return !tl_stream_ready(subscriber->stream) || tl_stream_send(subscriber->stream, text, length);
}

bool tl_telling_maintain(struct tl_subscriber *subscriber, int64_t now_ms)
{
    const struct tl_notice *notice = &subscriber->queue->notice;
    if (!tl_stream_ready(subscriber->stream))
        return now_ms - subscriber->wrote_ms < STUCK_MS;
    if (subscriber->notice != notice->version) { /* a new stream is at version 0 */
        subscriber->notice = notice->version;
        const char *json = tl_notice_json(notice, subscriber->language);
        return tl_telling_event(subscriber, "notice", json, strlen(json), now_ms);
    }
    if (now_ms - subscriber->wrote_ms < HEARTBEAT_MS)
        return true;
    subscriber->wrote_ms = now_ms;
    return tl_stream_send(subscriber->stream, ":\n\n", 3);
}
