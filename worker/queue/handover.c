/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/queue/handover.h"

uint32_t tl_handover_serial(const struct tl_queue *queue, tl_place place)
{
    return tl_queue_serial(queue, place);
}

static bool is_held(const struct tl_queue *queue, tl_place place)
{
    bool known;
    enum tl_line_status status = tl_queue_look(queue, place, &known).status;
    return status == TL_LINE_WAITING || status == TL_LINE_ACTIVE;
}

bool tl_handover_moved(struct tl_queue *queue, const struct tl_ticket *ticket)
{
    struct tl_line *line = queue->line;
    const uint32_t known = tl_handover_serial(queue, ticket->place);
    const uint32_t proven = ticket->serial > known ? ticket->serial : known;
    /* Without memory the next ticket that comes is told. */
    if (proven > tl_line_serial(line, ticket->place) && is_held(queue, ticket->place) &&
        tl_line_add_serial(line, ticket->place, proven))
        (void)tl_outbox_hand_over(queue->outbox, ticket->visitor, ticket->place, proven, 0);
    return ticket->serial < known;
}

bool tl_handover_holds(struct tl_queue *queue, const struct tl_ticket *ticket)
{
    return tl_handover_moved(queue, ticket) && is_held(queue, ticket->place);
}
