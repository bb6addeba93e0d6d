/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit of a draw that is done (rule 13): the seed has the published hash, the list is
 * complete, nobody waits at a place of before the draw, and those who were drawn stand by their
 * draw keys. A queue without a draw has nothing to check.
 */
#ifndef TL_CTL_AUDIT_DRAW_H
#define TL_CTL_AUDIT_DRAW_H

#include "ctl/audit/audit.h"

/* Adds what is wrong to the report. False when the queue cannot be read. */
bool tl_audit_draw(struct tl_redis *redis, const struct tl_keys *keys,
                   struct tl_audit_report *report, struct tl_error *err);

#endif
