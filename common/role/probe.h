/* One small HTTP request, to learn whether a program of ours is alive or ready. */
#ifndef TL_PROBE_H
#define TL_PROBE_H

#include <stdint.h>

/* GET path from where a program listens: its host as configured (an address or a name; one that
 * means every address, 0.0.0.0 or ::, is asked at loopback) and its port. Returns the status code,
 * or -1 when no answer came within timeout_ms, which bounds all of it but the look-up of a name. */
int tl_http_probe(const char *host, int port, const char *path, int64_t timeout_ms);

#endif
