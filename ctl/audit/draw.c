/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/auth/draw.h"
#include "common/auth/hex.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "common/store/state.h"

#include "ctl/audit/audit.h"

enum { RULE = 13, PAGE = 1000 };

static const char REPORT_IT[] = "pause the queue and report how it came to this; to draw again, "
                                "delete the queue and create it again";

struct check {
    struct tl_redis *redis;
    const struct tl_keys *keys;
    struct tl_args args;
    struct tl_draw_record draw;
    unsigned char seed[TL_DRAW_KEY_BYTES];
    unsigned char before[TL_DRAW_KEY_BYTES]; /* the draw key of the last visitor */
    struct tl_audit_report *report;
};

static void add(struct check *check, const char *text)
{
    tl_audit_add(check->report, RULE, text, REPORT_IT);
}

static bool check_seed(struct check *check)
{
    unsigned char hash[TL_DRAW_KEY_BYTES];
    char digits[TL_DRAW_KEY_DIGITS + 1];
    const struct tl_draw_record *draw = &check->draw;
    if (!tl_hex_parse(draw->seed, strlen(draw->seed), check->seed, sizeof(check->seed))) {
        add(check, "the draw is done, but its seed is not published");
        return false;
    }
    tl_draw_hash(check->seed, hash);
    tl_hex_format(hash, sizeof(hash), digits);
    if (strcmp(digits, draw->hash) == 0 && draw->announced_for_ms == draw->opens_at_ms)
        return true;
    add(check, "the seed of the draw is another one than that whose hash was published");
    return false;
}

static void check_visitor(struct check *check, const char *visitor, size_t length)
{
    unsigned char id[TL_DRAW_ID_BYTES], key[TL_DRAW_KEY_BYTES];
    char text[160];
    tl_draw_id(check->draw.salt, visitor, length, id);
    tl_draw_key(check->seed, id, key);
    if (memcmp(check->before, key, sizeof(key)) > 0) {
        snprintf(text, sizeof(text), "visitor \"%.64s\" stands behind one who was drawn later",
                 visitor);
        add(check, text);
    }
    memcpy(check->before, key, sizeof(key));
}

/* The drawn who wait in a lane, from this seq on, up to PAGE of them. NULL on failure. */
static struct tl_reply *read_page(struct check *check, unsigned lane, uint64_t from,
                                  struct tl_error *err)
{
    tl_args_reset(&check->args);
    tl_args_strs(&check->args, "ZRANGE", check->keys->names[TL_KEY_WAITING], NULL);
    tl_args_uint(&check->args, tl_place_make(lane, from));
    tl_args_uint(&check->args, tl_place_make(lane, check->draw.last));
    tl_args_strs(&check->args, "BYSCORE", "LIMIT", "0", NULL);
    tl_args_uint(&check->args, PAGE);
    tl_args_str(&check->args, "WITHSCORES");
    return tl_redis_call(check->redis, &check->args, err);
}

static bool check_lane(struct check *check, unsigned lane, struct tl_error *err)
{
    uint64_t from = check->draw.first; /* places of a lost generation may lie before it */
    memset(check->before, 0, sizeof(check->before));
    while (from <= check->draw.last) {
        struct tl_reply *page = read_page(check, lane, from, err);
        if (page == NULL)
            return false;
        size_t n = tl_reply_count(page);
        for (size_t i = 0; i + 1 < n; i += 2) {
            size_t length;
            tl_place place = 0;
            const char *visitor = tl_reply_string(tl_reply_at(page, i), &length);
            check_visitor(check, visitor, length);
            if (tl_record_place(tl_reply_text(page, i + 1), &place))
                from = tl_place_seq(place) + 1;
        }
        from = n < (size_t)2 * PAGE ? check->draw.last + 1 : from;
        tl_reply_free(page);
    }
    return true;
}

bool tl_audit_draw(struct tl_redis *redis, const struct tl_keys *keys,
                   struct tl_audit_report *report, struct tl_error *err)
{
    struct check check = {.redis = redis, .keys = keys, .report = report};
    struct tl_state state;
    /* What is left of a queue without a state has no draw. */
    bool ok = tl_state_read(redis, keys, TL_STATE_DRAW, &state, err) || err->kind == TL_ERR_NOQUEUE;
    check.draw = state.recovery.draw;
    if (ok && check.draw.phase == TL_DRAW_DONE) {
        bool known = check_seed(&check);
        for (unsigned lane = 0; ok && known && lane < TL_LANES_MAX; lane++)
            ok = check_lane(&check, lane, err);
    }
    tl_args_free(&check.args);
    return ok;
}
