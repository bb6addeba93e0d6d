/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the visitors of a line joined, from the events: seqs count up in time, so a few marks (this
 * seq joined at this time) tell it of every seq. Fixed memory: when there is no room for another
 * mark, every second one is dropped, and times become coarser.
 *
 * now_ms is local monotonic time.
 */
#ifndef TL_ARRIVALS_H
#define TL_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TL_ARRIVALS_MARKS = 1024 };

/* A zeroed one is empty. */
struct tl_arrivals {
    int64_t step_ms;  /* between two marks; 0: not begun */
    int64_t began_ms; /* when the first mark was set, or what of them is still known */
    size_t n;
    struct {
        uint64_t
            seq; /* the first of those who joined at this time or later, before the next mark */
        int64_t ms;
    } marks[TL_ARRIVALS_MARKS];
};

/* This seq joined now, or is the next one to join; all before it have joined. Older seqs than the
 * last mark are ignored. */
void tl_arrivals_note(struct tl_arrivals *arrivals, uint64_t seq, int64_t now_ms);
/* When this seq joined, not later than in truth and at most a step earlier. False: before the first
 * mark, so at *ms or earlier; with no mark at all *ms is now_ms. */
bool tl_arrivals_find(const struct tl_arrivals *arrivals, uint64_t seq, int64_t now_ms,
                      int64_t *ms);
/* The first seq that did not join at this time or before, as far as the marks tell; all before it
 * did. TL_PLACE_SEQ_MAX: all did; 0: that is not known of any. */
uint64_t tl_arrivals_after(const struct tl_arrivals *arrivals, int64_t ms);
/* Forgets marks that only seqs before this one need. */
void tl_arrivals_forget(struct tl_arrivals *arrivals, uint64_t seq);

#endif
