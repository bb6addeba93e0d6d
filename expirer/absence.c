/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "expirer/absence.h"

#include "common/base/grow.h"
#include "common/store/library.h"
#include "common/store/reply.h"

/* Places in one call of the function absent: each costs it about 2 microseconds. */
#define CANDIDATES_MAX 250
#define AGAIN_MS       1000 /* when the store did not say */

struct tl_absence {
    struct tl_args args, fetch_args;
    uint64_t events_length;
    /* The bitmap of one chunk of seqs, all buckets combined. Its first seq is the highest bit of
     * byte 0, as in Redis. */
    uint8_t *seen;
    size_t seen_bytes, seen_capacity;
};

struct tl_absence *tl_absence_new(uint64_t events_length)
{
    struct tl_absence *absence = calloc(1, sizeof(*absence));
    if (absence == NULL)
        return NULL;
    absence->events_length = events_length;
    return absence;
}

void tl_absence_free(struct tl_absence **absence)
{
    if (*absence == NULL)
        return;
    tl_args_free(&(*absence)->args);
    tl_args_free(&(*absence)->fetch_args);
    free((*absence)->seen);
    free(*absence);
    *absence = NULL;
}

/* One pass over the line of one queue. */
struct pass {
    struct tl_absence *absence;
    const struct tl_held_queue *held;
    /* What the function presence returned: */
    int64_t bucket;      /* the current one */
    bool observed;       /* presence was recorded in all buckets: only then can absence be judged */
    uint64_t joined_seq; /* visitors with a larger seq joined within waiting_ttl */
    int64_t again_ms;
    uint64_t dropped;
    bool fetched; /* absence->seen is of `chunk` */
    uint64_t chunk;
};

static bool ask_presence(struct pass *pass, struct tl_error *err)
{
    struct tl_args *args = &pass->absence->args;
    tl_call_begin_read(args, TL_FN_PRESENCE, &pass->held->keys);
    struct tl_reply *reply = tl_call(pass->held->redis, args, err);
    if (reply == NULL)
        return false;
    pass->bucket = tl_reply_signed(reply, TL_PRESENCE_BUCKET);
    pass->observed = tl_reply_signed(reply, TL_PRESENCE_OBSERVED) == 1;
    pass->joined_seq = tl_reply_number(reply, TL_PRESENCE_JOINED_SEQ);
    pass->again_ms = tl_reply_signed(reply, TL_PRESENCE_AGAIN);
    tl_reply_free(reply);
    return true;
}

/* ---- presence bitmaps ---- */

static bool add_bitmap(struct tl_absence *absence, const void *bitmap, size_t length,
                       struct tl_error *err)
{
    uint8_t *seen = tl_grow(absence->seen, &absence->seen_capacity, length + 1, 1);
    if (seen == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a presence bitmap of %zu bytes",
                            length);
    absence->seen = seen;
    if (length > absence->seen_bytes) {
        memset(absence->seen + absence->seen_bytes, 0, length - absence->seen_bytes);
        absence->seen_bytes = length;
    }
    const uint8_t *bytes = bitmap;
    for (size_t i = 0; i < length; i++)
        absence->seen[i] = (uint8_t)(absence->seen[i] | bytes[i]);
    return true;
}

/* Fetches the bitmaps of one chunk, unless it is there already. Not by absence->args, in which a
 * call of the function absent may be gathering. */
static bool fetch_chunk(struct pass *pass, uint64_t chunk, struct tl_error *err)
{
    struct tl_args *args = &pass->absence->fetch_args;
    if (pass->fetched && pass->chunk == chunk)
        return true;
    pass->fetched = false;
    pass->absence->seen_bytes = 0;
    for (int64_t bucket = pass->bucket - TL_PRESENCE_BUCKETS; bucket <= pass->bucket; bucket++) {
        char key[TL_KEY_MAX];
        tl_keys_seen(&pass->held->keys, bucket, chunk, key);
        tl_args_reset(args);
        tl_args_strs(args, "GET", key, NULL);
        struct tl_reply *reply = tl_redis_call(pass->held->redis, args, err);
        if (reply == NULL)
            return false;
        size_t length;
        const char *bytes = tl_reply_string(reply, &length);
        bool ok = add_bitmap(pass->absence, bytes, length, err);
        tl_reply_free(reply);
        if (!ok)
            return false;
    }
    pass->fetched = true;
    pass->chunk = chunk;
    return true;
}

static bool look(struct pass *pass, uint64_t seq, bool *seen, struct tl_error *err)
{
    const struct tl_absence *absence = pass->absence;
    uint64_t offset;
    if (!fetch_chunk(pass, tl_presence_chunk(seq, &offset), err))
        return false;
    size_t byte = (size_t)(offset / 8);
    *seen = byte < absence->seen_bytes && (absence->seen[byte] >> (7 - offset % 8) & 1) != 0;
    return true;
}

/* ---- dropping ---- */

static bool send_drop(struct pass *pass, struct tl_error *err)
{
    struct tl_reply *reply = tl_call(pass->held->redis, &pass->absence->args, err);
    if (reply == NULL)
        return false;
    pass->dropped += tl_reply_number(reply, 0);
    tl_reply_free(reply);
    return true;
}

/* Walks one lane and passes the absent places to the function, CANDIDATES_MAX at a time. */
static bool drop_lane(struct pass *pass, const struct tl_line *line, unsigned lane,
                      struct tl_error *err)
{
    struct tl_args *args = &pass->absence->args;
    const struct tl_order *order = tl_line_order(line, lane);
    uint64_t seq = 0;
    size_t candidates = 0;
    while (order != NULL && tl_order_next(order, seq + 1, &seq) && seq <= pass->joined_seq) {
        bool seen;
        if (!look(pass, seq, &seen, err))
            return false;
        if (seen)
            continue;
        if (candidates == 0) {
            tl_call_begin(args, TL_FN_ABSENT, &pass->held->keys);
            tl_args_int(args, pass->bucket);
            tl_args_uint(args, pass->absence->events_length);
        }
        tl_args_uint(args, tl_place_make(lane, seq));
        if (++candidates < CANDIDATES_MAX)
            continue;
        if (!send_drop(pass, err))
            return false;
        candidates = 0;
    }
    return candidates == 0 || send_drop(pass, err);
}

bool tl_absence_pass(struct tl_absence *absence, const struct tl_held_queue *held,
                     const struct tl_line *line, uint64_t *dropped, int64_t *again_ms,
                     struct tl_error *err)
{
    struct pass pass = {.absence = absence, .held = held, .again_ms = AGAIN_MS};
    bool ok = ask_presence(&pass, err);
    for (unsigned lane = 0; ok && pass.observed && lane < TL_LANES_MAX; lane++)
        ok = drop_lane(&pass, line, lane, err);
    *dropped = pass.dropped;
    *again_ms = pass.again_ms;
    return ok;
}
