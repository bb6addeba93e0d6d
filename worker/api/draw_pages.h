/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of a draw, for everyone: GET /v1/queues/{queue}/draw?from=&limit=, a page at a time.
 * Hash, seed and how many were drawn are in memory; the draw ids are in the store, which the ingest
 * thread asks while the request is held. How many requests wait, and how often an address may ask,
 * is bounded.
 */
#ifndef TL_DRAW_PAGES_H
#define TL_DRAW_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "worker/visit/context.h"

struct tl_draw_pages;

/* NULL when out of memory. */
struct tl_draw_pages *tl_draw_pages_new(void);
/* Call when nothing waits any more. NULL allowed; clears the caller's pointer. */
void tl_draw_pages_free(struct tl_draw_pages **pages);

/* The store's answer (tl_ingest_drawn): the bytes of the ids, or NULL if it could not say. */
void tl_draw_page_read(struct tl_worker *worker, uint64_t number, const void *ids, size_t length);
/* Call every tick: refuses what has reached its deadline. */
void tl_draw_pages_tick(struct tl_worker *worker, int64_t now_ms);
/* Refuses all that wait, as the process stops. */
void tl_draw_pages_stop(struct tl_worker *worker);
/* Requests that wait. */
uint64_t tl_draw_pages_count(const struct tl_draw_pages *pages);

#endif
