/* SPDX-License-Identifier: Apache-2.0 */
/* The visitors who wait and are active in a replay, and the rules that are in force. */
#ifndef TL_CTL_TRAIL_LINE_H
#define TL_CTL_TRAIL_LINE_H

#include "common/archive/leaf.h"
#include "common/line/placemap.h"
#include "common/line/turns.h"

enum tl_trail_state { TL_TRAIL_GONE, TL_TRAIL_WAITS, TL_TRAIL_ACTIVE };

struct tl_trail_place {
    uint64_t seq, leaf; /* leaf: the last one that changed it */
    int64_t since_ms;   /* that it has this seq, as far as is known; 0: since now */
    unsigned char lane;
    unsigned char state; /* enum tl_trail_state; who is gone stays: a seq is given once */
    bool told;           /* since the last gap began */
    bool drawn;          /* by the draw it got this seq */
    char who[TL_LEAF_WHO_SIZE];
};

/* Zeroed: nobody. */
struct tl_trail_line {
    struct tl_trail_place *places;
    size_t n, capacity;
    struct tl_placemap by_seq; /* seq -> index + 1 */
    struct {
        struct tl_trail_heap {
            size_t *of; /* indices, the lowest seq first; some no longer wait there */
            size_t n, capacity;
        } heaps[2]; /* of those who were not told, and of those who were */
        uint64_t waiting;
    } lanes[TL_LANES_MAX];
    uint64_t active; /* of those told */
};

void tl_trail_line_free(struct tl_trail_line *line);
tl_place tl_trail_place_of(const struct tl_trail_place *at);
/* The visitor with the seq of this place, also one who is gone; NULL: it was not given. Valid until
 * the next put. */
struct tl_trail_place *tl_trail_line_find(const struct tl_trail_line *line, tl_place place);
/* Puts the visitor there, instead of who was there. */
struct tl_trail_place *tl_trail_line_put(struct tl_trail_line *line, tl_place place,
                                         const char *who, enum tl_trail_state state, uint64_t leaf);
void tl_trail_line_remove(struct tl_trail_line *line, struct tl_trail_place *at);
/* The first who waits in this lane, of those who were told, or not; NULL: nobody. */
const struct tl_trail_place *tl_trail_line_first(struct tl_trail_line *line, unsigned lane,
                                                 bool told);
/* A gap: nobody is told. */
void tl_trail_line_doubt(struct tl_trail_line *line);
/* Removes those who were not told since. Returns how many. */
uint64_t tl_trail_line_settle(struct tl_trail_line *line);

struct tl_trail_rules {
    bool known;   /* each of them can be read */
    bool drawn;   /* who comes before opens_ms is drawn */
    bool shut;    /* the mode admits nobody */
    bool bounded; /* at most `most` may be active */
    uint64_t most, leaf;
    int64_t opens_ms;
    uint64_t per_window; /* admissions in any window of window_ms; 0: any number */
    int64_t window_ms;
    struct tl_weights weights;
    struct tl_turns turns; /* as they were then */
    char mode[24];
};

/* Reads the detail of a leaf of rules. */
void tl_trail_rules_read(struct tl_trail_rules *rules, const char *detail, uint64_t leaf);

#endif
