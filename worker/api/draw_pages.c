/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of a draw, for everyone: GET /v1/queues/{queue}/draw?starting_after=&limit=, a page
 * at a time.
 * Hash, seed and how many were drawn are in memory; the draw ids are in the store, which the ingest
 * thread asks while the request is held. How many requests wait, and how often an address may ask,
 * is bounded.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/draw.h"
#include "common/auth/hex.h"
#include "common/base/clock.h"
#include "common/base/json_text.h"
#include "worker/api/handlers.h"
#include "worker/http/router.h"
#include "worker/visit/view.h"

enum {
    IDS_MAX = 1000,   /* in a page */
    WAITING_MAX = 16, /* requests */
    WAIT_MS = 5000,
    PAGES_PER_SECOND = 20, /* of an address: a list of a million in less than a minute */
    HEAD_MAX = 1024,       /* bytes of JSON beside the ids */
    ID_TEXT_MAX = TL_DRAW_ID_DIGITS + 3,
    TAG_MAX = 80,
    TAG_DIGITS = 16, /* of the seed's hash, in the tag */
};
#define RANK_MAX (UINT64_C(1) << 40)
/* The list never changes, but it can be lost. */
#define CACHE_CONTROL "public, max-age=3600"

struct page {
    uint64_t after, limit; /* ranks */
    char tag[TAG_MAX];     /* of this page of this draw, for ETag; "" before the draw is done */
};

/* ---- answers ---- */

static bool is_done(const struct tl_draw_record *draw)
{
    return draw->phase == TL_DRAW_DONE && draw->seed[0] != '\0';
}

/* The same members as in the admin API. */
static void write_head(struct tl_json *json, const struct tl_queue *queue)
{
    static const char *const phases[] = {[TL_DRAW_NONE] = "none",
                                         [TL_DRAW_CUT] = "cut",
                                         [TL_DRAW_DRAWING] = "drawing",
                                         [TL_DRAW_DONE] = "done"};
    const struct tl_queue_settings *settings = &queue->settings;
    const struct tl_draw_record *draw = &queue->lost.known.draw;
    bool done = is_done(draw), draws = settings->order == TL_ORDER_DRAW;
    int64_t opens_at_ms = done ? draw->opens_at_ms : settings->opens_at_ms;
    tl_json_string(json, "queue", queue->name);
    tl_json_string(json, "order", draws ? "draw" : "arrival");
    if (opens_at_ms != 0)
        tl_view_time(json, "opens_at", opens_at_ms);
    tl_json_string(json, "phase", phases[draw->phase]);
    tl_json_uint(json, "drawn", done ? draw->drawn : 0);
    if (done || (draws && draw->announced_for_ms == settings->opens_at_ms))
        tl_json_string(json, "hash", draw->hash);
    if (done)
        tl_json_string(json, "seed", draw->seed);
}

/* Another draw has another hash, or is of another generation. "" before the draw is done. */
static void write_tag(const struct tl_queue *queue, const struct page *page, char tag[TAG_MAX])
{
    const struct tl_draw_record *draw = &queue->lost.known.draw;
    tag[0] = '\0';
    if (is_done(draw))
        snprintf(tag, TAG_MAX, "\"%.*s-%llx-%llu-%llu\"", TAG_DIGITS, draw->hash,
                 (unsigned long long)queue->line->generation, (unsigned long long)page->after,
                 (unsigned long long)page->limit);
}

/* Answers with n ids. Before the draw is done there are none, and the answer is not kept. */
static bool answer(struct tl_visit *visit, const struct page *page, const unsigned char *ids,
                   size_t n)
{
    bool done = page->tag[0] != '\0';
    size_t size = HEAD_MAX + n * ID_TEXT_MAX;
    char digits[TL_DRAW_ID_DIGITS + 1];
    char *text = malloc(size);
    struct tl_json json;
    if (text == NULL)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                         "There is no memory for this page; try again");
    tl_json_begin(&json, text, size);
    write_head(&json, visit->queue);
    if (done) {
        tl_json_array(&json, "ids");
        for (size_t i = 0; i < n; i++) {
            tl_hex_format(ids + i * TL_DRAW_ID_BYTES, TL_DRAW_ID_BYTES, digits);
            tl_json_item(&json, digits);
        }
        tl_json_array_end(&json);
    }
    tl_json_bool(&json, "has_more", done && page->after + n < visit->queue->lost.known.draw.drawn);
    struct tl_answer page_answer = {.status = 200, .type = "application/json", .body = text};
    page_answer.length = tl_json_end(&json);
    if (done) {
        page_answer.cache = CACHE_CONTROL;
        tl_answer_header(&page_answer, "ETag", page->tag);
    }
    tl_request_answer(visit->request, &page_answer);
    free(text);
    return true;
}

