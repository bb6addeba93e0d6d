/* SPDX-License-Identifier: Apache-2.0 */
/* What is not about one visitor's place. Anyone may ask for a queue's public numbers, the public
 * keys of passes, health, and the static files: what the waiting page loads, and the description of
 * the API. The protected site reports how it is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/jwt_keys.h"
#include "common/base/clock.h"
#include "common/base/json_text.h"
#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/config/texts.h"
#include "worker/api/body.h"
#include "worker/api/handlers.h"
#include "worker/page/page_assets.h"
#include "worker/visit/answer.h"
#include "worker/visit/view.h"

#define SHORT_CACHE_CONTROL "public, max-age=300"

enum {
    QUEUE_TEXT_MAX = 20480,
    READY_TEXT_MAX = 512,
    FEEDBACK_ANSWER_MAX = 256,
    REPORTS_PER_SECOND = 20
};
/* Fewer waits that came true say nothing about the estimate. */
enum { JUDGED_MIN = 20 };

/* What the operator says, by language; nothing when that is nothing. */
static void write_texts(struct tl_json *json, const char *texts)
{
    static const char name[] = "\"texts\":";
    const size_t head = sizeof(name) - 1;
    const char *language, *text = NULL;
    char member[TL_JSON_ESCAPED_MAX(sizeof(((struct tl_queue_settings *)NULL)->closed_text))];
    struct tl_json object;
    if (texts[0] == '\0')
        return;
    memcpy(member, name, head);
    tl_json_begin(&object, member + head, sizeof(member) - head);
    while ((text = tl_texts_next(texts, text, &language)) != NULL)
        tl_json_string(&object, language, text);
    tl_json_members(json, member, head + tl_json_end(&object));
}

/* Mode and phase, and what the operator says of them. */
static void write_state(struct tl_json *json, const struct tl_queue_settings *settings,
                        const struct tl_weather *weather)
{
    const enum tl_queue_mode mode = weather->mode;
    const enum tl_phase phase = weather->phase;
    tl_json_string(json, "mode", tl_mode_name(mode));
    tl_json_string(json, "phase", tl_phase_name(phase));
    tl_json_bool(json, "joins", tl_phase_joins(settings, phase));
    if (tl_mode_holds(mode) && mode != TL_MODE_PASSTHROUGH)
        tl_json_bool(json, "paused", true);
    if (!tl_phase_joins(settings, phase))
        write_texts(json, tl_queue_closed_texts(settings, mode));
    if (settings->closes_at_ms != 0)
        tl_view_time(json, "closes_at", settings->closes_at_ms);
}

/* What anyone may know of the draw: the hash before it, the seed and how many were drawn after. */
static void write_draw(struct tl_json *json, const struct tl_queue_settings *settings,
                       const struct tl_draw_record *draw)
{
    tl_json_string(json, "order", "draw");
    if (draw->announced_for_ms == settings->opens_at_ms || draw->seed[0] != '\0')
        tl_json_string(json, "draw_seed_hash", draw->hash);
    if (draw->seed[0] == '\0')
        return;
    tl_json_string(json, "draw_seed", draw->seed);
    tl_json_uint(json, "drawn", draw->drawn);
}

