/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/invite.h"
#include "common/base/clock.h"
#include "worker/visit/rejoin.h"

/* The lane in which a ticket joins. A pending one repeats its own join, so it keeps that lane if
 * the queue still has it. With any other, a new place is in the default lane: the old one used up
 * what had opened its lane. (Who still holds a place keeps it, whatever lane a JOIN names.) */
unsigned tl_rejoin_lane(const struct tl_queue *queue, tl_place place)
{
    const struct tl_queue_settings *settings = &queue->settings;
    unsigned lane = tl_place_lane(place);
    bool pending = tl_place_seq(place) == 0;
    return pending && lane < settings->n_lanes ? lane : settings->default_lane;
}

/* The join of a pending ticket once more: the one in progress, or a JOIN that the store takes only
 * if the place has not ended, and what opened the join was not spent before
 * (common/store/line/invites.lua). */
struct tl_pending_command *tl_rejoin(struct tl_queue *queue, const struct tl_ticket *ticket)
{
    char id[TL_BATCH_INVITE_MAX];
    /* An invite's own end is not known here: none is later than this. */
    uint64_t until_ms = (ticket->issued + (uint64_t)TL_INVITE_LIFETIME_S + 2 * UINT64_C(60)) * 1000;
    struct tl_pending_command *pending = tl_outbox_joining(queue->outbox, ticket->visitor);
    if (pending != NULL)
        return pending;
    if (ticket->invite == 0 || ticket->invite == TL_TICKET_TRUSTED)
        snprintf(id, sizeof(id), " %lu", (unsigned long)ticket->issued);
    else
        snprintf(id, sizeof(id), " %lu %016llx", (unsigned long)ticket->issued,
                 (unsigned long long)ticket->invite);
    return tl_outbox_join(queue->outbox, ticket->visitor, tl_rejoin_lane(queue, ticket->place), id,
                          until_ms);
}

bool tl_rejoin_gave_place(const struct tl_pending_result *result)
{
    return result->outcome != TL_OUTCOME_SPENT && result->outcome != TL_OUTCOME_FULL;
}

bool tl_rejoin_issued(const struct tl_pending_command *join, uint32_t *issued)
{
    if (join->invite == NULL || join->invite[0] != ' ')
        return false;
    *issued = (uint32_t)strtoul(join->invite + 1, NULL, 10);
    return true;
}

/* May a pending ticket still join? Not into another generation of the queue, except while that
 * recovers; and not uninvited where only the invited may join. */
bool tl_rejoin_may(struct tl_visit *visit)
{
    const struct tl_queue *queue = visit->queue;
    const struct tl_ticket *ticket = &visit->ticket;
    bool before = ticket->issued + TL_TICKET_CLOCK_S < queue->line->generation / 1000000;
    if (before && !tl_lost_recovering(&queue->lost))
        return tl_refuse(&visit->refusal, TL_REFUSAL_OLD_GENERATION, "%s", "");
    if (ticket->invite == 0 && queue->settings.join == TL_JOIN_INVITED)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    return true;
}
