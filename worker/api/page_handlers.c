/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/api/handlers.h"
#include "worker/visit/answer.h"
#include "worker/visit/browser.h"

static bool join(struct tl_visit *visit, bool has_ticket)
{
    const char *invite = tl_request_query(visit->request, "invite");
    const struct tl_proof proof = {.solution = tl_request_query(visit->request, "solution")};
    if (!has_ticket)
        tl_misuse_join(visit);
    if (invite != NULL)
        return tl_join_by_invite(visit, invite);
    return has_ticket ? tl_join_again(visit, &proof)
                      : tl_join_newcomer(visit, NULL, visit->queue->settings.default_lane, &proof);
}

/* Does a browser open the page that says what it does, and has not shown yet that it keeps cookies?
 * An answer sets one first, and the place is taken when the browser asks again: so its ticket needs
 * to stand in no address. (A signed wait would be lost on the way.) */
static bool asks_for_cookies(const struct tl_visit *visit)
{
    const struct tl_request *request = visit->request;
    return tl_request_header(request, "Sec-Fetch-Mode") != NULL &&
           strcmp(tl_request_method(request), "GET") == 0 && !tl_cookie_works(visit) &&
           tl_request_query(request, "cookies") == NULL &&
           tl_request_query(request, "solution") == NULL;
}

/* A visitor without a ticket. */
static bool arrive(struct tl_visit *visit)
{
    switch (tl_navigation_of(visit->request)) {
    case TL_NAVIGATION_PERSON:
        return asks_for_cookies(visit) ? tl_page_redirect(visit, TL_PAGE_PROBE)
                                       : join(visit, false);
    case TL_NAVIGATION_AHEAD: /* a browser then fetches the page again when it is opened */
        tl_request_answer(visit->request, &(struct tl_answer){.status = 204});
        return true;
    case TL_NAVIGATION_EMBEDDED:
    default:
        return tl_page_send(visit, &(struct tl_view){.page = TL_PAGE_OUTSIDE});
    }
}

/* Does the visitor hold the place, as far as this process knows? */
static bool holds_place(const struct tl_queue *queue, const struct tl_ticket *ticket)
{
    bool known;
    enum tl_line_status status = tl_queue_look(queue, ticket->place, &known).status;
    return !tl_queue_outdated(queue, ticket) &&
           (status == TL_LINE_WAITING || status == TL_LINE_ACTIVE);
}

bool tl_handle_page(struct tl_visit *visit)
{
    const char *invite = tl_request_query(visit->request, "invite");
    bool secret = invite != NULL || tl_request_query(visit->request, "ticket") != NULL;
    struct tl_invite claims;
    struct tl_ticket kept;
    if (tl_past_everyone(visit))
        return true;
    if (!tl_visit_passes_blocks(visit))
        return false;
    if (!tl_visit_queue(visit))
        return tl_archived_place(visit);
    if (!tl_visit_brought(visit, &visit->ticket))
        return arrive(visit);
    tl_visit_judge(visit);
    if (secret && tl_cookie_ticket(visit, &kept)) {
        if (invite != NULL && tl_past_invite(visit, invite, &claims) && claims.bypass &&
            tl_past_by_invite(visit, invite, &claims))
            return true;
        /* The cookie works, so the address need not hold what others could use: except an invite
         * with which the visitor may join again. */
        if (invite == NULL || tl_place_seq(kept.place) == 0 || holds_place(visit->queue, &kept))
            return tl_page_redirect(visit, TL_PAGE_CLEAN);
    }
    if (visit->worth == TL_WORTH_PENDING)
        return join(visit, true);
    return tl_answer_view(visit) || tl_archived_place(visit);
}

/* The button "join again": a new place if the old one is over. */
bool tl_handle_page_join(struct tl_visit *visit)
{
    if (tl_past_everyone(visit))
        return true;
    if (!tl_visit_queue(visit) || !tl_visit_passes_blocks(visit))
        return false;
    if (!tl_visit_brought(visit, &visit->ticket))
        return join(visit, false);
    tl_visit_judge(visit);
    if (tl_visit_may_return(visit))
        return tl_visit_restore(visit, 0, 0);
    if (!tl_join_may_follow(visit))
        return false;
    /* The invite of a page of another place would take that one's cookie. */
    if (tl_visit_is_held(visit) && tl_shown_place_differs(visit))
        return tl_page_redirect(visit, TL_PAGE_PRESENT);
    return join(visit, true);
}

bool tl_handle_page_leave(struct tl_visit *visit)
{
    return tl_shown_place_differs(visit) ? tl_page_redirect(visit, TL_PAGE_PRESENT)
                                         : tl_handle_leave(visit);
}
