/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets in: the check of gateways; and past the line, without a place, everyone, in the mode
 * passthrough; and staff, monitoring and crawlers with a bypass, by network, by a header that a
 * trusted proxy sets, or by an invite with the claim `bypass`. Each is counted, by queue too, and
 * those with a bypass are logged, at most once in ten seconds.
 */
#ifndef TL_GATE_H
#define TL_GATE_H

#include <stdbool.h>

#include "common/auth/invite.h"
#include "worker/visit/visit.h"

/* In the mode passthrough, by the file or in the store: answers a join or the page so, and returns
 * true. */
bool tl_past_everyone(const struct tl_visit *visit);

/* Reads an invite to this queue. False: refused, it is not genuine, or too many were not. */
bool tl_past_invite(struct tl_visit *visit, const char *text, struct tl_invite *invite);
/* An invite with a bypass lets its bearer past the line: remembered in a cookie, which `check`
 * reads, until it expires. False: refused, it is too long for that, or over. */
bool tl_past_by_invite(struct tl_visit *visit, const char *text, const struct tl_invite *invite);

#endif
