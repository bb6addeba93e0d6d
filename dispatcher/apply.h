/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying ingest entries: a pipeline of calls of the function apply, in stream order. Small
 * entries share a call, which saves the cost of many calls; the function still applies each entry
 * by itself, once and in order.
 */
#ifndef TL_APPLY_H
#define TL_APPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/role/roster.h"
#include "common/store/redis.h"
#include "common/store/streams.h"

#include "generated/protocol.h"

#define TL_APPLY_ENTRIES_MAX 256 /* in one pipeline; TL_APPLY_CALL_ENTRIES_MAX in one call */
#define TL_READ_ENTRIES_MIN  64
#define TL_READ_ENTRIES_MAX  TL_APPLY_ENTRIES_MAX
#define TL_READ_COMMANDS     20000

struct tl_apply;

struct tl_apply_counts {
    uint64_t applied, repeated, commands, poison, lost;
    char last[TL_STREAM_ID_MAX]; /* id of the last entry of a pipeline without error; "" for none */
};

struct tl_apply *tl_apply_new(uint64_t events_length); /* NULL when out of memory */
void tl_apply_free(struct tl_apply **apply);

/* Applies entries of the ingest stream, [id, [field, value]] each, in pipelines of
 * TL_APPLY_ENTRIES_MAX, and adds what became of them to counts. An entry that cannot be decoded, or
 * whose payload was trimmed away while it was pending (NULL), is set aside in the poison stream and
 * logged. False with the first error: from that entry on, the entries are still pending and must be
 * read again. After TL_ERR_NOFUNCTION the library is loaded. */
bool tl_apply_entries(struct tl_apply *apply, const struct tl_held_queue *held,
                      const struct tl_reply *entries, struct tl_apply_counts *counts,
                      struct tl_error *err);

/* How many entries to read next, after these were applied: about TL_READ_COMMANDS commands in
 * entries as large as the last ones. Between two reads the store waits for us, which small reads
 * would make it do often; a read of large entries must not take long enough to lose a lease. */
uint64_t tl_apply_read_size(const struct tl_apply_counts *counts);

#endif