bool tl_handle_queue(struct tl_visit *visit)
{
    if (!tl_visit_queue(visit))
        return false;
    struct tl_queue *queue = visit->queue;
    const struct tl_queue_settings *settings = &queue->settings;
    const struct tl_weather *weather = tl_queue_weather(queue, visit->now_ms);
    char text[QUEUE_TEXT_MAX];
    struct tl_json json;
    tl_json_begin(&json, text, sizeof(text));
    tl_json_string(&json, "queue", queue->name);
    tl_json_bool(&json, "open", weather->open);
    if (settings->opens_at_ms != 0)
        tl_view_time(&json, "opens_at", settings->opens_at_ms);
    write_state(&json, settings, weather);
    if (settings->order == TL_ORDER_DRAW)
        write_draw(&json, settings, &queue->lost.known.draw);
    tl_json_uint(&json, "waiting", tl_line_waiting(queue->line));
    tl_json_uint(&json, "active", tl_line_active(queue->line));
    if (settings->policy != TL_POLICY_RATE)
        tl_json_uint(&json, "capacity", tl_queue_capacity(settings));
    if (settings->policy != TL_POLICY_COUNTER) {
        tl_json_uint(&json, "rate_admit", settings->rate.admit);
        tl_json_uint(&json, "rate_every_ms", (uint64_t)settings->rate.every_ms);
    }
    const struct tl_promises_score promises = queue->promises.score;
    if (promises.judged >= JUDGED_MIN) {
        tl_json_uint(&json, "eta_inside_percent", (uint64_t)llround(promises.inside * 100));
        tl_json_uint(&json, "eta_error_percent", (uint64_t)llround(promises.error * 100));
    }
    tl_json_array(&json, "lanes");
    for (size_t i = 0; i < settings->n_lanes; i++)
        tl_json_item(&json, settings->lanes[i]);
    tl_json_array_end(&json);
    return tl_answer_json(visit, 200, &json);
}

bool tl_handle_jwks(struct tl_visit *visit)
{
    struct tl_error err = {0};
    char *text = tl_jwt_keys_publish(visit->worker->secrets.pass_keys, &err);
    if (text == NULL)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY, "%s", err.text);
    tl_request_answer(visit->request, &(struct tl_answer){.status = 200,
                                                          .type = "application/jwk-set+json",
                                                          .cache = "public, max-age=300",
                                                          .body = text,
                                                          .length = strlen(text)});
    free(text);
    return true;
}

static bool answer_line(struct tl_request *request, unsigned status, const char *body)
{
    tl_request_answer(request, &(struct tl_answer){.status = status,
                                                   .type = "text/plain; charset=utf-8",
                                                   .body = body,
                                                   .length = strlen(body)});
    return true;
}

bool tl_handle_livez(struct tl_visit *visit)
{
    return answer_line(visit->request, 200, "ok\n");
}

bool tl_handle_readyz(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    const char *exclude = tl_request_query(visit->request, "exclude");
    if (exclude != NULL && strcmp(exclude, "store") != 0)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_QUERY, "exclude: only \"store\" can be");
    enum tl_readiness readiness = exclude != NULL ? tl_queues_readiness_here(&worker->queues)
                                                  : tl_queues_readiness(&worker->queues);
    if (readiness == TL_READY) {
        char troubles[READY_TEXT_MAX], line[READY_TEXT_MAX + 8];
        tl_queues_troubles(&worker->queues, troubles, sizeof(troubles));
        snprintf(line, sizeof(line), "ok%s%s\n", troubles[0] != '\0' ? "; " : "", troubles);
        return answer_line(visit->request, 200, line);
    }
    return tl_refuse(&visit->refusal,
                     readiness == TL_DRAINING        ? TL_REFUSAL_STOPPING
                     : readiness == TL_LINES_LOADING ? TL_REFUSAL_LOADING
                                                     : TL_REFUSAL_STORE,
                     "%s", tl_readiness_text(readiness));
}

/* ---- reports of the site ---- */

