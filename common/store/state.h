/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a queue, tl:{q}:state, as programs read it: one reader for all that is in it. Fields
 * that cannot be read count as not there (docs/contributors/wire-format.md).
 */
#ifndef TL_STATE_H
#define TL_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/draw.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

#include "generated/protocol.h"

/* The draw (common/store/line/draw.lua). */
struct tl_draw_record {
    enum tl_draw_phase phase;
    int64_t opens_at_ms;  /* of the draw, once there is a phase */
    uint64_t cut;         /* seqs up to this one were given before the opening */
    uint64_t first, last; /* the drawn got theirs from `first` on; latecomers are after `last` */
    uint64_t drawn;       /* how many */
    uint64_t event;       /* DONE: a line from before this event is in the order of arrival */
    int64_t announced_for_ms; /* the opening that hash and salt are of; 0: none is announced */
    char hash[TL_DRAW_KEY_DIGITS + 1]; /* of the seed */
    char seed[TL_DRAW_KEY_DIGITS + 1]; /* "" until the draw is done */
    unsigned char salt[TL_DRAW_KEY_BYTES];
};

/* The recovery of a queue whose data the store has lost (common/store/line/recovery.lua). */
struct tl_recovery {
    uint64_t lost_generation; /* whose places come back; 0: not known */
    uint64_t present;         /* generation of the queue */
    int64_t until_ms;         /* nobody is admitted until then, store's Unix time; 0: no recovery */
    uint64_t lost_size;       /* how many were waiting or active, as workers remember; 0: unknown */
    uint64_t restored;        /* how many have come back */
    int64_t full_since_ms;    /* of the line, beside the recovery: since when it is full; 0: it is
                                 not (line/settings.lua) */
    struct tl_draw_record draw; /* whose places changed, too */
};

/* Bytes of the turns as text, with the terminating zero: weights, period, and a number for each
 * lane. */
#define TL_TURNS_FIELD_MAX 288

/* Whose turn it is between lanes with weights (common/line/turns.h). */
struct tl_turns_state {
    uint64_t event;                 /* the last one counted in it */
    char field[TL_TURNS_FIELD_MAX]; /* "": none */
};

/* What to read beside the generation. Each field costs bytes on the wire, and time of the store. */
enum {
    TL_STATE_BASE_SEQ = 1 << TL_FIELD_BASE_SEQ,
    TL_STATE_EVENT = 1 << TL_FIELD_EVENT,
    TL_STATE_SIZES = 1 << TL_FIELD_WAITING | 1 << TL_FIELD_ACTIVE,
    TL_STATE_COUNTERS = TL_STATE_BASE_SEQ - 1, /* those, and the totals */
    TL_STATE_CAPACITY = 1 << TL_FIELD_CAPACITY_NOW | 1 << TL_FIELD_CAPACITY_WHY,
    TL_STATE_TURNS = TL_STATE_EVENT | 1 << TL_FIELD_TURNS,
    TL_STATE_DRAW = 1 << TL_FIELD_DRAW | 1 << TL_FIELD_DRAW_HASH | 1 << TL_FIELD_DRAW_SEED,
    TL_STATE_RECOVERY = TL_STATE_DRAW | 1 << TL_FIELD_LOST_GENERATION | 1 << TL_FIELD_LOST_SIZE |
                        1 << TL_FIELD_RECOVER_UNTIL | 1 << TL_FIELD_RESTORED |
                        1 << TL_FIELD_FULL_SINCE,
};

struct tl_state {
    uint64_t generation;
    uint64_t base_seq; /* tells one incarnation from another */
    uint64_t seq, event, waiting, active;
    uint64_t totals[TL_TOTAL_REMOVED + 1];
    uint64_t capacity_now;       /* 0: none is known */
    bool is_reported;            /* capacity_now follows fresh reports of the site */
    struct tl_recovery recovery; /* and the draw */
    struct tl_turns_state turns;
};

/* Reads these fields (TL_STATE_...); the others are 0. TL_ERR_NOQUEUE when there is no queue. */
bool tl_state_read(struct tl_redis *redis, const struct tl_keys *keys, unsigned fields,
                   struct tl_state *state, struct tl_error *err);

/* The same in two steps: appends the names of the fields; takes their values, in the same order. */
void tl_state_append(struct tl_args *args, unsigned fields);
void tl_state_parse(const struct tl_reply *values, unsigned fields, struct tl_state *state);

#endif
