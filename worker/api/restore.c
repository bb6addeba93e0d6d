/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/clock.h"
#include "worker/api/restore.h"
#include "worker/queue/tickets.h"

/* deadline_ms, event: of the session that a pass tells of, or 0. */
static bool restore(const struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                    const struct tl_ticket *ticket, uint64_t deadline_ms, uint64_t event,
                    struct tl_refusal *refusal)
{
    if (tl_queue_behind(queue, ticket, tl_clock_ms()))
        return tl_refuse(refusal, TL_REFUSAL_LOADING, "%s", "");
    if (!tl_queue_may_return(queue, ticket))
        return tl_refuse(refusal, TL_REFUSAL_OLD_GENERATION, "%s", "");
    struct tl_pending_command *pending = tl_queue_restore(queue, ticket, deadline_ms, event);
    const struct tl_held held = {
        .queue = queue, .request = request, .ticket = *ticket, .since_us = tl_clock_us()};
    if (pending != NULL && tl_holds_command(api->holds, &held, pending))
        return tl_refuse(refusal, TL_REFUSAL_HELD, "%s", "");
    return tl_refuse(refusal, TL_REFUSAL_STORE, "Your place cannot be restored yet; try again");
}

bool tl_restore_request(const struct tl_api *api, struct tl_queue *queue,
                        struct tl_request *request, const struct tl_ticket *ticket,
                        struct tl_refusal *refusal)
{
    return restore(api, queue, request, ticket, 0, 0, refusal);
}

void tl_restore_subscriber(void *context, struct tl_queue *queue, const struct tl_ticket *ticket)
{
    (void)context;
    (void)tl_queue_restore(queue, ticket, 0, 0); /* else it is asked again */
}

bool tl_restore_removed(const struct tl_queue *queue, uint64_t generation, tl_place place)
{
    bool known;
    if (generation != tl_line_generation(queue->line))
        return false;
    struct tl_line_view state = tl_queue_look(queue, place, &known);
    return state.status == TL_LINE_ENDED && state.reason == TL_REASON_REMOVED;
}

struct tl_ticket tl_restore_ticket(const struct tl_pass *pass)
{
    struct tl_ticket ticket = {.generation = pass->generation,
                               .place = pass->place,
                               .issued = (uint32_t)pass->issued,
                               .front = tl_place_seq(pass->place)};
    memcpy(ticket.visitor, pass->visitor, sizeof(ticket.visitor));
    return ticket;
}

bool tl_restore_pass(const struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                     const struct tl_pass *pass, struct tl_refusal *refusal)
{
    const struct tl_ticket ticket = tl_restore_ticket(pass);
    return restore(api, queue, request, &ticket, (uint64_t)pass->expires * 1000, pass->event,
                   refusal);
}

bool tl_restore_session(struct tl_queue *queue, const struct tl_pass *pass)
{
    struct tl_ticket ticket = tl_restore_ticket(pass);
    bool known;
    if (tl_lost_ended(queue->lost, pass->generation, pass->place))
        return false;
    if (!tl_queue_adopt(queue, &ticket) && tl_queue_may_return(queue, &ticket))
        (void)tl_queue_restore(queue, &ticket, (uint64_t)pass->expires * 1000, pass->event);
    return tl_queue_look(queue, ticket.place, &known).status != TL_LINE_ENDED;
}
