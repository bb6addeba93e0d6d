/* SPDX-License-Identifier: Apache-2.0 */
/* The mode and the phase of a queue as requests see them: who may join, and what others are told.
 * The queues need a line. */
#ifndef TL_API_STANDING_H
#define TL_API_STANDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/mode.h"
#include "worker/api/context.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"

/* passthrough where this worker's file says so, else the setting. */
enum tl_queue_mode tl_standing_mode(const struct tl_api *api, const struct tl_queue *queue);
enum tl_phase tl_standing_phase(const struct tl_api *api, const struct tl_queue *queue,
                                int64_t now_ms);
/* May visitors join who have no place? Otherwise the refusal says why. */
bool tl_standing_joins(const struct tl_api *api, const struct tl_request *request,
                       const struct tl_queue *queue, struct tl_refusal *refusal);
/* The store had no place for a join: fills in why, as far as this process knows. */
void tl_standing_no_place(const struct tl_api *api, const struct tl_request *request,
                          const struct tl_queue *queue, struct tl_refusal *refusal);
/* A number that changes when those who wait must be told another state (for event streams; context
 * is the api). */
unsigned tl_standing_number(void *context, const struct tl_queue *queue, int64_t now_ms);

#endif
