/* SPDX-License-Identifier: Apache-2.0 */
/* How much work a puzzle asks for: little at rest, more while many visitors join. It follows the
 * joins that were paid for with work, and not the puzzles handed out: so raising it costs work,
 * too. A value; all zero at first. now_ms: local monotonic time. */
#ifndef TL_EFFORT_H
#define TL_EFFORT_H

#include <stdint.h>

enum {
    TL_EFFORT_BITS_MIN = 12, /* 16 parts of 12 bits are 65,536 hashes on average */
    TL_EFFORT_BITS_MAX = 16, /* sixteen times as much */
    TL_EFFORT_REST = 100     /* joins a second; from there on, each doubling adds a bit */
};

struct tl_effort {
    int64_t window;         /* its number */
    uint64_t count, before; /* joins in this window and in the one before it */
};

/* Counts a join. */
void tl_effort_count(struct tl_effort *effort, int64_t now_ms);
/* The zero bits that each part of a puzzle needs now. */
unsigned tl_effort_bits(const struct tl_effort *effort, int64_t now_ms);

#endif
