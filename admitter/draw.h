/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding the draws of queues with `order: draw`: publishes the hash of the seed before the
 * opening, and renumbers the line at the opening, in the order that common/auth/draw.h defines. The
 * steps are admitter/draw.lua; this reads the line, computes the order and goes on from step to
 * step.
 *
 * A process that is killed leaves a draw half done. Any other goes on: those who are numbered stand
 * in front, and the rest is numbered in the same order as before.
 */
#ifndef TL_ADMITTER_DRAW_H
#define TL_ADMITTER_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/role/roster.h"
#include "common/store/actor.h"

struct tl_drawer; /* of a process */
struct tl_draw;   /* of a queue, while it is held */

/* key_path names the file with the secret (tl_draw_secret_load), which is read when it is first
 * needed; it is borrowed. The end of a draw is recorded as done by the actor. NULL when out of
 * memory. */
struct tl_drawer *tl_drawer_new(const char *key_path, uint64_t events_length,
                                const struct tl_actor *actor);
void tl_drawer_free(struct tl_drawer **drawer);
void tl_draw_free(struct tl_draw **draw);

enum tl_draw_state {
    TL_DRAW_OVER,    /* there is nothing to do, or it is done */
    TL_DRAW_GOES_ON, /* call again at once */
    TL_DRAW_WAITS,   /* call again soon: joins from before the opening are on their way */
};

/* Publishes the hash for this opening (Unix ms). TL_ERR_INVALID when another one is published
 * already, by an admitter with another secret. */
bool tl_drawer_announce(struct tl_drawer *drawer, const struct tl_held_queue *held,
                        int64_t opens_at_ms, struct tl_error *err);

/* Works on the draw for at most about `most_ms`. *draw is NULL at first and kept by the caller; it
 * is freed when the draw is over, and by tl_draw_free. */
bool tl_drawer_hold(struct tl_drawer *drawer, const struct tl_held_queue *held, int64_t opens_at_ms,
                    int64_t most_ms, struct tl_draw **draw, enum tl_draw_state *state,
                    struct tl_error *err);

#endif
