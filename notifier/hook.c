/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "notifier/hook.h"

bool tl_hook_post(struct tl_hook *hook, struct tl_delivery *delivery, const char *id,
                  const char *body, size_t length, struct tl_error *err)
{
    char signature[TL_SIGNATURE_TEXT_MAX];
    tl_signer_sign(hook->signer, (int64_t)time(NULL), body, length, signature);
    const struct tl_post_request request = {.url = hook->config->url,
                                            .body = body,
                                            .length = length,
                                            .id = id,
                                            .signature = signature,
                                            .timeout_ms = hook->config->timeout_ms};
    delivery->post = tl_sender_post(hook->sender, &request, err);
    if (delivery->post == NULL)
        return false;
    delivery->started_us = tl_clock_us();
    hook->under_way++;
    return true;
}

static void note(struct tl_hook *hook, const struct tl_post_result *result, int64_t now_ms)
{
    if (result->accepted && hook->failing)
        tl_info("hook %s answers again", hook->config->name);
    if (!result->accepted && !hook->failing) {
        hook->failing_since_ms = now_ms;
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){0},
               "hook %s cannot be told: %s. It is tried again; `tellerline hooks list` shows it",
               hook->config->name, result->problem);
    }
    hook->failing = !result->accepted;
}

bool tl_hook_result(struct tl_hook *hook, struct tl_delivery *delivery, int64_t now_ms,
                    struct tl_post_result *result)
{
    if (delivery->post == NULL || !tl_post_done(delivery->post, result))
        return false;
    tl_post_free(&delivery->post);
    hook->under_way--;
    tl_metrics_add(hook->metrics, TL_NOTIFIER_POSTS, 1);
    tl_metrics_add(hook->metrics, TL_NOTIFIER_FAILED, result->accepted ? 0 : 1);
    tl_metrics_observe(hook->metrics, TL_NOTIFIER_POST_TIME, tl_clock_us() - delivery->started_us);
    note(hook, result, now_ms);
    return true;
}

void tl_hook_break_off(struct tl_hook *hook, struct tl_delivery *delivery)
{
    if (delivery->post == NULL)
        return;
    tl_post_free(&delivery->post);
    hook->under_way--;
}
