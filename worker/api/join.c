#include <string.h>
#include <strings.h>

#include "common/auth/invite.h"
#include "common/base/clock.h"
#include "worker/api/answer.h"
#include "worker/api/join_body.h"
#include "worker/api/routes.h"
#include "worker/http/problem.h"
#include "worker/queue/hold.h"
#include "worker/report/worker_metrics.h"

static bool is_json(const struct tl_request *request)
{
    const char *type = tl_request_header(request, "Content-Type");
    const char json[] = "application/json";
    if (type == NULL || strncasecmp(type, json, sizeof(json) - 1) != 0)
        return false;
    return strchr("; \t", type[sizeof(json) - 1]) != NULL; /* the terminating zero counts, too */
}

/* The visitor's address: the other end of the connection, or, while that is a trusted proxy, whom
 * it names as the last one before itself (X-Forwarded-For, from the right). */
static bool visitor_address(const struct tl_edge *edge, const struct tl_request *request,
                            struct tl_address *address)
{
    const char *header = tl_request_header(request, "X-Forwarded-For");
    char list[512];
    if (!tl_request_peer(request, address))
        return false;
    if (header == NULL || strlen(header) >= sizeof(list))
        return true;
    memcpy(list, header, strlen(header) + 1);
    while (tl_networks_contain(edge->proxies, address)) {
        char *comma = strrchr(list, ',');
        const char *last = comma != NULL ? comma + 1 : list;
        struct tl_address named;
        if (!tl_address_parse(last + strspn(last, " "), &named))
            break;
        *address = named;
        if (comma == NULL)
            break;
        *comma = '\0';
    }
    return true;
}

bool tl_join_allowed(struct tl_edge *edge, struct tl_request *request)
{
    struct tl_address address;
    if (!visitor_address(edge, request, &address))
        return true;
    address = tl_address_site(&address);
    if (tl_limiter_allow(edge->limiter, &address, tl_clock_ms()))
        return true;
    tl_problem_answer(request, TL_PROBLEM_TOO_MANY, "At most %llu a minute; please wait a little",
                      (unsigned long long)edge->config->http.joins_per_minute);
    return false;
}

/* Reads the body, or answers. */
static bool read_body(struct tl_request *request, struct tl_join_body *body)
{
    struct tl_error err = {0};
    size_t length;
    const char *text = tl_request_body(request, &length);
    if (length > 0 && !is_json(request)) {
        tl_problem_answer(request, TL_PROBLEM_NOT_JSON, "%s", "");
        return false;
    }
    if (!tl_join_body_parse(text, length, body, &err)) {
        tl_problem_answer(request, TL_PROBLEM_BAD_BODY, "%s", err.text);
        return false;
    }
    return true;
}

/* The number of a lane's name; "" is the default lane. Or answers. */
static bool find_lane(const struct tl_room *room, struct tl_request *request, const char *name,
                      unsigned *lane)
{
    *lane = room->settings.default_lane;
    if (name[0] == '\0')
        return true;
    for (unsigned i = 0; i < room->settings.n_lanes; i++) {
        if (strcmp(room->settings.lanes[i], name) == 0) {
            *lane = i;
            return true;
        }
    }
    tl_problem_answer(request, TL_PROBLEM_BAD_BODY, "\"lane\" must name one of the queue's lanes");
    return false;
}

/* Does this ticket's visitor stand in the line now? */
static bool stands(const struct tl_room *room, const struct tl_ticket *ticket)
{
    if (ticket->generation != tl_line_generation(room->line) || tl_place_seq(ticket->place) == 0)
        return false;
    enum tl_line_status status = tl_line_look(room->line, ticket->place).status;
    return status == TL_LINE_WAITING || status == TL_LINE_ACTIVE;
}

void tl_join_visitor(struct tl_room *room, struct tl_request *request, const char *visitor,
                     unsigned lane)
{
    struct tl_pending_command *pending = NULL;
    if (!tl_visitor_may_send(room->edge, request)) {
        tl_metrics_add(room->edge->metrics, TL_WORKER_JOINS_REFUSED, 1);
        return;
    }
    pending = tl_outbox_join(room->outbox, visitor, lane);
    if (pending == NULL || !tl_hold_for_call(room, request, pending, NULL)) {
        tl_metrics_add(room->edge->metrics, TL_WORKER_JOINS_REFUSED, 1);
        tl_problem_answer(request, TL_PROBLEM_BUSY, "There is no memory for this join; try again");
    }
}

/* Who may join by invitation, says the site's back end. */
void tl_join_by_invite(struct tl_room *room, struct tl_request *request, const char *text)
{
    struct tl_edge *edge = room->edge;
    struct tl_invite invite;
    struct tl_error err = {0};
    unsigned lane;
    if (!tl_invite_verify(edge->secrets.invite_keys, room->name, text, strlen(text),
                          tl_edge_now_ms(edge) / 1000, &invite, &err)) {
        tl_problem_answer(request, TL_PROBLEM_BAD_INVITE, "%s", err.text);
        return;
    }
    if (!find_lane(room, request, invite.lane, &lane) || !tl_visitor_may_send(edge, request))
        return;
    struct tl_pending_command *pending = tl_outbox_join_invited(
        room->outbox, invite.visitor, lane, invite.id, (uint64_t)invite.kept_until * 1000);
    if (pending == NULL || !tl_hold_for_call(room, request, pending, NULL))
        tl_problem_answer(request, TL_PROBLEM_BUSY, "There is no memory for this join; try again");
}

/* A visitor who comes with a ticket: the place still held, or a new one in the same lane. */
static void join_again(struct tl_room *room, struct tl_request *request,
                       const struct tl_ticket *ticket)
{
    bool pending = tl_place_seq(ticket->place) == 0;
    unsigned lane = tl_place_lane(ticket->place);
    if (stands(room, ticket))
        tl_answer_view(room, request, ticket, true);
    else if (room->settings.join == TL_JOIN_INVITED && !pending)
        tl_problem_answer(request, TL_PROBLEM_BY_INVITATION, "%s", "");
    else
        tl_join_visitor(room, request, ticket->visitor,
                        lane < room->settings.n_lanes ? lane : room->settings.default_lane);
}

void tl_handle_join(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    struct tl_room *room = tl_visitor_room(edge, request, queue);
    struct tl_join_body body;
    struct tl_ticket ticket;
    unsigned lane;
    if (room == NULL || !read_body(request, &body))
        return;
    const char *bearer = tl_visitor_bearer(request);
    bool trusted = bearer != NULL && tl_api_keys_find(edge->secrets.api_keys, bearer) != NULL;
    if (!trusted && (body.visitor[0] != '\0' || body.lane[0] != '\0')) {
        tl_problem_answer(request, TL_PROBLEM_NOT_TRUSTED,
                          "\"visitor\" and \"lane\" are taken only with an API key");
        return;
    }
    if (body.invite[0] != '\0') {
        tl_join_by_invite(room, request, body.invite);
        return;
    }
    if (body.visitor[0] == '\0' && body.lane[0] == '\0' &&
        tl_visitor_ticket(room, request, &ticket)) {
        join_again(room, request, &ticket);
        return;
    }
    if (!trusted && room->settings.join == TL_JOIN_INVITED) {
        tl_problem_answer(request, TL_PROBLEM_BY_INVITATION, "%s", "");
        return;
    }
    if (!find_lane(room, request, body.lane, &lane))
        return;
    if (!trusted && !tl_join_allowed(edge, request))
        return;
    if (body.visitor[0] == '\0')
        tl_visitor_random(body.visitor);
    tl_join_visitor(room, request, body.visitor, lane);
}
