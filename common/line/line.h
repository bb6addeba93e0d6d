/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of one queue in memory: waiting places, active places with their deadlines, ended places
 * with their reasons. Built from a snapshot and updated by events; answers positions without asking
 * the store. Applying an event twice, or an event that the snapshot already contains, changes
 * nothing. Not thread-safe; may be handed from one thread to another.
 */
#ifndef TL_LINE_H
#define TL_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/line/order.h"
#include "common/line/placemap.h"
#include "common/line/turns.h"
#include "common/wire/events.h"
#include "common/wire/place.h"

/* Read everywhere, written here and by the snapshot that builds it. */
struct tl_line {
    uint64_t generation;
    uint64_t event;        /* number of the last one applied */
    uint64_t compare_from; /* The snapshot contains nothing later than this event: from there on
                              sizes are compared. UINT64_MAX, as at first: they are not */
    uint64_t last_seq;     /* the last one used in any lane, as far as known; 0: not known */
    /* The store has lost which places with a seq after the first and up to the second were given.
     * base_seq is the base of the incarnation: its seqs lie above it. 0: not known. */
    uint64_t found_seq, base_seq;
    struct tl_order lanes[TL_LANES_MAX];
    uint32_t lanes_used;        /* a bit for each lane that had a visitor */
    struct tl_placemap active;  /* place -> deadline */
    struct tl_placemap ended;   /* place -> end, for line.c to read */
    struct tl_placemap serials; /* seq -> serial; as long as the place, or its end, is known */
    /* Ends in the order they happened, so that tl_line_forget need not search. A ring of places. */
    tl_place *end_order;
    size_t end_first, end_count, end_capacity;
    struct tl_turns turns;  /* of the lanes */
    uint64_t turns_counted; /* up to this event */
};

enum tl_line_status {
    TL_LINE_UNKNOWN, /* neither waiting nor active; ended too long ago to be remembered here, or
                        never was */
    TL_LINE_WAITING,
    TL_LINE_ACTIVE,
    TL_LINE_ENDED,
};

struct tl_line_view {
    enum tl_line_status status;
    uint64_t ahead; /* WAITING: visitors who will be admitted before; the position is ahead + 1 */
    int64_t deadline_ms;   /* ACTIVE: Redis server time, Unix ms */
    enum tl_reason reason; /* ENDED */
    bool called; /* WAITING, and has the next turn (worker/queue/queue.h); the line never says so */
};

struct tl_line *tl_line_new(void);
void tl_line_free(struct tl_line **line);

uint64_t tl_line_waiting(const struct tl_line *line);
uint64_t tl_line_active(const struct tl_line *line);

/* The front of a lane: the seq before the first one that waits; of an empty lane, the last one of
 * the queue that is known to be used. No place up to it waits now. 0: not known. */
uint64_t tl_line_front(const struct tl_line *line, unsigned lane);

/* The first waiting places, at most `most`, in the order in which they are admitted if nobody joins
 * or leaves. Returns how many. */
size_t tl_line_first(const struct tl_line *line, tl_place *places, size_t most);

/* The place by which the line knows the visitor of this place: another one after a move to another
 * lane, which keeps the seq. The place itself where the line knows none. */
tl_place tl_line_find(const struct tl_line *line, tl_place place);

/* The serial of the place: tickets with a lower one do not count, since the place is on another
 * device. 0: it was never handed over. A lane does not matter. */
uint32_t tl_line_serial(const struct tl_line *line, tl_place place);

/* Looks one place up. */
struct tl_line_view tl_line_look(const struct tl_line *line, tl_place place);

enum tl_line_result {
    TL_LINE_APPLIED,
    TL_LINE_OLD,     /* already contained: nothing to do */
    TL_LINE_GAP,     /* events are missing or the generation changed: rebuild from a snapshot */
    TL_LINE_DIFFERS, /* applied, but the line has other sizes than the entry says: rebuild, too */
    TL_LINE_NOMEM,
};
/* Applies one entry of the events stream, in order. now_ms: local monotonic time, for remembering
 * ends. */
enum tl_line_result tl_line_apply(struct tl_line *line, const struct tl_event_entry *entry,
                                  int64_t now_ms);

/* Ends remembered, as many as the store keeps (line/visitor.lua): 21 MB. Beyond it the oldest are
 * forgotten; the store can be asked. */
#define TL_LINE_ENDS_MAX 500000
/* Forgets ends older than an hour, at most `limit` of them; call it regularly. Returns how many. */
size_t tl_line_forget(struct tl_line *line, int64_t now_ms, size_t limit);

/* The order index of one lane, borrowed; NULL for a lane that had no visitor yet. */
const struct tl_order *tl_line_order(const struct tl_line *line, unsigned lane);
size_t tl_line_bytes(const struct tl_line *line);

/* Is the place of the part of this generation that the store has lost? */
bool tl_line_lost(const struct tl_line *line, tl_place place);

/* The weights of the lanes by the settings; none: a lane is served while those before it are empty.
 */
void tl_line_weigh(struct tl_line *line, const struct tl_weights *weights);
/* The field `turns` of the store's state, as it was after this event: what events up to it admitted
 * is counted in it. */
void tl_line_set_turns(struct tl_line *line, const char *field, uint64_t event);

/* For the snapshot: sets what a head knows, then adds what the pages hold. False when out of
 * memory. */
void tl_line_start(struct tl_line *line, uint64_t generation, uint64_t event);
/* The store has lost which places with a seq after found_seq and up to base_seq were given. */
void tl_line_set_lost(struct tl_line *line, uint64_t found_seq, uint64_t base_seq);
bool tl_line_add_waiting(struct tl_line *line, tl_place first, uint64_t count);
/* Raises the serial of the place to this one. */
bool tl_line_add_serial(struct tl_line *line, tl_place place, uint32_t serial);
bool tl_line_add_active(struct tl_line *line, tl_place place, int64_t deadline_ms);

#endif
