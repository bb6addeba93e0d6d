/* SPDX-License-Identifier: Apache-2.0 */
/* One small HTTP request that tells whether a program of ours is alive or ready. */
#ifndef TL_PROBE_H
#define TL_PROBE_H

#include <stddef.h>
#include <stdint.h>

/* Sends GET to the host and port that a program listens on. host is an address or a name as
 * configured; 0.0.0.0 and ::, which mean every address, are asked at loopback. Returns the status
 * code, or -1 without an answer within timeout_ms, which bounds everything but the name lookup. The
 * body, which must fit into `size` bytes with a zero behind it, is read unless `body` is NULL. */
int tl_http_get(const char *host, int port, const char *path, int64_t timeout_ms, char *body,
                size_t size);

#endif
