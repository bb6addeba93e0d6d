/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a queue's keys. All share the hash tag {queue}, so they live in one slot of a Redis
 * Cluster. */
#ifndef TL_KEYS_H
#define TL_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/args.h"
#include "common/wire/names.h"

#include "generated/protocol.h"

enum tl_key {
    TL_KEY_STATE,
    TL_KEY_CONFIG,
    TL_KEY_WAITING,
    TL_KEY_ACTIVE,
    TL_KEY_SESSIONS,
    TL_KEY_ENDED,
    TL_KEY_EVENTS,
    TL_KEY_INGEST,
    TL_KEY_BATCHES,
    TL_KEY_SEEN, /* prefix: bucket and chunk follow (tl_keys_seen) */
    TL_KEY_COUNT,
};

#define TL_KEY_MAX 160

/* The one consumer of the group in which dispatchers read the ingest stream (TL_INGEST_GROUP): what
 * is pending is pending for the current holder of the lease. */
#define TL_INGEST_CONSUMER "dispatcher"

/* About how many events a change outside of the dispatcher, admitter and expirer keeps in the
 * stream. These trim to their own setting. An argument of functions, so a text. */
#define TL_EVENTS_KEPT "20000"

struct tl_keys {
    char queue[TL_QUEUE_NAME_MAX + 1];
    char names[TL_KEY_COUNT][TL_KEY_MAX];
    char poison[TL_KEY_MAX];
    char signs[TL_KEY_MAX];
    char feedback[TL_KEY_MAX];
};

/* prefix is the configured redis.key_prefix (at most 31 bytes), queue a valid queue name. */
void tl_keys_init(struct tl_keys *keys, const char *prefix, const char *queue);
/* The same for any text: TL_ERR_INVALID when it is no valid queue name. */
bool tl_keys_of(struct tl_keys *keys, const char *prefix, const char *queue, struct tl_error *err);

/* The chunk of a seq; *offset (may be NULL) gets its bit in that chunk's bitmap. */
uint64_t tl_presence_chunk(uint64_t seq, uint64_t *offset);
/* Writes tl:{q}:seen:<bucket>, or tl:{q}:seen:<bucket>:<chunk> for another chunk than 0: a presence
 * bitmap. */
void tl_keys_seen(const struct tl_keys *keys, int64_t bucket, uint64_t chunk,
                  char name[TL_KEY_MAX]);
/* Writes tl:{q}:drawn, the list of the draw. */
void tl_keys_drawn(const struct tl_keys *keys, char name[TL_KEY_MAX]);
/* Writes tl:{q}:serials, the places that were handed over to another device. */
void tl_keys_serials(const struct tl_keys *keys, char name[TL_KEY_MAX]);
/* Writes tl:{q}:history, points every 10 s, or tl:{q}:history:minutes. */
void tl_keys_history(const struct tl_keys *keys, bool minutes, char name[TL_KEY_MAX]);
/* Writes tl:{q}:retired, which stays when an operator deletes the queue. */
void tl_keys_retired(const struct tl_keys *keys, char name[TL_KEY_MAX]);
/* Writes tl:{q}:<role>, the lease of a role on the queue. */
void tl_keys_lease(const char *queue, const char *prefix, const char *role, char name[TL_KEY_MAX]);
/* Writes tl:{q}:journal, what hooks are told. */
void tl_keys_journal(const struct tl_keys *keys, char name[TL_KEY_MAX]);
/* Writes tl:queues, the set of all queue names. */
void tl_keys_queues(const char *prefix, char name[TL_KEY_MAX]);
/* Writes tl:blocks, the blocked prefixes of addresses. */
void tl_keys_blocks(const char *prefix, char name[TL_KEY_MAX]);
/* Writes tl:{q}:changes, the record of changes of a queue; queue NULL: tl:changes, of those that
 * belong to none. */
void tl_keys_changes(const char *prefix, const char *queue, char name[TL_KEY_MAX]);
/* Writes tl:libraries, the libraries of functions that programs use. */
void tl_keys_libraries(const char *prefix, char name[TL_KEY_MAX]);
/* Writes tl:tokens, the tokens of operators. */
void tl_keys_tokens(const char *prefix, char name[TL_KEY_MAX]);

#endif
