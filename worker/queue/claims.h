/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker process knows of the claims of one queue: which sessions are claimed, and who came
 * to an overbooked queue when the capacity was claimed. Those keep their sessions, unclaimed, and
 * have the next turn (common/store/line/overbook.lua): to them, that is the front of the line. A
 * process learns of them as the outcome of its own RENEW.
 */
#ifndef TL_CLAIMS_H
#define TL_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/settings.h"
#include "common/line/line.h"
#include "common/line/placemap.h"
#include "common/wire/events.h"
#include "worker/feed/outbox.h"

/* Both: active place -> local ms + 1 of the last RENEW known; 0: none is. A zeroed one knows
 * nothing. */
struct tl_claims {
    struct tl_placemap claimed; /* or with a mark: the store has not said yet that it is claimed */
    struct tl_placemap turns;   /* not claimed: another session must end first */
};

void tl_claims_clear(struct tl_claims *claims); /* frees its memory, too */

/* A RENEW is on its way. Without memory it is not noted, and the next touch claims again, which is
 * harmless. */
void tl_claims_note(struct tl_claims *claims, tl_place place, int64_t now_ms);
/* A CLAIM is on its way: when the session was last extended is not known, so the next use does. */
void tl_claims_note_claim(struct tl_claims *claims, tl_place place);
/* Keeps what is known of places that are still active in this line. */
void tl_claims_keep(struct tl_claims *claims, const struct tl_line *line);
/* Is the session claimed, or a RENEW or CLAIM on its way? */
bool tl_claims_has(const struct tl_claims *claims, tl_place place);
/* Did an event or an outcome say that it is claimed? */
bool tl_claims_made(const struct tl_claims *claims, tl_place place);
/* Must the session at this place be claimed now? */
bool tl_claims_due(const struct tl_claims *claims, const struct tl_queue_settings *settings,
                   tl_place place, int64_t now_ms);
/* Must the session that is claimed be extended, now that the visitor uses it? */
bool tl_claims_extends(const struct tl_claims *claims, const struct tl_queue_settings *settings,
                       tl_place place, int64_t now_ms);
/* Notes the outcome of a RENEW or CLAIM. */
void tl_claims_settled(struct tl_claims *claims, const struct tl_line *line,
                       const struct tl_pending_command *pending,
                       const struct tl_pending_result *result, int64_t now_ms);
/* Notes an event that this line has taken. */
void tl_claims_event(struct tl_claims *claims, const struct tl_line *line,
                     const struct tl_event *event, int64_t now_ms);
/* What the visitor is told whose place is in this state: who has the next turn stands first. */
struct tl_line_view tl_claims_view(const struct tl_claims *claims, tl_place place,
                                   struct tl_line_view state);

#endif
