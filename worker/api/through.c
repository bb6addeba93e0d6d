/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/api/misuse.h"
#include "worker/api/page_renderer.h"
#include "worker/api/through.h"
#include "worker/http/json_text.h"
#include "worker/queue/passthrough.h"
#include "worker/report/worker_metrics.h"

enum { ANSWER_MAX = 4096 };

bool tl_through_applies(const struct tl_api *api, const char *queue)
{
    const struct tl_queue *local = tl_queues_find(api->queues, queue);
    return tl_passthrough_names(api->env->passthrough, queue) ||
           (local != NULL && local->settings.mode == TL_MODE_PASSTHROUGH);
}

void tl_through_count(const struct tl_api *api, const char *queue)
{
    tl_metrics_add(api->env->metrics, TL_WORKER_PASSED_THROUGH, 1);
    tl_misuse_count(api, queue, TL_QUEUE_PASSED_THROUGH);
}

static const char *target_of(const struct tl_api *api, const char *queue)
{
    const struct tl_queue *local = tl_queues_find(api->queues, queue);
    const struct tl_queue_settings *settings =
        local != NULL && local->line != NULL
            ? &local->settings
            : tl_config_queue(api->config->queues, api->config->n_queues, queue);
    return settings != NULL ? settings->target_url : "";
}

void tl_through_answer(const struct tl_api *api, struct tl_request *request, const char *queue,
                       const char *cookie)
{
    char text[ANSWER_MAX];
    struct tl_json json;
    const char *target = target_of(api, queue);
    if (strncmp(tl_request_path(request), "/q/", 3) == 0) {
        tl_page_send_through(api, request, queue, target, cookie);
        return;
    }
    tl_json_begin(&json, text, sizeof(text));
    tl_json_string(&json, "queue", queue);
    tl_json_string(&json, "status", "passthrough");
    if (target[0] != '\0')
        tl_json_string(&json, "target_url", target);
    struct tl_answer answer = {
        .status = 200, .type = "application/json", .body = text, .length = tl_json_end(&json)};
    tl_answer_header(&answer, "Set-Cookie", cookie);
    tl_request_answer(request, &answer);
}

bool tl_through_passes_all(const struct tl_api *api, struct tl_request *request, const char *queue)
{
    if (!tl_through_applies(api, queue))
        return false;
    tl_through_count(api, queue);
    tl_through_answer(api, request, queue, NULL);
    return true;
}
