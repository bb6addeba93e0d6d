/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything an operator does, as a function: one call is (method, target, body, If-Match,
 * Idempotency-Key, actor) -> (status, body, ETag). worker/admin serves these calls over HTTP, ctl/
 * makes them in process. Nobody else implements one. docs/integrators/openapi-admin.yaml describes
 * them, common/control/routes.h lists them.
 *
 * The caller has found out who asks and that the role suffices (routes.h). Everything else is
 * checked here.
 */
#ifndef TL_CONTROL_H
#define TL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/control/answer.h"

/* A connection to the store and what the calls need of the configuration. Not thread-safe: one for
 * each thread. */
struct tl_control;

/* config is borrowed and must outlive it. redis_url: NULL for that of the configuration. Opens no
 * connection: the first call does, and each call after it broke. */
struct tl_control *tl_control_new(const struct tl_config *config, const char *redis_url,
                                  struct tl_error *err);
void tl_control_free(struct tl_control **control);

/* Does the call. There is always an answer; clear it with tl_control_answer_clear. The routes that
 * stream (enum tl_control_kind) answer 406 here. */
void tl_control_call(struct tl_control *control, const struct tl_control_request *request,
                     struct tl_control_answer *answer);

#endif
