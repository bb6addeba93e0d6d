/* SPDX-License-Identifier: Apache-2.0 */
/* Blocked prefixes of addresses (common/store/blocks.h), as they concern a request. */
#ifndef TL_API_BLOCK_H
#define TL_API_BLOCK_H

#include <stdbool.h>

#include "worker/api/context.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"

/* May the visitor's address join this queue and follow it? */
bool tl_block_passes(const struct tl_api *api, const struct tl_request *request, const char *queue,
                     struct tl_refusal *refusal);

/* The same for an address, at this time by the local clock. */
bool tl_block_names(const struct tl_api *api, const struct tl_address *address, const char *queue,
                    int64_t now_ms);

#endif
