/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a queue in Redis, as the archiver reads them. */
#ifndef TL_ARCHIVE_ENTRIES_H
#define TL_ARCHIVE_ENTRIES_H

#include "common/role/roster.h"
#include "common/store/reply.h"

enum { TL_ENTRY_ID_MAX = 48 };

/* The entries of a stream of the queue after this id, `most` of them. NULL with err. */
struct tl_reply *tl_entries_after(const struct tl_held_queue *held, enum tl_key stream,
                                  const char *id, const char *most, struct tl_error *err);
/* Drops those of its record up to this id; "" or "0-0": none. */
bool tl_entries_drop(const struct tl_held_queue *held, const char *id, struct tl_error *err);
/* Is the queue there, and not deleted? */
bool tl_entries_queue_exists(const struct tl_held_queue *held, bool *is_there,
                             struct tl_error *err);

#endif
