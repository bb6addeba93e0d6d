/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a visitor who gets in without a place: all of them in the mode passthrough, or one
 * with a bypass. */
#ifndef TL_API_THROUGH_H
#define TL_API_THROUGH_H

#include <stdbool.h>

#include "worker/api/context.h"
#include "worker/http/request.h"

/* Does everyone get into this queue now, by the file or by its mode in the store? */
bool tl_through_applies(const struct tl_api *api, const char *queue);
/* Counts one who got in that way. */
void tl_through_count(const struct tl_api *api, const char *queue);
/* Answers a join or the page. JSON: 200 `{"queue","status":"passthrough","target_url"}`. A page:
 * goes on to where the visitor wants to go; without an address, says that they may. cookie: for
 * Set-Cookie, or NULL. */
void tl_through_answer(const struct tl_api *api, struct tl_request *request, const char *queue,
                       const char *cookie);
/* In the mode passthrough: answers a join or the page so, counts it, and returns true. */
bool tl_through_passes_all(const struct tl_api *api, struct tl_request *request, const char *queue);

#endif
