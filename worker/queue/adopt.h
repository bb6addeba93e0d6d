/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets that name a place which the line knows under another name. */
#ifndef TL_ADOPT_H
#define TL_ADOPT_H

#include <stdbool.h>

#include "common/auth/ticket.h"
#include "common/line/line.h"
#include "worker/queue/lost.h"

/* If the ticket is of the lost generation and its place has come back, or of before a draw, or its
 * visitor was moved to another lane: makes it one of the present place, marked as outdated, and
 * returns true. */
bool tl_adopt(const struct tl_line *line, const struct tl_lost *lost, struct tl_ticket *ticket);

#endif
