/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for new entries in the streams of many queues. A command that blocks names all streams,
 * and Redis takes the client off all of them whenever one has an entry: with many queues that costs
 * more than the work itself. Above TL_WAKES_BLOCKING_MAX a program therefore lets the server
 * remember what it has read (client tracking, opt-in), learns over a second connection which
 * streams were written since, and reads only those. The server tells once, and remembers the stream
 * again at the next read. In case a message is lost, all streams are read once in
 * TL_WAKES_SWEEP_MS.
 */
#ifndef TL_WAKES_H
#define TL_WAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/redis.h"

/* The most streams that one blocking command waits for. */
#define TL_WAKES_BLOCKING_MAX 32
#define TL_WAKES_SWEEP_MS     1000

struct tl_wakes;

/* This stream was written since it was read, or (key NULL) all may have been. */
typedef void tl_wakes_note(void *context, const char *key);

/* Opens nothing yet. NULL when out of memory. */
struct tl_wakes *tl_wakes_new(tl_wakes_note *note, void *context);
void tl_wakes_free(struct tl_wakes **wakes);

/* Waits up to wait_ms until something is noted. redis: the connection that reads the streams. False
 * when one of the two connections broke; then all streams are noted again later. */
bool tl_wakes_wait(struct tl_wakes *wakes, struct tl_redis *redis, int64_t wait_ms,
                   struct tl_error *err);
/* Sends `read`, which must not block, and returns its reply. The server remembers the keys of
 * `look`, which runs before it, or of `read` itself if look is NULL. It remembers only those of
 * commands that do not write, so XREADGROUP needs a look. */
struct tl_reply *tl_wakes_read(struct tl_redis *redis, const struct tl_args *look,
                               const struct tl_args *read, struct tl_error *err);

#endif
