#include <string.h>

#include "common/base/clock.h"
#include "worker/api/answer.h"
#include "worker/api/join.h"
#include "worker/api/page_handlers.h"
#include "worker/api/visitor.h"

/* ticket NULL: the visitor has none. */
static bool join(struct tl_api *api, struct tl_local_queue *queue, struct tl_request *request,
                 const struct tl_ticket *ticket, struct tl_refusal *refusal)
{
    const char *invite = tl_request_query(request, "invite");
    char visitor[TL_VISITOR_MAX + 1];
    if (invite != NULL)
        return tl_join_by_invite(api, queue, request, invite, refusal);
    if (tl_local_queue_settings(queue)->join == TL_JOIN_INVITED)
        return tl_refuse(refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    unsigned lane = tl_local_queue_settings(queue)->default_lane;
    if (ticket != NULL)
        return tl_join_visitor(api, queue, request, ticket->visitor, lane, refusal);
    if (!tl_visitor_may_join(api, request, tl_clock_ms(), refusal))
        return false;
    tl_visitor_random(visitor);
    return tl_join_visitor(api, queue, request, visitor, lane, refusal);
}

/* Is this a prefetch by a browser, or a look by a link checker? Neither wants a place. */
static bool is_prefetch(const struct tl_request *request)
{
    static const char *const names[] = {"Sec-Purpose", "Purpose", "X-Moz"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *purpose = tl_request_header(request, names[i]);
        if (purpose != NULL &&
            (strstr(purpose, "prefetch") != NULL || strstr(purpose, "prerender") != NULL))
            return true;
    }
    return strcmp(tl_request_method(request), "HEAD") == 0;
}

bool tl_handle_page(void *context, struct tl_request *request, const char *name,
                    struct tl_refusal *refusal)
{
    struct tl_api *api = context;
    struct tl_ticket ticket;
    struct tl_local_queue *queue = tl_visitor_queue(api, name, refusal);
    if (queue == NULL)
        return false;
    if (!tl_visitor_ticket(api, request, name, &ticket)) {
        if (!is_prefetch(request))
            return join(api, queue, request, NULL, refusal);
        tl_request_answer(request, &(struct tl_answer){.status = 204});
        return true;
    }
    if (tl_visitor_outdated(queue, &ticket))
        return tl_refuse(refusal, TL_REFUSAL_OLD_GENERATION, "%s", "");
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
    struct tl_local_queue *queue = tl_visitor_queue(api, name, refusal);
    if (queue == NULL)
        return false;
    bool known = tl_visitor_ticket(api, request, name, &ticket);
    return join(api, queue, request, known ? &ticket : NULL, refusal);
}
