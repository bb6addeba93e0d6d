/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staff, monitoring and crawlers who get in past the line, without a place: by network, by a header
 * that a trusted proxy sets, or by an invite with the claim `bypass`. Each is counted, by queue
 * too, and logged at most once in ten seconds.
 */
#ifndef TL_API_BYPASS_H
#define TL_API_BYPASS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/invite.h"
#include "worker/api/context.h"
#include "worker/http/request.h"

struct tl_bypass;

struct tl_bypass *tl_bypass_new(const struct tl_config *config, struct tl_error *err);
void tl_bypass_free(struct tl_bypass **bypass); /* NULL allowed */

/* By what a check of this queue gets in: "network", "header" or "invite", and counts it; NULL: it
 * does not. The invite is in the cookie that tl_bypass_cookie writes, or in the header
 * X-Tellerline-Invite. */
const char *tl_bypass_of(const struct tl_api *api, const struct tl_request *request,
                         const char *queue, int64_t now_ms);

/* Records one who got in. */
void tl_bypass_note(const struct tl_api *api, const struct tl_request *request, const char *queue,
                    const char *by, int64_t now_ms);

enum { TL_BYPASS_COOKIE_MAX = 4096 };
/* The value for Set-Cookie that keeps a bypass invite until it expires. False: it is too long. */
bool tl_bypass_cookie(const struct tl_api *api, const struct tl_request *request, const char *queue,
                      const char *text, const struct tl_invite *invite,
                      char cookie[TL_BYPASS_COOKIE_MAX]);

#endif
