/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/api/answer.h"
#include "worker/api/block.h"
#include "worker/api/cookie.h"
#include "worker/api/join.h"
#include "worker/api/misuse.h"
#include "worker/api/navigation.h"
#include "worker/api/page_handlers.h"
#include "worker/api/page_renderer.h"
#include "worker/api/restore.h"
#include "worker/api/shown_place.h"
#include "worker/api/standing.h"
#include "worker/api/status.h"
#include "worker/api/through.h"
#include "worker/api/visitor.h"
#include "worker/queue/tickets.h"

/* Does the visitor hold the place, as far as this process knows? */
static bool holds_place(const struct tl_queue *queue, const struct tl_ticket *ticket)
{
    bool known;
    enum tl_line_status status = tl_queue_look(queue, ticket->place, &known).status;
    return !tl_queue_outdated(queue, ticket) &&
           (status == TL_LINE_WAITING || status == TL_LINE_ACTIVE);
}

/* ticket NULL: the visitor has none. */
static bool join(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                 const struct tl_ticket *ticket, struct tl_refusal *refusal)
{
    const char *invite = tl_request_query(request, "invite");
    if (ticket == NULL)
        tl_misuse_join(api, request, queue->name);
    if (invite != NULL)
        return tl_join_by_invite(api, queue, request, invite, refusal);
    bool pending = ticket != NULL && tl_place_seq(ticket->place) == 0; /* was accepted before */
    if (!pending && queue->settings.join == TL_JOIN_INVITED)
        return tl_refuse(refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    if (pending)
        return tl_join_by_ticket(api, queue, request, ticket, refusal);
    unsigned lane = queue->settings.default_lane;
    if (ticket != NULL && holds_place(queue, ticket)) {
        struct tl_refusal unused;
        if (queue->settings.challenge == TL_CHALLENGE_NONE &&
            tl_standing_joins(api, request, queue, &unused))
            tl_join_confirm(api, queue, request, ticket);
        else
            tl_answer_view(api, queue, request, ticket, false);
        return true;
    }
    const struct tl_proof proof = {.solution = tl_request_query(request, "solution")};
    return tl_join_newcomer(api, queue, request, ticket != NULL ? ticket->visitor : NULL, lane,
                            &proof, refusal);
}

/* Does a browser open the page that says what it does, and has not shown yet that it keeps cookies?
 * An answer sets one first, and the place is taken when the browser asks again: so its ticket needs
 * to stand in no address. (A signed wait would be lost on the way.) */
static bool asks_for_cookies(const struct tl_request *request, const char *name)
{
    return tl_request_header(request, "Sec-Fetch-Mode") != NULL &&
           strcmp(tl_request_method(request), "GET") == 0 && !tl_cookie_works(request, name) &&
           tl_request_query(request, "cookies") == NULL &&
           tl_request_query(request, "solution") == NULL;
}

/* A visitor without a ticket. */
static bool arrive(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                   const char *name, struct tl_refusal *refusal)
{
    switch (tl_navigation_of(request)) {
    case TL_NAVIGATION_PERSON:
        if (asks_for_cookies(request, name)) {
            tl_page_send_probe(api, request, name);
            return true;
        }
        return join(api, queue, request, NULL, refusal);
    case TL_NAVIGATION_AHEAD: /* a browser then fetches the page again when it is opened */
        tl_request_answer(request, &(struct tl_answer){.status = 204});
        return true;
    case TL_NAVIGATION_EMBEDDED:
    default:
        tl_page_send_outside(api, request, name);
        return true;
    }
}

bool tl_handle_page(void *context, struct tl_request *request, const char *name,
                    struct tl_refusal *refusal)
{
    struct tl_api *api = context;
    struct tl_ticket ticket;
    if (tl_through_passes_all(api, request, name))
        return true;
    struct tl_queue *queue = tl_visitor_queue(api, name, refusal);
    if (queue == NULL || !tl_block_passes(api, request, name, refusal))
        return false;
    bool by_cookie;
    if (!tl_visitor_ticket(api, request, name, &ticket))
        return arrive(api, queue, request, name, refusal);
    (void)tl_queue_adopt(queue, &ticket);
    struct tl_ticket kept;
    if (tl_page_is_secret(request) && tl_cookie_ticket(api, request, name, &kept, &by_cookie)) {
        const char *invite = tl_request_query(request, "invite");
        if (invite != NULL && tl_join_passes_by(api, queue, request, invite))
            return true;
        /* The cookie works, so the address need not hold what others could use: except an invite
         * with which the visitor may join again. */
        if (invite == NULL || tl_place_seq(kept.place) == 0 || holds_place(queue, &kept)) {
            tl_page_send_clean(api, request, name);
            return true;
        }
    }
    if (tl_queue_outdated(queue, &ticket))
        return tl_restore_request(api, queue, request, &ticket, refusal);
    if (tl_place_seq(ticket.place) == 0)
        return join(api, queue, request, &ticket, refusal);
    tl_answer_view(api, queue, request, &ticket, false);
    return true;
}

/* The button "join again": a new place if the old one is over. */
bool tl_handle_page_join(void *context, struct tl_request *request, const char *name,
                         struct tl_refusal *refusal)
{
    struct tl_api *api = context;
    struct tl_ticket ticket;
    if (tl_through_passes_all(api, request, name))
        return true;
    struct tl_queue *queue = tl_visitor_queue(api, name, refusal);
    if (queue == NULL || !tl_block_passes(api, request, name, refusal))
        return false;
    bool known = tl_visitor_ticket(api, request, name, &ticket);
    if (known)
        (void)tl_queue_adopt(queue, &ticket);
    if (known && tl_queue_may_return(queue, &ticket))
        return tl_restore_request(api, queue, request, &ticket, refusal);
    if (known && tl_queue_moved_held(queue, &ticket))
        return tl_refuse(refusal, TL_REFUSAL_MOVED, "%s", "");
    if (known && tl_restore_removed(queue, ticket.generation, ticket.place))
        return tl_refuse(refusal, TL_REFUSAL_REMOVED, "%s", "");
    /* The invite of a page of another place would take that one's cookie. */
    if (known && holds_place(queue, &ticket) && tl_shown_place_differs(api, request, name)) {
        tl_page_send_present(api, request, name);
        return true;
    }
    return join(api, queue, request, known ? &ticket : NULL, refusal);
}

bool tl_handle_page_leave(void *context, struct tl_request *request, const char *name,
                          struct tl_refusal *refusal)
{
    const struct tl_api *api = context;
    if (!tl_shown_place_differs(api, request, name))
        return tl_handle_leave(context, request, name, refusal);
    tl_page_send_present(api, request, name);
    return true;
}
