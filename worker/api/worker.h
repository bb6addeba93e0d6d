/* SPDX-License-Identifier: Apache-2.0 */
/* The visitor's side of a worker process: the HTTP API, the waiting page, and the queues behind
 * both. Everything here belongs to the loop's thread. */
#ifndef TL_API_H
#define TL_API_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"
#include "worker/visit/visit.h"

/* Starts a worker that has what the process gives it; the rest is zero. files: whose queues in
 * passthrough count, as it was read last. False: tl_worker_free frees what there is. */
bool tl_worker_start(struct tl_worker *worker, const struct tl_config *files, uv_loop_t *loop,
                     struct tl_error *err);
/* Gives every request still held its answer. */
void tl_worker_stop(struct tl_worker *worker);
/* After tl_worker_stop, when no request is left; or before it was started. May be called again. */
void tl_worker_free(struct tl_worker *worker);
/* Takes over the keys of a new configuration, the events of its queues, and which of them it lets
 * everyone into; on failure the old ones stay. */
bool tl_worker_reload(struct tl_worker *worker, const struct tl_config *config,
                      struct tl_error *err);

/* The server's callback; context is the worker. */
void tl_worker_handle(void *context, struct tl_request *request, const struct tl_refusal *refusal);

/* Takes a change in the store, for the follower; context is the worker. */
void tl_worker_take(void *context, struct tl_change *change);

/* Call every tick. */
void tl_worker_tick(struct tl_worker *worker, int64_t now_ms);
/* Does nobody wait for anything, and no command for its outcome? While the worker drains,
 * it ends then. */
bool tl_worker_idle(const struct tl_worker *worker);

#endif
