/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a queue's keys. All share the hash tag {queue}, so they live in one slot of a Redis
 * Cluster. */
#ifndef TL_KEYS_H
#define TL_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/names.h"

#include "generated/protocol.h"

#define TL_KEY_MAX 160

/* About how many events a change by others than the dispatcher, admitter and expirer keeps in the
 * stream. An argument of functions, so a text. */
#define TL_EVENTS_KEPT "20000"

/* The keys of a queue that is at hand: those of its line, which come first in enum tl_key. */
struct tl_keys {
    char queue[TL_QUEUE_NAME_MAX + 1];
    char names[TL_KEY_INGEST + 1][TL_KEY_MAX];
};

/* prefix is the configured redis.key_prefix (at most 31 bytes), queue a valid queue name. */
void tl_keys_init(struct tl_keys *keys, const char *prefix, const char *queue);
/* The same for any text: TL_ERR_INVALID when it is no valid queue name. */
bool tl_keys_of(struct tl_keys *keys, const char *prefix, const char *queue, struct tl_error *err);

/* The chunk of a seq; *offset (may be NULL) gets its bit in that chunk's bitmap. */
uint64_t tl_presence_chunk(uint64_t seq, uint64_t *offset);
/* Sets TL_ERR_NOQUEUE with its sentence: there is no such queue. Returns false. */
bool tl_keys_fail_missing(const struct tl_keys *keys, struct tl_error *err);
/* Writes the name of any key of the queue, or the prefix of keys. Returns name. */
const char *tl_key(const struct tl_keys *keys, enum tl_key key, char name[TL_KEY_MAX]);
/* The same for a key of no queue. These are in the slot of tl:queues, whose name is the hash tag of
 * the others: tl:blocks{tl:queues}. Comments leave it out. */
const char *tl_key_common(const char *prefix, enum tl_common_key key, char name[TL_KEY_MAX]);
/* Writes tl:{q}:seen:<bucket>, or tl:{q}:seen:<bucket>:<chunk> for another chunk than 0: a presence
 * bitmap. */
void tl_keys_seen(const struct tl_keys *keys, int64_t bucket, uint64_t chunk,
                  char name[TL_KEY_MAX]);
/* Writes tl:{q}:<role>, the lease of a role on the queue. */
void tl_keys_lease(const char *queue, const char *prefix, const char *role, char name[TL_KEY_MAX]);

#endif
