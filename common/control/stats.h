/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a queue: the one source for the dashboard, `tellerline stats` and `events`. */
#ifndef TL_CONTROL_STATS_H
#define TL_CONTROL_STATS_H

#include <jansson.h>

#include "common/base/error.h"

struct tl_control;
struct tl_control_call;

/* The body of GET /v1/admin/queues/{queue}/stats without what is said of the store itself, for
 * lists: one bounded read. NULL with TL_ERR_NOQUEUE, TL_ERR_INVALID (the name), or what the store
 * says. The caller owns it. */
json_t *tl_control_stats_of(struct tl_control *control, const char *queue, struct tl_error *err);

/* All of it, from one pipeline. */
void tl_handle_stats(struct tl_control_call *call);

#endif
