/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include <sodium.h>

#include "common/auth/draw.h"
#include "common/auth/hex.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/library.h"
#include "common/store/records.h"
#include "common/store/reply.h"

#include "admitter/draw.h"
#include "admitter/draw_order.h"

enum {
    PAGE = 5000,    /* visitors read from the line at once */
    NUMBERED = 1000 /* visitors renumbered in one step: unpack is limited by Lua's stack */
};

struct tl_drawer {
    struct tl_args args;
    uint64_t events_length;
    struct tl_actor actor;
    const char *key_path;
    bool loaded;
    struct tl_draw_secret secret;
};

struct tl_draw {
    struct tl_draw_opening opening;
    int64_t opens_at_ms, began_ms;
    uint64_t cut;  /* seqs up to this one are drawn */
    uint64_t next; /* the seq for the next one */
    struct tl_draw_order *order;
    bool numbering;   /* all of the line was read */
    unsigned lane;    /* reading: */
    uint64_t after;   /* ...the seqs after this one */
    uint64_t n_drawn; /* in this process */
};

struct tl_drawer *tl_drawer_new(const char *key_path, uint64_t events_length,
                                const struct tl_actor *actor)
{
    struct tl_drawer *drawer = calloc(1, sizeof(*drawer));
    if (drawer == NULL)
        return NULL;
    drawer->events_length = events_length;
    drawer->key_path = key_path;
    drawer->actor = *actor;
    return drawer;
}

void tl_drawer_free(struct tl_drawer **drawer)
{
    if (*drawer == NULL)
        return;
    tl_args_free(&(*drawer)->args);
    sodium_memzero(&(*drawer)->secret, sizeof((*drawer)->secret));
    free(*drawer);
    *drawer = NULL;
}

void tl_draw_free(struct tl_draw **draw)
{
    if (*draw == NULL)
        return;
    tl_draw_order_free(&(*draw)->order);
    sodium_memzero(&(*draw)->opening, sizeof((*draw)->opening));
    free(*draw);
    *draw = NULL;
}

/* ---- calls of the function ---- */

static bool make_opening(struct tl_drawer *drawer, const char *queue, int64_t opens_at_ms,
                         struct tl_draw_opening *opening, struct tl_error *err)
{
    if (!drawer->loaded && !tl_draw_secret_load(drawer->key_path, &drawer->secret, err)) {
        err->kind = TL_ERR_INVALID; /* of this queue alone: the others are served */
        return tl_error_prefix(err, "the draw");
    }
    drawer->loaded = true;
    tl_draw_opening(&drawer->secret, queue, opens_at_ms, opening);
    return true;
}

static void add_hex(struct tl_args *args, const unsigned char bytes[TL_DRAW_KEY_BYTES])
{
    char digits[TL_DRAW_KEY_DIGITS + 1];
    tl_hex_format(bytes, TL_DRAW_KEY_BYTES, digits);
    tl_args_str(args, digits);
    sodium_memzero(digits, sizeof(digits));
}

/* Begins a step; its own arguments follow. */
static void begin_step(struct tl_drawer *drawer, const struct tl_held_queue *held,
                       const struct tl_draw_opening *opening, int64_t opens_at_ms, const char *step)
{
    tl_call_begin(&drawer->args, TL_FN_DRAW, &held->keys);
    tl_args_uint(&drawer->args, drawer->events_length);
    tl_args_int(&drawer->args, opens_at_ms);
    add_hex(&drawer->args, opening->hash);
    tl_args_str(&drawer->args, step);
}

struct answer {
    enum tl_draw_answer what;
    uint64_t next, cut;
};

