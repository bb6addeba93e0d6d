/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/auth/hex.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "common/store/state.h"

enum { ALL = TL_FIELD_DRAW_SEED + 1 };

static const char *const names[ALL] = {TL_FIELD_TEXTS};

/* Is the i-th field among these, or the generation? */
static bool is_read(unsigned fields, size_t i)
{
    return ((fields | 1U << TL_FIELD_GENERATION) >> i & 1) != 0;
}

void tl_state_append(struct tl_args *args, unsigned fields)
{
    for (size_t i = 0; i < ALL; i++)
        if (is_read(fields, i))
            tl_args_str(args, names[i]);
}

/* ---- the draw ---- */

/* "opens_at:phase:cut:next:last:first:base_seq:drawn:event" */
static void parse_draw(const char *text, struct tl_draw_record *record)
{
    enum { OPENS_AT, PHASE, CUT, LAST = 4, FIRST, DRAWN = 7, EVENT, FIELDS };
    uint64_t fields[FIELDS];
    for (int i = 0; i < FIELDS; i++)
        if (!tl_record_number(&text, i + 1 < FIELDS ? ':' : '\0', &fields[i]))
            return;
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
    uint64_t opens_at_ms;
    if (!tl_record_number(&text, ':', &opens_at_ms) || strlen(text) != 2 * TL_DRAW_KEY_DIGITS + 1 ||
        text[TL_DRAW_KEY_DIGITS] != ':' ||
        !tl_hex_parse(text, TL_DRAW_KEY_DIGITS, hash, sizeof(hash)) ||
        !tl_hex_parse(text + 1 + TL_DRAW_KEY_DIGITS, TL_DRAW_KEY_DIGITS, record->salt,
                      sizeof(record->salt)))
        return;
    tl_hex_format(hash, sizeof(hash), record->hash);
    record->announced_for_ms = (int64_t)opens_at_ms;
}

/* ---- all of it ---- */

void tl_state_parse(const struct tl_reply *values, unsigned fields, struct tl_state *state)
{
    uint64_t numbers[ALL] = {0};
    const char *texts[ALL];
    size_t n = 0;
    for (size_t i = 0; i < ALL; i++) {
        bool read = is_read(fields, i);
        numbers[i] = read ? tl_reply_number(values, n) : 0;
        texts[i] = read ? tl_reply_text(values, n++) : "";
    }
    *state = (struct tl_state){
        .generation = numbers[TL_FIELD_GENERATION],
        .base_seq = numbers[TL_FIELD_BASE_SEQ],
        .seq = numbers[TL_FIELD_SEQ],
        .event = numbers[TL_FIELD_EVENT],
        .waiting = numbers[TL_FIELD_WAITING],
        .active = numbers[TL_FIELD_ACTIVE],
        .capacity_now = numbers[TL_FIELD_CAPACITY_NOW],
        .is_reported = *texts[TL_FIELD_CAPACITY_WHY] != '\0' &&
                       numbers[TL_FIELD_CAPACITY_WHY] != TL_WHY_UNREPORTED,
        .recovery = {.lost_generation = numbers[TL_FIELD_LOST_GENERATION],
                     .present = numbers[TL_FIELD_GENERATION],
                     .until_ms = (int64_t)numbers[TL_FIELD_RECOVER_UNTIL],
                     .lost_size = numbers[TL_FIELD_LOST_SIZE],
                     .restored = numbers[TL_FIELD_RESTORED],
                     .full_since_ms = (int64_t)numbers[TL_FIELD_FULL_SINCE]},
        .turns = {.event = numbers[TL_FIELD_EVENT]},
    };
    memcpy(state->totals, &numbers[TL_FIELD_JOINED], sizeof(state->totals));
    snprintf(state->turns.field, sizeof(state->turns.field), "%s", texts[TL_FIELD_TURNS]);
    struct tl_draw_record *draw = &state->recovery.draw;
    parse_draw(texts[TL_FIELD_DRAW], draw);
    parse_hash(texts[TL_FIELD_DRAW_HASH], draw);
    const char *seed = texts[TL_FIELD_DRAW_SEED]; /* public only when the draw is done */
    if (draw->phase == TL_DRAW_DONE && strlen(seed) == TL_DRAW_KEY_DIGITS)
        memcpy(draw->seed, seed, sizeof(draw->seed));
}

bool tl_state_read(struct tl_redis *redis, const struct tl_keys *keys, unsigned fields,
                   struct tl_state *state, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "HMGET", keys->names[TL_KEY_STATE], NULL);
    tl_state_append(&args, fields);
    struct tl_reply *reply = tl_redis_once(redis, &args, err);
    if (reply == NULL)
        return false;
    tl_state_parse(reply, fields, state);
    tl_reply_free(reply);
    return state->generation != 0 || tl_keys_fail_missing(keys, err);
}
