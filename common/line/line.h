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
#include "common/wire/events.h"
#include "common/wire/place.h"

struct tl_line;

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
};

struct tl_line *tl_line_new(void);
void tl_line_free(struct tl_line **line);

uint64_t tl_line_generation(const struct tl_line *line);
uint64_t tl_line_waiting(const struct tl_line *line);
uint64_t tl_line_active(const struct tl_line *line);

/* Looks one place up. */
struct tl_line_view tl_line_look(const struct tl_line *line, tl_place place);

enum tl_line_result {
    TL_LINE_APPLIED,
    TL_LINE_OLD, /* already contained: nothing to do */
    TL_LINE_GAP, /* events are missing or the generation changed: rebuild from a snapshot */
    TL_LINE_NOMEM,
};
/* Applies one entry of the events stream, in order. now_ms: local monotonic time, for remembering
 * ends. */
enum tl_line_result tl_line_apply(struct tl_line *line, const struct tl_event_entry *entry,
                                  int64_t now_ms);

/* Forgets ends older than an hour, at most `limit` of them; call it regularly. Returns how many. */
size_t tl_line_forget(struct tl_line *line, int64_t now_ms, size_t limit);

/* The order index of one lane, borrowed; NULL for a lane that had no visitor yet. */
const struct tl_order *tl_line_order(const struct tl_line *line, unsigned lane);
size_t tl_line_bytes(const struct tl_line *line);

/* For the snapshot: sets what a head knows, then adds what the pages hold. False when out of
 * memory. */
void tl_line_start(struct tl_line *line, uint64_t generation, uint64_t event);
bool tl_line_add_waiting(struct tl_line *line, tl_place first, uint64_t count);
bool tl_line_add_active(struct tl_line *line, tl_place place, int64_t deadline_ms);

#endif