static bool call(struct tl_drawer *drawer, const struct tl_held_queue *held, struct answer *answer,
                 struct tl_error *err)
{
    tl_actor_append(&drawer->actor, &drawer->args);
    struct tl_reply *reply = tl_call(held->redis, &drawer->args, err);
    if (reply == NULL)
        return false;
    answer->what = (enum tl_draw_answer)tl_reply_signed(reply, TL_DRAWN_ANSWER);
    answer->next = tl_reply_number(reply, TL_DRAWN_NEXT);
    answer->cut = tl_reply_number(reply, TL_DRAWN_CUT);
    tl_reply_free(reply);
    return answer->what != TL_DRAW_ANSWER_OTHER_HASH ||
           tl_error_set(err, TL_ERR_INVALID,
                        "the hash that is published for this opening is of another secret: give "
                        "every admitter the same file secrets.draw_key; if that is lost, a new "
                        "opens_at gets a new hash");
}

bool tl_drawer_announce(struct tl_drawer *drawer, const struct tl_held_queue *held,
                        int64_t opens_at_ms, struct tl_error *err)
{
    struct tl_draw_opening opening;
    struct answer answer;
    if (!make_opening(drawer, held->keys.queue, opens_at_ms, &opening, err))
        return false;
    begin_step(drawer, held, &opening, opens_at_ms, "announce");
    add_hex(&drawer->args, opening.salt);
    bool ok = call(drawer, held, &answer, err);
    if (ok && answer.next == 1) {
        char digits[TL_DRAW_KEY_DIGITS + 1];
        tl_hex_format(opening.hash, sizeof(opening.hash), digits);
        tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = held->keys.queue},
               "published the hash of the draw's seed: %s", digits);
    }
    sodium_memzero(&opening, sizeof(opening));
    return ok;
}

/* ---- reading the line ---- */

static bool add_page(struct tl_draw *draw, const struct tl_reply *page, struct tl_error *err)
{
    for (size_t i = 0; i + 1 < tl_reply_count(page); i += 2) {
        size_t length;
        tl_place place;
        const char *visitor = tl_reply_string(tl_reply_at(page, i), &length);
        if (!tl_record_place(tl_reply_text(page, i + 1), &place))
            return tl_error_set(err, TL_ERR_INVALID, "a place in the line cannot be read");
        if (!tl_draw_order_add(draw->order, visitor, length))
            return tl_error_set(err, TL_ERR_NOMEM, "no memory for the draw");
        draw->after = tl_place_seq(place);
    }
    return tl_draw_order_cut(draw->order) ||
           tl_error_set(err, TL_ERR_NOMEM, "no memory for the draw");
}

/* Reads the next page of those who wait at places from before the opening. */
static bool read_page(struct tl_drawer *drawer, const struct tl_held_queue *held,
                      struct tl_draw *draw, struct tl_error *err)
{
    struct tl_args *args = &drawer->args;
    tl_args_reset(args);
    tl_args_strs(args, "ZRANGE", held->keys.names[TL_KEY_WAITING], NULL);
    tl_args_uint(args, tl_place_make(draw->lane, draw->after + 1));
    tl_args_uint(args, tl_place_make(draw->lane, draw->cut));
    tl_args_strs(args, "BYSCORE", "LIMIT", "0", NULL);
    tl_args_uint(args, PAGE);
    tl_args_str(args, "WITHSCORES");
    struct tl_reply *page = tl_redis_call(held->redis, args, err);
    if (page == NULL)
        return false;
    bool ok = add_page(draw, page, err);
    if (tl_reply_count(page) < (size_t)2 * PAGE) {
        draw->lane++;
        draw->after = 0;
    }
    draw->numbering = draw->lane == TL_LANES_MAX;
    tl_reply_free(page);
    return ok;
}

/* ---- numbering ---- */

