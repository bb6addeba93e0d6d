/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of queues, a page at a time as the client reads: in bounded memory. Each has connections
 * to the store of its own; only a few run at once. Thread-safe. */
#ifndef TL_ADMIN_EXPORTS_H
#define TL_ADMIN_EXPORTS_H

#include "common/config/settings.h"
#include "common/control/control.h"
#include "worker/admin/pool.h"
#include "worker/admin/stream.h"

#define TL_ADMIN_EXPORTS_MAX 2u

struct tl_admin_exports;

struct tl_admin_exports *tl_admin_exports_new(const struct tl_config *config,
                                              struct tl_admin_pool *pool, struct tl_error *err);
/* Breaks all of them off, and begins no more. */
void tl_admin_exports_end(struct tl_admin_exports *exports);
/* After the last job has run and the last response is closed. */
void tl_admin_exports_free(struct tl_admin_exports **exports);

/* On a thread of the pool: begins an export. type: its Content-Type, static. NULL: the answer is a
 * problem. The caller makes the response of it. */
struct tl_admin_stream *tl_admin_exports_open(struct tl_admin_exports *exports,
                                              const struct tl_control_request *request,
                                              const char **type, struct tl_control_answer *answer);

#endif
