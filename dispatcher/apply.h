/*
 * Applying ingest entries: a pipeline of calls of the apply script, in stream order. Small entries
 * share a call, so that what a call costs by itself is paid once for them all; the script still
 * applies each of them by itself, once and in order.
 */
#ifndef TL_APPLY_H
#define TL_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/keys.h"
#include "common/store/redis.h"

#define TL_APPLY_ENTRIES_MAX      256 /* in one pipeline */
#define TL_APPLY_CALL_ENTRIES_MAX 100 /* in one call; the script refuses more */
#define TL_STREAM_ID_MAX          48

struct tl_apply;

struct tl_apply_counts {
    uint64_t applied, repeated, commands, poison, lost;
};

struct tl_apply *tl_apply_new(uint64_t events_length); /* NULL when out of memory */
void tl_apply_free(struct tl_apply **apply);

/* Queues one entry of the stream, the next one of this queue: TL_APPLY_ENTRIES_MAX at most before
 * tl_apply_settle, all of one queue and with the same fence. payload NULL: its payload is gone
 * (trimmed while pending), which is an alarm. An entry that cannot be decoded is queued to be set
 * aside. id is copied. */
bool tl_apply_add(struct tl_apply *apply, struct tl_redis *redis, const struct tl_keys *keys,
                  uint64_t fence, const char *id, const void *payload, size_t length,
                  struct tl_error *err);

/* Fetches the outcome of everything queued, always all of it. False with the first error: from that
 * entry on, the entries of the queue are to be read again from what is pending. Adds to counts. */
bool tl_apply_settle(struct tl_apply *apply, struct tl_redis *redis, struct tl_apply_counts *counts,
                     struct tl_error *err);

#endif
