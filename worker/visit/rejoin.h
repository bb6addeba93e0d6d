/* SPDX-License-Identifier: Apache-2.0 */
/* The join of a pending ticket once more, for requests and for event streams: it finds the place of
 * the first one. */
#ifndef TL_REJOIN_H
#define TL_REJOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/visit/visit.h"

/* The lane in which a ticket joins. */
unsigned tl_rejoin_lane(const struct tl_queue *queue, tl_place place);
/* May the visit's pending ticket still join? Else refused. */
bool tl_rejoin_may(struct tl_visit *visit);
/* The join of this pending ticket: the one in progress, or another one like it. NULL when out of
 * memory. */
struct tl_pending_command *tl_rejoin(struct tl_queue *queue, const struct tl_ticket *ticket);
/* Was this JOIN made by tl_rejoin? *issued: the ticket's time. */
bool tl_rejoin_issued(const struct tl_pending_command *join, uint32_t *issued);
/* Has the join that was applied, of any kind, a place? */
bool tl_rejoin_gave_place(const struct tl_pending_result *result);

#endif
