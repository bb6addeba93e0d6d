/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/queues/{q}/feedback: the protected site reports how it is. */
#include "common/base/clock.h"
#include "common/config/queue_settings.h"
#include "worker/api/body.h"
#include "worker/api/routes.h"
#include "worker/http/json_text.h"

enum { ANSWER_MAX = 256, REPORTS_PER_SECOND = 20 };

/* Each API key is counted for each queue. */
static bool within_limit(const struct tl_worker *worker, const char *caller, const char *queue)
{
    const struct tl_address address = tl_visitor_stand_in(queue, caller);
    return tl_limiter_allow(worker->limiter, TL_LIMITER_FEEDBACK, &address, REPORTS_PER_SECOND,
                            tl_clock_ms());
}

static void answer(struct tl_request *request, const char *name,
                   const struct tl_queue_settings *settings)
{
    char text[ANSWER_MAX];
    struct tl_json json;
    tl_json_begin(&json, text, sizeof(text));
    tl_json_string(&json, "queue", name);
    tl_json_uint(&json, "capacity", tl_queue_capacity(settings));
    tl_json_bool(&json, "steered", settings->capacity_mode == TL_CAPACITY_AUTO);
    struct tl_answer result = {.status = 202, .type = "application/json", .body = text};
    result.length = tl_json_end(&json);
    tl_request_answer(request, &result);
}

bool tl_handle_feedback(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_refusal *refusal = &visit->refusal;
    struct tl_feedback feedback;
    struct tl_error err = {0};
    size_t length = 0;
    char text[TL_FEEDBACK_TEXT_MAX];
    if (!tl_visit_queue(visit))
        return false;
    const char *caller = tl_visitor_caller(worker, visit->request);
    if (caller == NULL)
        return tl_refuse(refusal, TL_REFUSAL_NOT_TRUSTED, "feedback is taken only with an API key");
    if (!within_limit(worker, caller, visit->name))
        return tl_refuse(refusal, TL_REFUSAL_TOO_OFTEN, "At most %d reports a second",
                         REPORTS_PER_SECOND);
    const char *body = tl_request_body(visit->request, &length);
    if (!tl_feedback_body_parse(body, length, &feedback, &err))
        return tl_refuse(refusal, TL_REFUSAL_BAD_BODY, "%s", err.text);
    tl_feedback_format(&feedback, text);
    if (!tl_queue_env_takes_notes(worker->env) ||
        !tl_ingest_note(worker->env->ingest, TL_NOTE_FEEDBACK, visit->name, text))
        return tl_refuse(refusal, TL_REFUSAL_STORE, "%s", "");
    answer(visit->request, visit->name, &visit->queue->settings);
    return true;
}
