/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying ingest entries: a pipeline of calls of the function apply, in stream order. Small
 * entries share a call, which saves the cost of many calls; the function still applies each entry
 * by itself, once and in order.
 */
#ifndef TL_APPLY_H
#define TL_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/keys.h"
#include "common/store/redis.h"

#include "generated/protocol.h"

#define TL_APPLY_ENTRIES_MAX 256 /* in one pipeline; TL_APPLY_CALL_ENTRIES_MAX in one call */
#define TL_STREAM_ID_MAX     48
#define TL_READ_ENTRIES_MIN  64
#define TL_READ_ENTRIES_MAX  TL_APPLY_ENTRIES_MAX
#define TL_READ_COMMANDS     20000

struct tl_apply;

struct tl_apply_counts {
    uint64_t applied, repeated, commands, poison, lost;
};

struct tl_apply *tl_apply_new(uint64_t events_length); /* NULL when out of memory */
void tl_apply_free(struct tl_apply **apply);

/* Begins a pipeline for one queue. redis and keys are borrowed until tl_apply_finish, which is
 * called also when add failed. */
void tl_apply_begin(struct tl_apply *apply, struct tl_redis *redis, const struct tl_keys *keys,
                    uint64_t fence);

/* Adds the next entry of the stream, TL_APPLY_ENTRIES_MAX at most. id is copied. An entry that
 * cannot be decoded is set aside. payload NULL means that it was trimmed away while the entry was
 * pending, which is logged as an error. */
bool tl_apply_add(struct tl_apply *apply, const char *id, const void *payload, size_t length,
                  struct tl_error *err);

/* Waits for the results of all entries and adds them to counts. False with the first error: from
 * that entry on, the entries are still pending and must be read again. After TL_ERR_NOFUNCTION the
 * library is loaded. */
bool tl_apply_finish(struct tl_apply *apply, struct tl_apply_counts *counts, struct tl_error *err);

/* How many entries to read next, after these were applied: about TL_READ_COMMANDS commands in
 * entries as large as the last ones. Between two reads the store waits for us, which small reads
 * would make it do often; a read of large entries must not take long enough to lose a lease. */
uint64_t tl_apply_read_size(const struct tl_apply_counts *counts);

#endif
