#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/store/draw_record.h"
#include "common/store/reply.h"

/* "opens_at:phase:cut:next:last:block:base_seq:drawn" */
static void parse_draw(const char *text, struct tl_draw_record *record)
{
    uint64_t cut, next, last, block, base_seq, drawn;
    int64_t opens_at_ms;
    unsigned phase;
    if (sscanf(text,
               "%" SCNd64 ":%u:%" SCNu64 ":%" SCNu64 ":%" SCNu64 ":%" SCNu64 ":%" SCNu64
               ":%" SCNu64,
               &opens_at_ms, &phase, &cut, &next, &last, &block, &base_seq, &drawn) != 8 ||
        phase < TL_DRAW_CUT || phase > TL_DRAW_DONE)
        return;
    record->phase = (enum tl_draw_phase)phase;
    record->opens_at_ms = opens_at_ms;
    record->cut = cut;
    record->last = last;
    record->drawn = drawn;
}

/* "opens_at:hash:salt" */
static void parse_hash(const char *text, struct tl_draw_record *record)
{
    char hash[TL_DRAW_KEY_DIGITS + 1], salt[TL_DRAW_KEY_DIGITS + 1];
    int64_t opens_at_ms;
    if (sscanf(text, "%" SCNd64 ":%64[0-9a-f]:%64[0-9a-f]", &opens_at_ms, hash, salt) != 3 ||
        strlen(hash) != TL_DRAW_KEY_DIGITS ||
        !tl_draw_parse_hex(salt, strlen(salt), record->salt, sizeof(record->salt)))
        return;
    memcpy(record->hash, hash, sizeof(hash));
    record->announced_for_ms = opens_at_ms;
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
    tl_draw_record_parse(tl_reply_string(tl_reply_at(reply, 0), NULL),
                         tl_reply_string(tl_reply_at(reply, 1), NULL),
                         tl_reply_string(tl_reply_at(reply, 2), NULL), record);
    tl_reply_free(reply);
    return true;
}
