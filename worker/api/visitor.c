/* What visitors ask with their ticket: status, leave, complete, renew. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "worker/api/answer.h"
#include "worker/api/routes.h"
#include "worker/http/problem.h"
#include "worker/queue/hold.h"
#include "worker/report/worker_metrics.h"

enum { WAIT_MAX_MS = 55000 }; /* proxies commonly give up after a minute */

const char *tl_visitor_bearer(const struct tl_request *request)
{
    const char *header = tl_request_header(request, "Authorization");
    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0)
        return NULL;
    header += 7;
    return header + strspn(header, " ");
}

/* text may be NULL: there is none. */
static bool is_ticket(const struct tl_room *room, const char *text, struct tl_ticket *ticket)
{
    return text != NULL &&
           tl_ticket_verify(room->edge->secrets.keyring, room->name, text, strlen(text), ticket);
}

bool tl_visitor_ticket(const struct tl_room *room, const struct tl_request *request,
                       struct tl_ticket *ticket)
{
    char cookie[16 + TL_QUEUE_NAME_MAX];
    if (is_ticket(room, tl_visitor_bearer(request), ticket))
        return true;
    snprintf(cookie, sizeof(cookie), "tellerline_%s", room->name);
    return is_ticket(room, tl_request_cookie(request, cookie), ticket) ||
           is_ticket(room, tl_request_query(request, "ticket"), ticket);
}

struct tl_room *tl_visitor_room(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    struct tl_room *room = tl_edge_room(edge, queue);
    if (room != NULL && room->line != NULL)
        return room;
    if (edge->draining) /* the rooms go before the last answers do */
        tl_problem_answer(request, TL_PROBLEM_STOPPING, "%s", "");
    else if (room == NULL && edge->listed)
        tl_problem_answer(request, TL_PROBLEM_NO_QUEUE, "%s", "");
    else
        tl_problem_answer(request, TL_PROBLEM_LOADING, "%s", "");
    return NULL;
}

bool tl_visitor_may_send(struct tl_edge *edge, struct tl_request *request)
{
    if (edge->draining)
        tl_problem_answer(request, TL_PROBLEM_STOPPING, "%s", "");
    else if (!tl_edge_store_up(edge))
        tl_problem_answer(request, TL_PROBLEM_STORE, "The store cannot be reached; try again");
    else if (tl_edge_in_flight(edge) >= edge->config->worker.max_pending)
        tl_problem_answer(request, TL_PROBLEM_BUSY,
                          "Too many commands wait to be applied; try again");
    else
        return true;
    return false;
}

/* The room and a genuine ticket of its present generation (or a pending one), or an answer. */
static struct tl_room *visitor_of(struct tl_edge *edge, struct tl_request *request,
                                  const char *queue, struct tl_ticket *ticket)
{
    struct tl_room *room = tl_visitor_room(edge, request, queue);
    if (room == NULL)
        return NULL;
    if (!tl_visitor_ticket(room, request, ticket)) {
        tl_problem_answer(request, TL_PROBLEM_BAD_TICKET,
                          "Send it as Authorization: Bearer, as cookie, or as ?ticket=");
        return NULL;
    }
    if (tl_place_seq(ticket->place) != 0 && ticket->generation != tl_line_generation(room->line)) {
        tl_problem_answer(request, TL_PROBLEM_OLD_GENERATION, "%s", "");
        return NULL;
    }
    return room;
}

/* Not numbered yet: joining again gives the place that the first join got. */
static void join_pending(struct tl_room *room, struct tl_request *request,
                         const struct tl_ticket *ticket)
{
    unsigned lane = tl_place_lane(ticket->place);
    tl_join_visitor(room, request, ticket->visitor,
                    lane < room->settings.n_lanes ? lane : room->settings.default_lane);
}

/* How long `?wait=20s` asks to wait for a change, in ms; 0 without it, -1 (answered) when it makes
 * no sense. */
