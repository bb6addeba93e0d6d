/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A browser's EventSource gives up for good on any answer that is not text/event-stream. So every
 * valid ticket gets one, at once: also while its place has no number yet, or is not known here (the
 * subscribers ask for it), and when no stream can be kept: then a short one, which tells the place
 * and asks to come back.
 */
#include <string.h>

#include "common/base/clock.h"
#include "worker/api/answer.h"
#include "worker/api/block.h"
#include "worker/api/events.h"
#include "worker/api/navigation.h"
#include "worker/api/visitor.h"
#include "worker/http/sse.h"
#include "worker/queue/tickets.h"
#include "worker/report/worker_metrics.h"

enum { RETRY_MIN_MS = 2000, RETRY_SPREAD_MS = 3000, SHORT_MAX = TL_VIEW_MAX + 128 };

/* A stream that ends at once. queue NULL: its line is not loaded. */
static void answer_short(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                         const struct tl_ticket *ticket)
{
    char text[SHORT_MAX];
    char view[TL_VIEW_MAX];
    int64_t now_ms = tl_clock_ms();
    bool known = false;
    size_t length = tl_sse_retry(text, sizeof(text), RETRY_MIN_MS, RETRY_SPREAD_MS);
    if (queue != NULL && tl_queue_moved(queue, ticket)) {
        length += tl_sse_event(text + length, sizeof(text) - length, "moved", "{}", 2);
    } else if (queue != NULL && tl_place_seq(ticket->place) != 0) {
        struct tl_line_view state = tl_queue_look(queue, ticket->place, &known);
        if (known) {
            tl_queue_touch(queue, ticket->visitor, ticket->place, &state, now_ms);
            size_t n = tl_answer_write_view(
                api, queue, ticket, ticket->outdated, &state,
                tl_catalogue_code(tl_language_of(api->languages, request)), now_ms, view);
            length += tl_sse_event(text + length, sizeof(text) - length,
                                   tl_telling_event_name(ticket->place, state.status), view, n);
        }
    }
    struct tl_answer answer = {
        .status = 200, .type = "text/event-stream", .body = text, .length = length};
    tl_answer_header(&answer, "Connection", "close");
    tl_answer_header(&answer, "X-Accel-Buffering", "no");
    tl_answer_header(&answer, "X-Content-Type-Options", "nosniff");
    tl_request_answer(request, &answer);
}

/* The client wanted a stream. A worker that drains sends everyone to another one, which is no
 * failure. */
static void count_failed(const struct tl_api *api, const struct tl_request *request)
{
    if (strcmp(tl_request_method(request), "GET") == 0 && !api->env->draining)
        tl_metrics_add(api->env->metrics, TL_WORKER_STREAMS_FAILED, 1);
}

bool tl_handle_events(void *context, struct tl_request *request, const char *name,
                      struct tl_refusal *refusal)
{
    struct tl_api *api = context;
    struct tl_ticket ticket;
    if (!tl_block_passes(api, request, name, refusal))
        return false;
    struct tl_queue *queue = tl_visitor_of(api, request, name, &ticket, refusal);
    if (queue == NULL) {
        bool may_come = refusal->kind == TL_REFUSAL_LOADING || refusal->kind == TL_REFUSAL_STOPPING;
        if (!may_come || !tl_visitor_ticket(api, request, name, &ticket))
            return false;
        count_failed(api, request);
        answer_short(api, NULL, request, &ticket);
        return true;
    }
    struct tl_address address;
    const struct tl_address *client;
    if (strcmp(tl_request_method(request), "GET") != 0 || api->env->draining ||
        !tl_visitor_may_stay(api, request, &address, &client) ||
        !tl_subscribers_stream(queue->subscribers, request, &ticket, client,
                               tl_catalogue_code(tl_language_of(api->languages, request)),
                               tl_clock_ms())) {
        count_failed(api, request);
        answer_short(api, queue, request, &ticket);
    }
    return true;
}
