#include <string.h>
#include <strings.h>

#include "common/auth/invite.h"
#include "common/base/clock.h"
#include "worker/api/answer.h"
#include "worker/api/join.h"
#include "worker/api/join_body.h"
#include "worker/api/visitor.h"
#include "worker/report/worker_metrics.h"

/* ---- joining ---- */

/* Holds the request for its join; pending NULL: there was no memory for that. */
static bool hold(struct tl_api *api, struct tl_local_queue *queue, struct tl_request *request,
                 struct tl_pending_command *pending, struct tl_refusal *refusal)
{
    if (pending != NULL &&
        tl_holds_command(api->holds, queue, request, pending, NULL, tl_clock_us()))
        return true;
    tl_metrics_add(api->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
    return tl_refuse(refusal, TL_REFUSAL_BUSY, "There is no memory for this join; try again");
}

bool tl_join_visitor(struct tl_api *api, struct tl_local_queue *queue, struct tl_request *request,
                     const char *visitor, unsigned lane, struct tl_refusal *refusal)
{
    if (!tl_visitor_may_send(api, refusal)) {
        tl_metrics_add(api->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
        return false;
    }
    return hold(api, queue, request, tl_outbox_join(tl_local_queue_outbox(queue), visitor, lane),
                refusal);
}

/* The lane of an earlier place, or the default lane if the queue has no such lane any more. */
static unsigned lane_of(const struct tl_local_queue *queue, tl_place place)
{
    const struct tl_queue_settings *settings = tl_local_queue_settings(queue);
    unsigned lane = tl_place_lane(place);
    return lane < settings->n_lanes ? lane : settings->default_lane;
}

bool tl_join_by_ticket(struct tl_api *api, struct tl_local_queue *queue, struct tl_request *request,
                       const struct tl_ticket *ticket, struct tl_refusal *refusal)
{
    return tl_join_visitor(api, queue, request, ticket->visitor, lane_of(queue, ticket->place),
                           refusal);
}

void tl_join_ask_number(void *context, struct tl_local_queue *queue, const struct tl_ticket *ticket)
{
    const struct tl_api *api = context;
    struct tl_refusal refusal;
    if (tl_visitor_may_send(api, &refusal)) /* else the stream asks again */
        (void)tl_outbox_join(tl_local_queue_outbox(queue), ticket->visitor,
                             lane_of(queue, ticket->place));
}

/* The number of a lane's name; "" is the default lane. */
static bool find_lane(const struct tl_local_queue *queue, const char *name, unsigned *lane,
                      struct tl_refusal *refusal)
{
    const struct tl_queue_settings *settings = tl_local_queue_settings(queue);
    *lane = settings->default_lane;
    if (name[0] == '\0')
        return true;
    for (unsigned i = 0; i < settings->n_lanes; i++) {
        if (strcmp(settings->lanes[i], name) == 0) {
            *lane = i;
            return true;
        }
    }
    return tl_refuse(refusal, TL_REFUSAL_BAD_BODY, "\"lane\" must name one of the queue's lanes");
}

bool tl_join_by_invite(struct tl_api *api, struct tl_local_queue *queue, struct tl_request *request,
                       const char *text, struct tl_refusal *refusal)
{
    struct tl_invite invite;
    struct tl_error err = {0};
    unsigned lane;
    int64_t store_s = tl_queue_env_store_ms(api->env, tl_clock_ms()) / 1000;
    if (!tl_invite_verify(api->secrets.invite_keys, tl_local_queue_name(queue), text, strlen(text),
                          store_s, &invite, &err))
        return tl_refuse(refusal, TL_REFUSAL_BAD_INVITE, "%s", err.text);
    if (!find_lane(queue, invite.lane, &lane, refusal) || !tl_visitor_may_send(api, refusal))
        return false;
    return hold(api, queue, request,
                tl_outbox_join_invited(tl_local_queue_outbox(queue), invite.visitor, lane,
                                       invite.id, (uint64_t)invite.kept_until * 1000),
                refusal);
}

/* ---- POST /v1/queues/{q}/join ---- */

static bool is_json(const struct tl_request *request)
{
    const char *type = tl_request_header(request, "Content-Type");
    const char json[] = "application/json";
    if (type == NULL || strncasecmp(type, json, sizeof(json) - 1) != 0)
        return false;
    return strchr("; \t", type[sizeof(json) - 1]) != NULL; /* or the end of the header */
}

static bool read_body(const struct tl_request *request, struct tl_join_body *body,
                      struct tl_refusal *refusal)
{
    struct tl_error err = {0};
    size_t length;
    const char *text = tl_request_body(request, &length);
    if (length > 0 && !is_json(request))
        tl_refuse(refusal, TL_REFUSAL_NOT_JSON, "%s", "");
    else if (!tl_join_body_parse(text, length, body, &err))
        tl_refuse(refusal, TL_REFUSAL_BAD_BODY, "%s", err.text);
    else
        return true;
    return false;
}

/* A visitor who comes with a ticket: the place still held, or a new one in the same lane. */
static bool join_again(struct tl_api *api, struct tl_local_queue *queue, struct tl_request *request,
                       const struct tl_ticket *ticket, struct tl_refusal *refusal)
{
    bool pending = tl_place_seq(ticket->place) == 0;
    if (!pending && !tl_visitor_outdated(queue, ticket)) {
        bool known;
        enum tl_line_status status = tl_local_queue_look(queue, ticket->place, &known).status;
        if (status == TL_LINE_WAITING || status == TL_LINE_ACTIVE) {
            tl_answer_view(api, queue, request, ticket, true);
            return true;
        }
    }
    if (tl_local_queue_settings(queue)->join == TL_JOIN_INVITED && !pending)
        return tl_refuse(refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    return tl_join_by_ticket(api, queue, request, ticket, refusal);
}

bool tl_handle_join(void *context, struct tl_request *request, const char *name,
                    struct tl_refusal *refusal)
{
    struct tl_api *api = context;
    struct tl_local_queue *queue = tl_visitor_queue(api, name, refusal);
    struct tl_join_body body;
    struct tl_ticket ticket;
    unsigned lane;
    if (queue == NULL || !read_body(request, &body, refusal))
        return false;
    const char *bearer = tl_visitor_bearer(request);
    bool trusted = bearer != NULL && tl_api_keys_find(api->secrets.api_keys, bearer) != NULL;
    bool named = body.visitor[0] != '\0' || body.lane[0] != '\0';
    if (named && !trusted)
        return tl_refuse(refusal, TL_REFUSAL_NOT_TRUSTED,
                         "\"visitor\" and \"lane\" are taken only with an API key");
    if (body.invite[0] != '\0')
        return tl_join_by_invite(api, queue, request, body.invite, refusal);
    if (!named && tl_visitor_ticket(api, request, name, &ticket))
        return join_again(api, queue, request, &ticket, refusal);
    if (!trusted && tl_local_queue_settings(queue)->join == TL_JOIN_INVITED)
        return tl_refuse(refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    if (!find_lane(queue, body.lane, &lane, refusal) ||
        (!trusted && !tl_visitor_may_join(api, request, tl_clock_ms(), refusal)))
        return false;
    if (body.visitor[0] == '\0')
        tl_visitor_random(body.visitor);
    return tl_join_visitor(api, queue, request, body.visitor, lane, refusal);
}
