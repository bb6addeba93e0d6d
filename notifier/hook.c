/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/log.h"
#include "notifier/hook.h"

enum { ANSWER_MAX = 64 * 1024 }; /* what is longer is cut off */

static struct tl_fetch *send_body(const struct tl_hook *hook, const char *id, const char *body)
{
    size_t length = strlen(body);
    char id_line[TL_DELIVERY_ID_MAX + 32];
    char signature[TL_SIGNATURE_TEXT_MAX];
    char signature_line[TL_SIGNATURE_TEXT_MAX + 32];
    tl_signer_sign(hook->signer, (int64_t)time(NULL), body, length, signature);
    snprintf(id_line, sizeof(id_line), "Tellerline-Id: %s", id);
    snprintf(signature_line, sizeof(signature_line), "Tellerline-Signature: %s", signature);
    const char *const headers[] = {"Content-Type: application/json", "Expect:", id_line,
                                   signature_line, NULL};
    const struct tl_fetch_request request = {.url = hook->config->url,
                                             .timeout_ms = hook->config->timeout_ms,
                                             .body = body,
                                             .length = length,
                                             .headers = headers,
                                             .answer_max = ANSWER_MAX};
    return tl_fetch_begin(hook->fetcher, &request);
}

struct tl_fetch *tl_hook_post(struct tl_hook *hook, const char *id, json_t *events,
                              struct tl_error *err)
{
    json_t *body =
        json_pack("{s:s, s:s, s:O}", "id", id, "hook", hook->config->name, "events", events);
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    struct tl_fetch *post = text != NULL ? send_body(hook, id, text) : NULL;
    json_decref(body);
    free(text);
    if (post == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory to call a hook");
    hook->under_way += post != NULL;
    return post;
}

void tl_hook_break_off(struct tl_hook *hook, struct tl_fetch **post)
{
    hook->under_way -= *post != NULL;
    tl_fetch_end(post);
}

static void judge(const struct tl_fetched *fetched, struct tl_post_result *result)
{
    bool complete = fetched->end == TL_FETCH_ANSWERED || fetched->end == TL_FETCH_CUT_OFF;
    *result = (struct tl_post_result){.status = fetched->status};
    result->accepted = complete && result->status >= 200 && result->status < 300;
    if (!complete)
        snprintf(result->problem, sizeof(result->problem), "%.150s", fetched->problem);
    else if (!result->accepted)
        snprintf(result->problem, sizeof(result->problem), "it answers %ld%s", result->status,
                 result->status >= 300 && result->status < 400 ? "; redirects are not followed"
                                                               : "");
}

bool tl_hook_result(struct tl_hook *hook, struct tl_fetch **post, int64_t now_ms,
                    struct tl_post_result *result)
{
    const struct tl_fetched *fetched = tl_fetch_result(*post);
    if (fetched == NULL)
        return false;
    judge(fetched, result);
    tl_metrics_add(hook->metrics, TL_NOTIFIER_POSTS, 1);
    tl_metrics_add(hook->metrics, TL_NOTIFIER_FAILED, result->accepted ? 0 : 1);
    tl_metrics_observe(hook->metrics, TL_NOTIFIER_POST_TIME, fetched->took_us);
    tl_hook_break_off(hook, post);
    if (result->accepted && hook->failing)
        tl_info("hook %s answers again", hook->config->name);
    if (!result->accepted && !hook->failing) {
        hook->failing_since_ms = now_ms;
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){0},
               "hook %s cannot be told: %s. It is tried again; `tellerline hooks list` shows it",
               hook->config->name, result->problem);
    }
    hook->failing = !result->accepted;
    return true;
}
