/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a queue, which graphs show: its numbers every 10 s for a day and every minute for
 * a week, as the expirer notes them (expirer/history.lua). While nothing changes there is a point
 * every ten minutes only: a point holds until the next one.
 */
#ifndef TL_CONTROL_HISTORY_H
#define TL_CONTROL_HISTORY_H

#include "common/control/call.h"

struct tl_history_span {
    bool minutes;           /* the points of minutes, not of 10 s */
    int64_t from_ms, to_ms; /* Unix time by the store's clock */
    size_t most;            /* of these points at most: the latest */
};

/* The points of this span, oldest first, and before them the one that holds at its beginning, if
 * there is one. Each is [at, mode, value...], with the values of the fields HISTORY of
 * protocol.def; 0 for what a point lacks. NULL with err. */
json_t *tl_history_points(struct tl_redis *redis, const struct tl_keys *keys,
                          const struct tl_history_span *span, struct tl_error *err);

void tl_handle_history(struct tl_control_call *call);

#endif
