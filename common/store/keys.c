/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/store/keys.h"

static const char *const suffixes[TL_KEY_COUNT] = {
    [TL_KEY_STATE] = "state",   [TL_KEY_CONFIG] = "config",     [TL_KEY_WAITING] = "waiting",
    [TL_KEY_ACTIVE] = "active", [TL_KEY_SESSIONS] = "sessions", [TL_KEY_ENDED] = "ended",
    [TL_KEY_EVENTS] = "events", [TL_KEY_INGEST] = "ingest",     [TL_KEY_BATCHES] = "batches",
    [TL_KEY_SEEN] = "seen:",
};

void tl_keys_init(struct tl_keys *keys, const char *prefix, const char *queue)
{
    snprintf(keys->queue, sizeof(keys->queue), "%s", queue);
    for (size_t i = 0; i < TL_KEY_COUNT; i++)
        snprintf(keys->names[i], TL_KEY_MAX, "%s{%s}:%s", prefix, queue, suffixes[i]);
    snprintf(keys->poison, TL_KEY_MAX, "%s{%s}:poison", prefix, queue);
    snprintf(keys->signs, TL_KEY_MAX, "%s{%s}:signs", prefix, queue);
    snprintf(keys->feedback, TL_KEY_MAX, "%s{%s}:feedback", prefix, queue);
}

bool tl_keys_of(struct tl_keys *keys, const char *prefix, const char *queue, struct tl_error *err)
{
    char quoted[96];
    if (!tl_queue_name_valid(queue, strlen(queue))) {
        tl_quote(queue, quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID,
                            "%s is not a valid queue name; a name begins with a-z or 0-9 and holds "
                            "only a-z 0-9 . _ -",
                            quoted);
    }
    tl_keys_init(keys, prefix, queue);
    return true;
}

uint64_t tl_presence_chunk(uint64_t seq, uint64_t *offset)
{
    if (offset != NULL)
        *offset = seq % TL_PRESENCE_CHUNK;
    return seq / TL_PRESENCE_CHUNK;
}

void tl_keys_seen(const struct tl_keys *keys, int64_t bucket, uint64_t chunk, char name[TL_KEY_MAX])
{
    const char *prefix = keys->names[TL_KEY_SEEN];
    if (chunk == 0)
        snprintf(name, TL_KEY_MAX, "%.*s%" PRId64, TL_KEY_MAX - 22, prefix, bucket);
    else
        snprintf(name, TL_KEY_MAX, "%.*s%" PRId64 ":%" PRIu64, TL_KEY_MAX - 43, prefix, bucket,
                 chunk);
}

/* Another key of the queue. */
static void write_other(const struct tl_keys *keys, const char *suffix, char name[TL_KEY_MAX])
{
    const char *prefix = keys->names[TL_KEY_SEEN]; /* "...{q}:seen:" */
    snprintf(name, TL_KEY_MAX, "%.*s%s", (int)(strlen(prefix) - strlen("seen:")), prefix, suffix);
}

void tl_keys_journal(const struct tl_keys *keys, char name[TL_KEY_MAX])
{
    write_other(keys, "journal", name);
}

void tl_keys_drawn(const struct tl_keys *keys, char name[TL_KEY_MAX])
{
    write_other(keys, "drawn", name);
}

void tl_keys_serials(const struct tl_keys *keys, char name[TL_KEY_MAX])
{
    write_other(keys, "serials", name);
}

void tl_keys_retired(const struct tl_keys *keys, char name[TL_KEY_MAX])
{
    write_other(keys, "retired", name);
}

void tl_keys_history(const struct tl_keys *keys, bool minutes, char name[TL_KEY_MAX])
{
    write_other(keys, minutes ? "history:minutes" : "history", name);
}

void tl_keys_lease(const char *queue, const char *prefix, const char *role, char name[TL_KEY_MAX])
{
    snprintf(name, TL_KEY_MAX, "%s{%s}:%s", prefix, queue, role);
}

void tl_keys_queues(const char *prefix, char name[TL_KEY_MAX])
{
    snprintf(name, TL_KEY_MAX, "%squeues", prefix);
}

void tl_keys_blocks(const char *prefix, char name[TL_KEY_MAX])
{
    snprintf(name, TL_KEY_MAX, "%sblocks", prefix);
}

void tl_keys_changes(const char *prefix, const char *queue, char name[TL_KEY_MAX])
{
    if (queue == NULL)
        snprintf(name, TL_KEY_MAX, "%schanges", prefix);
    else
        snprintf(name, TL_KEY_MAX, "%s{%s}:changes", prefix, queue);
}

void tl_keys_libraries(const char *prefix, char name[TL_KEY_MAX])
{
    snprintf(name, TL_KEY_MAX, "%slibraries", prefix);
}

void tl_keys_tokens(const char *prefix, char name[TL_KEY_MAX])
{
    snprintf(name, TL_KEY_MAX, "%stokens", prefix);
}