static int64_t wanted_wait(struct tl_request *request)
{
    const char *text = tl_request_query(request, "wait");
    int64_t wait_ms = 0;
    if (text == NULL)
        return 0;
    if (!tl_duration_parse(text, &wait_ms, NULL) || wait_ms > WAIT_MAX_MS) {
        tl_problem_answer(request, TL_PROBLEM_BAD_QUERY, "wait: a duration from 0s to %ds",
                          WAIT_MAX_MS / 1000);
        return -1;
    }
    return wait_ms;
}

/* Is this somebody for whom something can still change? */
static bool may_change(const struct tl_room *room, const struct tl_ticket *ticket)
{
    bool known;
    enum tl_line_status status = tl_room_look(room, ticket->place, &known).status;
    return status == TL_LINE_WAITING || status == TL_LINE_ACTIVE;
}

void tl_handle_status(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    struct tl_ticket ticket;
    struct tl_room *room = visitor_of(edge, request, queue, &ticket);
    if (room == NULL)
        return;
    tl_metrics_add(edge->metrics, TL_WORKER_STATUS, 1);
    if (tl_place_seq(ticket.place) == 0) {
        join_pending(room, request, &ticket);
        return;
    }
    int64_t now_ms = tl_clock_ms();
    int64_t wait_ms = wanted_wait(request);
    if (wait_ms < 0)
        return;
    if (wait_ms == 0 || edge->draining || !may_change(room, &ticket) ||
        !tl_push_wait(room->push, request, &ticket, now_ms, now_ms + wait_ms))
        tl_answer_view(room, request, &ticket, false);
}

/* A stream begins where the place is known. For a place that must be looked up first, or has no
 * number yet, the answer is the view, as for status: the client then knows how it stands, and comes
 * back. */
void tl_handle_events(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    struct tl_ticket ticket;
    bool known;
    struct tl_room *room = visitor_of(edge, request, queue, &ticket);
    if (room == NULL)
        return;
    if (tl_place_seq(ticket.place) == 0) {
        join_pending(room, request, &ticket);
        return;
    }
    (void)tl_room_look(room, ticket.place, &known);
    if (!known || strcmp(tl_request_method(request), "GET") != 0)
        tl_answer_view(room, request, &ticket, false);
    else if (edge->draining)
        tl_problem_answer(request, TL_PROBLEM_STOPPING, "%s", "");
    else if (!tl_edge_has_room_for_stream(edge) ||
             !tl_push_stream(room->push, request, &ticket, tl_clock_ms()))
        tl_problem_answer(request, TL_PROBLEM_BUSY,
                          "No more event streams fit here; poll the status meanwhile");
}

static void command(struct tl_edge *edge, struct tl_request *request, const char *queue,
                    enum tl_command_kind kind)
{
    struct tl_ticket ticket;
    struct tl_room *room = visitor_of(edge, request, queue, &ticket);
    if (room == NULL)
        return;
    if (tl_place_seq(ticket.place) == 0) {
        tl_problem_answer(request, TL_PROBLEM_NOT_NUMBERED, "Ask for the status first");
        return;
    }
    bool known;
    if (tl_room_look(room, ticket.place, &known).status == TL_LINE_ENDED) {
        tl_answer_view(room, request, &ticket, false); /* has happened already, or never can */
        return;
    }
    if (!tl_visitor_may_send(edge, request))
        return;
    struct tl_pending_command *pending =
        tl_outbox_command(room->outbox, kind, ticket.visitor, ticket.place);
    if (pending == NULL || !tl_hold_for_call(room, request, pending, &ticket))
        tl_problem_answer(request, TL_PROBLEM_BUSY,
                          "There is no memory for this command; try again");
}

void tl_handle_leave(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    command(edge, request, queue, TL_COMMAND_LEAVE);
}

void tl_handle_complete(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    command(edge, request, queue, TL_COMMAND_COMPLETE);
}

void tl_handle_renew(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    command(edge, request, queue, TL_COMMAND_RENEW);
}
