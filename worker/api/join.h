/* SPDX-License-Identifier: Apache-2.0 */
/* How visitors get a place: POST /v1/queues/{q}/join, and what other handlers need of it. All
 * answer the request or hold it, or refuse and return false. */
#ifndef TL_JOIN_H
#define TL_JOIN_H

#include <stdbool.h>

#include "worker/api/challenge.h"
#include "worker/visit/visit.h"

/* May a join follow the visit's ticket, as it was judged? Refused if its place is on another device
 * now, or if the operator removed its visitor: nothing gives such a visitor another place, as long
 * as the end is remembered. */
bool tl_join_may_follow(struct tl_visit *visit);

/* Joins a visitor who holds no place and has no invite: the request must pass the queue's
 * challenge. visitor: as of an earlier ticket, or NULL for a new one. Counted against the address.
 */
bool tl_join_newcomer(struct tl_visit *visit, const char *visitor, unsigned lane,
                      const struct tl_proof *proof);
/* Joins the visitor of an invite. */
bool tl_join_by_invite(struct tl_visit *visit, const char *invite);
/* Joins again with the ticket of a place that the visitor holds, as far as this process knows.
 */
bool tl_join_confirm(struct tl_visit *visit);
/* Joins the visitor of a pending ticket again: the same join. */
bool tl_join_by_ticket(struct tl_visit *visit);
/* The holder of a pending ticket leaves: the place is given up as soon as its number is known. */
bool tl_join_then_leave(struct tl_visit *visit);

#endif
