/* SPDX-License-Identifier: Apache-2.0 */
/* `?return=`: where the waiting page sends its visitor, read from the request. */
#ifndef TL_API_RETURN_TO_H
#define TL_API_RETURN_TO_H

#include "common/base/origin.h"
#include "worker/http/request.h"
#include "worker/visit/context.h"

struct tl_return_to {
    char address[TL_ADDRESS_MAX]; /* percent-encoded; "": none */
    const char *refused;          /* why there is none, for the sender of the link; or NULL */
};

/* Reads the address. It counts if it leads to the site that the queue guards (target_url, may be
 * ""), or to one the operator named. A sender who did not encode it is understood where that is
 * possible: parameters after it that are not the page's own belong to its query. */
void tl_return_to_read(const struct tl_worker *worker, const struct tl_request *request,
                       const char *target_url, struct tl_return_to *result);

#endif
