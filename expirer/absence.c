#include <stdlib.h>
#include <string.h>

#include "expirer/absence.h"

#include "common/store/reply.h"
#include "common/store/script.h"
#include "generated/expirer_scripts.h"

/* Whole buckets that make up waiting_ttl; the current one counts besides
 * (common/store/prelude.lua). */
#define BUCKETS 4
/* Candidates in one call of the absent script: each costs it about 2 microseconds. */
#define CANDIDATES_MAX 250

struct tl_absence {
    struct tl_script presence_script, absent_script;
    struct tl_args args;
    uint64_t events_length;
    uint8_t *seen; /* bitmap by seq, the buckets put together; bit 0 is the highest of byte 0, as in
                      Redis */
    size_t seen_bytes, seen_capacity;
};

struct tl_absence *tl_absence_new(uint64_t events_length)
{
    struct tl_absence *absence = calloc(1, sizeof(*absence));
    if (absence == NULL)
        return NULL;
    absence->presence_script.source = tl_script_presence;
    absence->absent_script.source = tl_script_absent;
    absence->events_length = events_length;
    return absence;
}

void tl_absence_free(struct tl_absence **absence)
{
    if (*absence == NULL)
        return;
    tl_args_free(&(*absence)->args);
    free((*absence)->seen);
    free(*absence);
    *absence = NULL;
}

/* What the presence script answers. */
struct judgement {
    int64_t bucket, length_ms;
    bool observed;       /* in all buckets: only then may absence be judged */
    uint64_t joined_seq; /* whoever has a larger seq joined within the time */
    int64_t again_ms;
};

static bool ask(struct tl_absence *absence, struct tl_redis *redis, const struct tl_keys *keys,
                struct judgement *judgement, struct tl_error *err)
{
    if (!tl_script_begin(redis, &absence->presence_script, &absence->args, err))
        return false;
    tl_keys_append(keys, &absence->args);
    struct tl_reply *reply = tl_script_call(redis, &absence->presence_script, &absence->args, err);
    if (reply == NULL)
        return false;
    judgement->bucket = tl_reply_integer(tl_reply_at(reply, 0));
    judgement->length_ms = tl_reply_integer(tl_reply_at(reply, 1));
    judgement->observed = tl_reply_integer(tl_reply_at(reply, 2)) == 1;
    judgement->joined_seq = (uint64_t)tl_reply_integer(tl_reply_at(reply, 3));
    judgement->again_ms = tl_reply_integer(tl_reply_at(reply, 4));
    tl_reply_free(reply);
    return true;
}

static bool put_together(struct tl_absence *absence, const void *bitmap, size_t length,
                         struct tl_error *err)
{
    if (length > absence->seen_capacity) {
        uint8_t *grown = realloc(absence->seen, length);
        if (grown == NULL)
            return tl_error_set(err, TL_ERR_NOMEM, "no memory for a presence bitmap of %zu bytes",
                                length);
        absence->seen = grown;
        absence->seen_capacity = length;
    }
    if (length > absence->seen_bytes) {
        memset(absence->seen + absence->seen_bytes, 0, length - absence->seen_bytes);
        absence->seen_bytes = length;
    }
    const uint8_t *bytes = bitmap;
    for (size_t i = 0; i < length; i++)
        absence->seen[i] = (uint8_t)(absence->seen[i] | bytes[i]);
    return true;
}

static bool fetch_bitmaps(struct tl_absence *absence, struct tl_redis *redis,
                          const struct tl_keys *keys, int64_t bucket, struct tl_error *err)
{
    absence->seen_bytes = 0;
    for (int64_t b = bucket - BUCKETS; b <= bucket; b++) {
        char key[TL_KEY_MAX];
        tl_keys_seen(keys, b, key);
        tl_args_reset(&absence->args);
        tl_args_strs(&absence->args, "GET", key, NULL);
        struct tl_reply *reply = tl_redis_call(redis, &absence->args, err);
        if (reply == NULL)
            return false;
        size_t length;
        const char *bytes = tl_reply_string(reply, &length);
        bool ok = put_together(absence, bytes, length, err);
        tl_reply_free(reply);
        if (!ok)
            return false;
    }
    return true;
}

static bool is_seen(const struct tl_absence *absence, uint64_t seq)
{
    size_t byte = (size_t)(seq / 8);
    return byte < absence->seen_bytes && (absence->seen[byte] >> (7 - seq % 8) & 1) != 0;
}

static bool begin_absent(struct tl_absence *absence, struct tl_redis *redis,
                         const struct tl_keys *keys, int64_t bucket, struct tl_error *err)
{
    if (!tl_script_begin(redis, &absence->absent_script, &absence->args, err))
        return false;
    tl_keys_append(keys, &absence->args);
    tl_args_int(&absence->args, bucket);
    tl_args_uint(&absence->args, absence->events_length);
    return true;
}

static bool call_absent(struct tl_absence *absence, struct tl_redis *redis, uint64_t *dropped,
                        struct tl_error *err)
{
    struct tl_reply *reply = tl_script_call(redis, &absence->absent_script, &absence->args, err);
    if (reply == NULL)
        return false;
    *dropped += (uint64_t)tl_reply_integer(tl_reply_at(reply, 0));
    tl_reply_free(reply);
    return true;
}

/* Walks one lane and hands over its candidates in portions. */
static bool drop_lane(struct tl_absence *absence, struct tl_redis *redis,
                      const struct tl_keys *keys, const struct tl_line *line, unsigned lane,
                      const struct judgement *judgement, uint64_t *dropped, struct tl_error *err)
{
    const struct tl_order *order = tl_line_order(line, lane);
    uint64_t seq = 0;
    size_t candidates = 0;
    while (order != NULL && tl_order_next(order, seq + 1, &seq) && seq <= judgement->joined_seq) {
        if (is_seen(absence, seq))
            continue;
        if (candidates == 0 && !begin_absent(absence, redis, keys, judgement->bucket, err))
            return false;
        tl_args_uint(&absence->args, tl_place_make(lane, seq));
        if (++candidates < CANDIDATES_MAX)
            continue;
        if (!call_absent(absence, redis, dropped, err))
            return false;
        candidates = 0;
    }
    return candidates == 0 || call_absent(absence, redis, dropped, err);
}

bool tl_absence_pass(struct tl_absence *absence, struct tl_redis *redis, const struct tl_keys *keys,
                     const struct tl_line *line, uint64_t *dropped, int64_t *again_ms,
                     struct tl_error *err)
{
    struct judgement judgement;
    *dropped = 0;
    *again_ms = 1000;
    if (!ask(absence, redis, keys, &judgement, err))
        return false;
    *again_ms = judgement.again_ms;
    if (!judgement.observed)
        return true;
    if (!fetch_bitmaps(absence, redis, keys, judgement.bucket, err))
        return false;
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++)
        if (!drop_lane(absence, redis, keys, line, lane, &judgement, dropped, err))
            return false;
    return true;
}
