/* SPDX-License-Identifier: Apache-2.0 */
/* Who may join a queue by its mode and phase, and why others may not. The queues need a line. */
#ifndef TL_API_STANDING_H
#define TL_API_STANDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/mode.h"
#include "worker/api/context.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"

/* May visitors join who have no place? Otherwise the refusal says why. */
bool tl_standing_joins(const struct tl_api *api, const struct tl_request *request,
                       const struct tl_queue *queue, struct tl_refusal *refusal);
/* The store had no place for a join: fills in why, as far as this process knows. */
void tl_standing_no_place(const struct tl_api *api, const struct tl_request *request,
                          const struct tl_queue *queue, struct tl_refusal *refusal);

#endif
