/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places that were handed over to another device. Each hand-over gives a place a higher serial;
 * a ticket with a lower one does not count any more (common/store/line/visitor.lua). The queue
 * needs a line.
 */
#ifndef TL_HANDOVER_H
#define TL_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "worker/queue/queue.h"

/* Is the place of this ticket on another device now? A ticket with a higher serial than the line
 * knows proves a hand-over that the store has lost, and so does the line of before a loss: notes
 * it, and tells the store. */
bool tl_handover_moved(struct tl_queue *queue, const struct tl_ticket *ticket);
/* The same for a ticket whose place is waiting or active: such a ticket cannot join again. */
bool tl_handover_holds(struct tl_queue *queue, const struct tl_ticket *ticket);
/* The serial that tickets of this place have to have; 0: any has. */
uint32_t tl_handover_serial(const struct tl_queue *queue, tl_place place);

#endif