/* Moves the next visitors to their places, or ends the draw when there are none. */
static bool number_next(struct tl_drawer *drawer, const struct tl_held_queue *held,
                        struct tl_draw *draw, struct answer *answer, struct tl_error *err)
{
    struct tl_drawn drawn;
    size_t n = 0;
    if (!tl_draw_order_next(draw->order, &drawn)) {
        begin_step(drawer, held, &draw->opening, draw->opens_at_ms, "finish");
        add_hex(&drawer->args, draw->opening.seed);
        if (!call(drawer, held, answer, err))
            return false;
        answer->what = answer->what == TL_DRAW_ANSWER_DONE ? TL_DRAW_ANSWER_GONE : answer->what;
        return true;
    }
    begin_step(drawer, held, &draw->opening, draw->opens_at_ms, "number");
    tl_args_uint(&drawer->args, draw->next);
    do {
        tl_args_bin(&drawer->args, drawn.visitor, drawn.length);
        tl_args_bin(&drawer->args, drawn.id, sizeof(drawn.id));
    } while (++n < NUMBERED && tl_draw_order_next(draw->order, &drawn));
    if (!call(drawer, held, answer, err))
        return false;
    draw->n_drawn += answer->what == TL_DRAW_ANSWER_DONE ? answer->next - draw->next : 0;
    draw->next = answer->next;
    return true;
}

/* ---- holding it ---- */

static bool begin(struct tl_drawer *drawer, const struct tl_held_queue *held, int64_t opens_at_ms,
                  struct tl_draw **begun, struct answer *answer, struct tl_error *err)
{
    struct tl_draw *draw = calloc(1, sizeof(*draw));
    if (draw == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the draw");
    draw->opens_at_ms = opens_at_ms;
    draw->began_ms = tl_clock_ms();
    bool ok = make_opening(drawer, held->keys.queue, opens_at_ms, &draw->opening, err);
    if (ok) {
        begin_step(drawer, held, &draw->opening, opens_at_ms, "begin");
        ok = call(drawer, held, answer, err);
    }
    draw->next = answer->next;
    draw->cut = answer->cut;
    draw->order =
        ok && answer->what == TL_DRAW_ANSWER_DONE ? tl_draw_order_new(&draw->opening) : NULL;
    *begun = draw;
    return ok && (answer->what != TL_DRAW_ANSWER_DONE || draw->order != NULL ||
                  tl_error_set(err, TL_ERR_NOMEM, "no memory for the draw"));
}

static bool step(struct tl_drawer *drawer, const struct tl_held_queue *held, int64_t opens_at_ms,
                 struct tl_draw **draw, struct answer *answer, struct tl_error *err)
{
    if (*draw == NULL)
        return begin(drawer, held, opens_at_ms, draw, answer, err);
    answer->what = TL_DRAW_ANSWER_DONE;
    if (!(*draw)->numbering)
        return read_page(drawer, held, *draw, err);
    return number_next(drawer, held, *draw, answer, err);
}

bool tl_drawer_hold(struct tl_drawer *drawer, const struct tl_held_queue *held, int64_t opens_at_ms,
                    int64_t most_ms, struct tl_draw **draw, enum tl_draw_state *state,
                    struct tl_error *err)
{
    struct answer answer = {.what = TL_DRAW_ANSWER_DONE};
    int64_t until_ms = tl_clock_ms() + most_ms;
    if (*draw != NULL && (*draw)->opens_at_ms != opens_at_ms)
        tl_draw_free(draw);
    while (answer.what == TL_DRAW_ANSWER_DONE && tl_clock_ms() < until_ms) {
        if (!step(drawer, held, opens_at_ms, draw, &answer, err)) {
            tl_draw_free(draw);
            return false;
        }
    }
    *state = answer.what == TL_DRAW_ANSWER_GONE      ? TL_DRAW_OVER
             : answer.what == TL_DRAW_ANSWER_NOT_YET ? TL_DRAW_WAITS
                                                     : TL_DRAW_GOES_ON;
    if (answer.what == TL_DRAW_ANSWER_GONE && *draw != NULL && (*draw)->numbering)
        tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = held->keys.queue},
               "the draw is done: this process numbered %" PRIu64 " visitors in %" PRId64 " ms",
               (*draw)->n_drawn, tl_clock_ms() - (*draw)->began_ms);
    if (answer.what != TL_DRAW_ANSWER_DONE)
        tl_draw_free(draw);
    return true;
}
