/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets in past the line, without a place: everyone, in the mode passthrough; and staff,
 * monitoring and crawlers with a bypass, by network, by a header that a trusted proxy sets, or by
 * an invite with the claim `bypass`. Each is counted, by queue too, and those with a bypass are
 * logged, at most once in ten seconds.
 */
#ifndef TL_API_PAST_H
#define TL_API_PAST_H

#include <stdbool.h>

#include "common/auth/invite.h"
#include "worker/visit/visit.h"

/* ---- everyone ---- */

/* Does everyone get into this queue now, by the file or by its mode in the store? */
bool tl_through_applies(const struct tl_worker *worker, const char *queue);
/* Counts one who got in that way. */
void tl_through_count(const struct tl_worker *worker, const char *queue);
/* Answers a join or the page. JSON: 200 `{"queue","status":"passthrough","target_url"}`. A page:
 * goes on to where the visitor wants to go; without an address, says that they may. cookie: for
 * Set-Cookie, or NULL. Returns true. */
bool tl_through_answer(const struct tl_visit *visit, const char *cookie);
/* In the mode passthrough: answers a join or the page so, counts it, and returns true. */
bool tl_through_passes_all(const struct tl_visit *visit);

/* ---- who has a bypass ---- */

struct tl_bypass;

struct tl_bypass *tl_bypass_new(const struct tl_config *config, struct tl_error *err);
void tl_bypass_free(struct tl_bypass **bypass); /* NULL allowed */

/* By what a check of this queue gets in: "network", "header" or "invite", and counts it; NULL: it
 * does not. The invite is in the cookie that tl_bypass_cookie writes, or in the header
 * X-Tellerline-Invite. */
const char *tl_bypass_of(struct tl_visit *visit);
/* Records one who got in. */
void tl_bypass_note(const struct tl_visit *visit, const char *by);

enum { TL_BYPASS_COOKIE_MAX = 4096 };
/* The value for Set-Cookie that keeps a bypass invite until it expires. False: it is too long. */
bool tl_bypass_cookie(const struct tl_visit *visit, const char *text,
                      const struct tl_invite *invite, char cookie[TL_BYPASS_COOKIE_MAX]);

#endif
