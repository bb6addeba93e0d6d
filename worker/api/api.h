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
#include "worker/page/languages.h"
#include "worker/queue/env.h"
#include "worker/queue/holds.h"
#include "worker/queue/queues.h"
#include "worker/verify/verifier.h"

struct tl_api;

struct tl_api_settings {
    const struct tl_config *config;
    /* Whose keys, pages of events and queues in passthrough count: that of the last SIGHUP before
     * this start, or `config`. */
    const struct tl_config *files;
    const struct tl_languages *languages; /* of the pages; borrowed */
    struct tl_queue_env *env;             /* the api sets its callbacks */
    uv_loop_t *loop;
    struct tl_limiter *limiter; /* of all processes */
    struct tl_sharing *sharing; /* likewise */
    void *process;              /* for the callback */
    /* Are connections left for another event stream or long poll, and for the requests beside it?
     */
    bool (*stream_fits)(void *process);
};

/* Can an api be made with these secrets? Reads the files with them and keeps nothing. `make`: makes
 * missing files with keys that sign; nothing below does. The pages: worker/page/event_look.h. */
bool tl_api_check_secrets(const struct tl_config *config, bool make, struct tl_error *err);

/* Reads keys and the look of the pages. All settings are borrowed. NULL on failure. */
struct tl_api *tl_api_new(const struct tl_api_settings *settings, struct tl_error *err);
/* Gives every request still held its answer. */
void tl_api_stop(struct tl_api *api);
/* After tl_api_stop, when no request is left. NULL allowed; clears the caller's pointer. */
void tl_api_free(struct tl_api **api);
/* Takes over the keys of a new configuration, the events of its queues, and which of them it lets
 * everyone into; on failure the old ones stay. */
bool tl_api_reload(struct tl_api *api, const struct tl_config *config, struct tl_error *err);

/* The bytes that the api needs of each request (tl_request_visit). */
extern const size_t tl_api_visit_size;
/* The server's callbacks; context is the api. */
void tl_api_handle(void *context, struct tl_request *request);
void tl_api_too_large(void *context, struct tl_request *request);
void tl_api_malformed(void *context, struct tl_request *request, const char *problem);

/* The challenge service has spoken: for the verifier; context is the api. */
void tl_api_verified(void *context, uint64_t number, const struct tl_verdict *verdict);
/* The draw ids of a question to the store, or NULL if it could not say. */
void tl_api_drawn(struct tl_api *api, uint64_t number, const void *ids, size_t length);
/* Call every tick. */
void tl_api_tick(struct tl_api *api, int64_t now_ms);
/* Requests that wait for the challenge service, or for a page of a draw's list. */
uint64_t tl_api_held(const struct tl_api *api);

/* Of the key that signs tickets now (tl_keyring_fingerprint). */
uint32_t tl_api_ticket_key(const struct tl_api *api);
struct tl_queues *tl_api_queues(const struct tl_api *api);
struct tl_holds *tl_api_holds(const struct tl_api *api);
/* The trusted proxies. */
const struct tl_networks *tl_api_proxies(const struct tl_api *api);

#endif