bool tl_handle_feedback(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_refusal *refusal = &visit->refusal;
    struct tl_feedback feedback;
    struct tl_error err = {0};
    size_t length = 0;
    char text[TL_FEEDBACK_TEXT_MAX], answer[FEEDBACK_ANSWER_MAX];
    struct tl_json json;
    if (!tl_visit_queue(visit))
        return false;
    const struct tl_queue_settings *settings = &visit->queue->settings;
    const char *caller = tl_visit_caller(visit);
    if (caller == NULL)
        return tl_refuse(refusal, TL_REFUSAL_NOT_TRUSTED, "feedback is taken only with an API key");
    /* Each API key is counted for each queue. */
    const struct tl_address counted = tl_visitor_stand_in(visit->name, caller);
    if (!tl_limiter_allow(worker->limiter, TL_LIMITER_FEEDBACK, &counted, REPORTS_PER_SECOND,
                          visit->now_ms))
        return tl_refuse(refusal, TL_REFUSAL_TOO_OFTEN, "At most %d reports a second",
                         REPORTS_PER_SECOND);
    const char *body = tl_request_body(visit->request, &length);
    if (!tl_feedback_body_parse(body, length, &feedback, &err))
        return tl_refuse(refusal, TL_REFUSAL_BAD_BODY, "%s", err.text);
    tl_feedback_format(&feedback, text);
    if (!tl_queue_env_takes_notes(worker->env) ||
        !tl_ingest_note(worker->env->ingest, TL_NOTE_FEEDBACK, visit->name, text))
        return tl_refuse(refusal, TL_REFUSAL_STORE, "%s", "");
    tl_json_begin(&json, answer, sizeof(answer));
    tl_json_string(&json, "queue", visit->name);
    tl_json_uint(&json, "capacity", tl_queue_capacity(settings));
    tl_json_bool(&json, "steered", settings->capacity_min > 0);
    return tl_answer_json(visit, 202, &json);
}

/* ---- static files ---- */

static bool send_asset(struct tl_request *request, const struct tl_asset *asset, const char *cache)
{
    const char *encodings = tl_request_header(request, "Accept-Encoding");
    const char *known = tl_request_header(request, "If-None-Match");
    bool gzip = asset->gzip != NULL && encodings != NULL && strstr(encodings, "gzip") != NULL;
    struct tl_answer answer = {.status = 200,
                               .type = asset->type,
                               .cache = cache,
                               .body = gzip ? asset->gzip : asset->bytes,
                               .length = gzip ? asset->gzip_length : asset->length};
    if (known != NULL && strstr(known, asset->etag) != NULL)
        answer = (struct tl_answer){.status = 304, .cache = cache};
    tl_answer_header(&answer, "ETag", asset->etag);
    tl_answer_header(&answer, "Vary", "Accept-Encoding");
    tl_answer_header(&answer, "X-Content-Type-Options", "nosniff");
    tl_answer_header(&answer, "Content-Security-Policy",
                     strncmp(asset->type, "text/javascript", strlen("text/javascript")) == 0
                         ? TL_ASSET_SCRIPT_POLICY
                         : TL_ASSET_POLICY);
    /* For pages of other origins, also those that load it with an integrity hash. */
    if (asset == &tl_page_embed) {
        tl_answer_header(&answer, "Access-Control-Allow-Origin", "*");
        tl_answer_header(&answer, "Cross-Origin-Resource-Policy", "cross-origin");
    }
    if (gzip && answer.status == 200)
        tl_answer_header(&answer, "Content-Encoding", "gzip");
    tl_request_answer(request, &answer);
    return true;
}

bool tl_handle_asset(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    const char *path = tl_request_path(visit->request);
    if (strcmp(path, tl_page_embed.path) == 0)
        return send_asset(visit->request, &tl_page_embed, SHORT_CACHE_CONTROL);
    const struct tl_asset *asset = tl_look_asset(worker->brand, worker->events, path);
    return asset != NULL ? send_asset(visit->request, asset, TL_ASSET_CACHE_CONTROL)
                         : answer_line(visit->request, 404, "not found\n");
}

bool tl_handle_openapi(struct tl_visit *visit)
{
    return send_asset(visit->request, &tl_page_openapi, SHORT_CACHE_CONTROL);
}

bool tl_handle_problem(struct tl_visit *visit)
{
    struct tl_text page = {0};
    const char *name = tl_request_path(visit->request) + strlen(TL_REFUSAL_PATH);
    bool found = tl_refusal_page(name, &page) && !page.failed;
    if (found)
        answer_line(visit->request, 200, page.data);
    tl_text_free(&page);
    return found || tl_refuse(&visit->refusal, TL_REFUSAL_NOT_FOUND, "%s", "");
}
