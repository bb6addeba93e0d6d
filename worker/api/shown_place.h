/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which place a page shows. Its forms act on the place of the cookie, which may be another one by
 * then: it came here from another device, or was taken in another tab. So their addresses name the
 * place of the page, `?place=Q5T9-4XDR`: by a code like the reference, but of the place and not
 * only of its visitor, who may have had another one before. It is no credential, and says no more
 * than the reference.
 */
#ifndef TL_API_SHOWN_PLACE_H
#define TL_API_SHOWN_PLACE_H

#include <stdbool.h>

#include "common/auth/reference.h"
#include "common/wire/place.h"
#include "worker/api/context.h"
#include "worker/http/request.h"

/* The name of the place for the forms of its page. */
void tl_shown_place_write(const struct tl_api *api, const char *queue, const char *visitor,
                          tl_place place, char text[TL_REFERENCE_MAX]);
/* Does the form belong to a page of another place than the cookie's? Not where the request names
 * no place, or has no cookie with a ticket. */
bool tl_shown_place_differs(const struct tl_api *api, const struct tl_request *request,
                            const char *queue);

#endif
