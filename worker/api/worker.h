/* SPDX-License-Identifier: Apache-2.0 */
/* The visitor's side of a worker process: the HTTP API, the waiting page, and the queues behind
 * both. Everything here belongs to the loop's thread. */
#ifndef TL_API_H
#define TL_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"
#include "common/base/net.h"
#include "common/config/config.h"
#include "worker/http/limiter.h"
#include "worker/http/request.h"
#include "worker/http/sharing.h"
#include "worker/page/look.h"
#include "worker/queue/env.h"
#include "worker/queue/queues.h"
#include "worker/verify/verifier.h"
#include "worker/visit/context.h"

struct tl_worker_settings {
    const struct tl_config *config;
    const struct tl_config *files; /* whose queues in passthrough count: as it was read last */
    const struct tl_brand *brand;  /* of the pages */
    struct tl_event_looks *events; /* likewise; replaced at a reload */
    struct tl_secrets *secrets;    /* taken over, so that these are empty */
    struct tl_queue_env *env;      /* the worker sets its callbacks */
    uv_loop_t *loop;
    struct tl_limiter *limiter; /* of all processes */
    struct tl_sharing *sharing; /* likewise */
    void *process;              /* for the callback */
    /* Are connections left for another event stream or long poll, and for the requests beside it?
     */
    bool (*stream_fits)(void *process);
};

/* All settings but the secrets are borrowed. NULL on failure. */
struct tl_worker *tl_worker_new(const struct tl_worker_settings *settings, struct tl_error *err);
/* Gives every request still held its answer. */
void tl_worker_stop(struct tl_worker *worker);
/* After tl_worker_stop, when no request is left. NULL allowed; clears the caller's pointer. */
void tl_worker_free(struct tl_worker **worker);
/* Takes over the keys of a new configuration, the events of its queues, and which of them it lets
 * everyone into; on failure the old ones stay. */
bool tl_worker_reload(struct tl_worker *worker, const struct tl_config *config,
                      struct tl_error *err);

/* The bytes that the worker needs of each request (tl_request_visit). */
extern const size_t tl_worker_visit_size;
/* The server's callbacks; context is the worker. */
void tl_worker_handle(void *context, struct tl_request *request);
void tl_worker_too_large(void *context, struct tl_request *request);
void tl_worker_malformed(void *context, struct tl_request *request, const char *problem);

/* Call every tick. */
void tl_worker_tick(struct tl_worker *worker, int64_t now_ms);
#endif
