/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs of misuse at a queue: what one worker process saw in ten seconds, as an entry of the stream
 * tl:{q}:signs (docs/contributors/wire-format.md). Workers write it, and
 * the numbers of a queue have the sums (common/control/stats.lua).
 */
#ifndef TL_SIGNS_H
#define TL_SIGNS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/net.h"

enum {
    TL_SIGNS_NETWORKS = 3, /* named of each kind */
    TL_SIGNS_PERIOD_MS = 10000,
    TL_SIGNS_KEPT = 256, /* entries of a queue */
    TL_SIGNS_TEXT_MAX = 768,
};

struct tl_sign_network {
    struct tl_prefix prefix;
    uint64_t count;
};

struct tl_sign_networks {
    size_t n;
    struct tl_sign_network list[TL_SIGNS_NETWORKS]; /* those with most first */
};

struct tl_signs {
    uint64_t failed; /* checks with a ticket or pass that opens nothing */
    uint64_t shared; /* sessions that several clients use in turn */
    uint64_t fast;   /* sessions checked faster than a person browses */
    struct tl_sign_networks joins, failures;
};

/* Keeps the network if it is among those with most. */
void tl_sign_networks_add(struct tl_sign_networks *networks, const struct tl_prefix *prefix,
                          uint64_t count);

/* One entry as text: "FAILED SHARED FAST", then " joins PREFIX COUNT" and " failed PREFIX COUNT".
 */
void tl_signs_format(const struct tl_signs *signs, char text[TL_SIGNS_TEXT_MAX]);

#endif