/* Does the client have this page already? Then says so. */
static bool is_known(struct tl_request *request, const struct page *page)
{
    const char *known = tl_request_header(request, "If-None-Match");
    if (page->tag[0] == '\0' || known == NULL || strstr(known, page->tag) == NULL)
        return false;
    struct tl_answer same = {.status = 304, .cache = CACHE_CONTROL};
    tl_answer_header(&same, "ETag", page->tag);
    tl_request_answer(request, &same);
    return true;
}

/* ---- requests ---- */

/* A number of the query; *value stays without one. */
static bool read_number(struct tl_visit *visit, const char *name, uint64_t most, uint64_t *value)
{
    const char *text = tl_request_query(visit->request, name);
    if (text == NULL)
        return true;
    size_t length = strlen(text);
    bool digits = length > 0 && length <= 13 && strspn(text, "0123456789") == length;
    uint64_t number = digits ? strtoull(text, NULL, 10) : 0;
    if (!digits || number > most)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_QUERY,
                         "%s: expected a number from 0 to %llu", name, (unsigned long long)most);
    *value = number;
    return true;
}

/* Which page the query asks for, of a queue whose line is loaded. False: refused. */
static bool read_page(struct tl_visit *visit, struct page *page)
{
    *page = (struct page){.limit = IDS_MAX};
    if (!tl_visit_queue(visit) || !read_number(visit, "starting_after", RANK_MAX, &page->after) ||
        !read_number(visit, "limit", IDS_MAX, &page->limit))
        return false;
    write_tag(visit->queue, page, page->tag);
    return true;
}

/* How many ids the page has. */
static uint64_t length_of(const struct tl_queue *queue, const struct page *page)
{
    const struct tl_draw_record *draw = &queue->lost.known.draw;
    uint64_t left = is_done(draw) && page->after < draw->drawn ? draw->drawn - page->after : 0;
    return left < page->limit ? left : page->limit;
}

/* The store has told the ids, or not in time. */
static bool told(struct tl_visit *visit)
{
    const struct tl_wait *wait = &visit->wait;
    struct page page;
    if (!read_page(visit, &page))
        return false;
    if (wait->ids == NULL && visit->worker->env->draining)
        return tl_refuse(&visit->refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (wait->ids == NULL || strcmp(page.tag, wait->about) != 0) /* another draw, meanwhile */
        return tl_refuse(&visit->refusal, TL_REFUSAL_STORE, "%s", "");
    const uint64_t n = length_of(visit->queue, &page);
    if (wait->length != n * TL_DRAW_ID_BYTES)
        return tl_refuse(&visit->refusal, TL_REFUSAL_NOT_FOUND,
                         "The store has lost the list of this draw");
    return answer(visit, &page, wait->ids, n);
}

/* Asks the store for n ids, and waits for them. */
static bool ask(struct tl_visit *visit, const struct page *page, uint64_t n)
{
    struct tl_worker *worker = visit->worker;
    if (worker->waits.lists[TL_WAIT_PAGE].count >= WAITING_MAX)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                         "Too many ask for this list now; try again");
    visit->wait.number = ++worker->waits.last_number;
    if (!tl_queue_env_store_up(worker->env) ||
        !tl_ingest_drawn(worker->env->ingest, visit->name, page->after + 1, n, visit->wait.number))
        return tl_refuse(&visit->refusal, TL_REFUSAL_STORE, "%s", "");
    static_assert(sizeof(visit->wait.about) == TAG_MAX, "the tag fits");
    memcpy(visit->wait.about, page->tag, TAG_MAX);
    tl_wait_begin(visit, TL_WAIT_PAGE, WAIT_MS, told);
    return true;
}

bool tl_handle_draw(struct tl_visit *visit)
{
    struct page page;
    if (!read_page(visit, &page))
        return false;
    if (!tl_visit_within(visit, TL_LIMITER_PAGES, PAGES_PER_SECOND))
        return tl_refuse(&visit->refusal, TL_REFUSAL_TOO_OFTEN, "At most %d pages a second",
                         PAGES_PER_SECOND);
    if (is_known(visit->request, &page))
        return true;
    const uint64_t n = length_of(visit->queue, &page);
    return n > 0 ? ask(visit, &page, n) : answer(visit, &page, NULL, 0);
}
