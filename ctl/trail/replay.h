/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of a queue as its trail tells it, leaf by leaf: was each admission the turn of who was
 * admitted, under the rules in force? Nothing here uses the clock, files or the network.
 */
#ifndef TL_CTL_REPLAY_H
#define TL_CTL_REPLAY_H

#include "common/archive/leaf.h"

/* Something that is not as it has to be. */
struct tl_finding {
    uint64_t leaf, against; /* numbers, from 0: its own, and which it contradicts (replay.c) */
    int64_t ms;
    char text[240];
};

struct tl_replay;

/* Freed by tl_replay_free. */
struct tl_replay *tl_replay_new(void);
void tl_replay_free(struct tl_replay *replay);
/* The next leaf, with this number. */
void tl_replay_take(struct tl_replay *replay, uint64_t number, const struct tl_leaf *leaf);
/* Something about a leaf that cannot be read. */
void tl_replay_note(struct tl_replay *replay, uint64_t number, const char *text);

struct tl_replay_result {
    const struct tl_finding *findings;
    size_t n_findings;
    uint64_t entered, restored, admitted, ended;
    uint64_t gaps; /* after which everybody was told again */
    uint64_t
        unprovable; /* admissions and ends of which a gap leaves open whether they were right */
};
/* What came of it, when no more of the last step follows. Borrowed, until the next leaf. */
struct tl_replay_result tl_replay_result(struct tl_replay *replay);

#endif
