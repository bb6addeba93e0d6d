/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/auth/hex.h"
#include "common/store/draw_record.h"
#include "common/store/reply.h"

/* "opens_at:phase:cut:next:last:first:base_seq:drawn:event" */
static void parse_draw(const char *text, struct tl_draw_record *record)
{
    enum { OPENS_AT, PHASE, CUT, LAST = 4, FIRST, DRAWN = 7, EVENT, FIELDS };
    uint64_t fields[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        char *end;
        fields[i] = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || *end != (i + 1 < FIELDS ? ':' : '\0'))
            return;
        text = end + 1;
    }
    if (fields[PHASE] < TL_DRAW_CUT || fields[PHASE] > TL_DRAW_DONE)
        return;
    record->phase = (enum tl_draw_phase)fields[PHASE];
    record->opens_at_ms = (int64_t)fields[OPENS_AT];
    record->cut = fields[CUT];
    record->last = fields[LAST];
    record->first = fields[FIRST];
    record->drawn = fields[DRAWN];
    record->event = fields[EVENT];
}

/* "opens_at:hash:salt" */
static void parse_hash(const char *text, struct tl_draw_record *record)
{
    unsigned char hash[TL_DRAW_KEY_BYTES];
    char *end;
    uint64_t opens_at_ms = strtoull(text, &end, 10);
    if (*end != ':' || strlen(end) != 2 * TL_DRAW_KEY_DIGITS + 2 ||
        end[1 + TL_DRAW_KEY_DIGITS] != ':' ||
        !tl_hex_parse(end + 1, TL_DRAW_KEY_DIGITS, hash, sizeof(hash)) ||
        !tl_hex_parse(end + 2 + TL_DRAW_KEY_DIGITS, TL_DRAW_KEY_DIGITS, record->salt,
                      sizeof(record->salt)))
        return;
    tl_hex_format(hash, sizeof(hash), record->hash);
    record->announced_for_ms = (int64_t)opens_at_ms;
}

void tl_draw_record_parse(const char *draw, const char *hash, const char *seed,
                          struct tl_draw_record *record)
{
    *record = (struct tl_draw_record){0};
    parse_draw(draw, record);
    parse_hash(hash, record);
    if (record->phase == TL_DRAW_DONE && strlen(seed) == TL_DRAW_KEY_DIGITS)
        memcpy(record->seed, seed, sizeof(record->seed));
}

bool tl_draw_record_read(struct tl_redis *redis, const struct tl_keys *keys,
                         struct tl_draw_record *record, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "HMGET", keys->names[TL_KEY_STATE], "draw", "draw_hash", "draw_seed", NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    tl_draw_record_parse(tl_reply_text(reply, 0), tl_reply_text(reply, 1), tl_reply_text(reply, 2),
                         record);
    tl_reply_free(reply);
    return true;
}
