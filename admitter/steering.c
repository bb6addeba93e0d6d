/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "admitter/prober.h"
#include "admitter/steering.h"
#include "common/base/log.h"
#include "common/store/feedback.h"
#include "common/store/library.h"
#include "common/store/reply.h"

enum { STEP_MS = 1000, FAILURE_LOG_MS = 30000, REPORT_TEXT_MAX = 128 };

struct tl_steering {
    struct tl_prober *prober; /* NULL: no queue has a probe */
    struct tl_metrics *metrics;
    struct tl_args args;
    uint64_t events_length;
    struct tl_log_limit failure_log;
};

struct tl_steering *tl_steering_new(const struct tl_config *config, struct tl_metrics *metrics,
                                    struct tl_error *err)
{
    struct tl_error problem = {0};
    struct tl_steering *steering = calloc(1, sizeof(*steering));
    if (steering == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory to steer capacities");
        return NULL;
    }
    steering->metrics = metrics;
    steering->events_length = config->streams.events_length;
    steering->prober = tl_prober_new(config, &problem);
    if (steering->prober == NULL && problem.kind != TL_OK) {
        *err = problem;
        tl_steering_free(&steering);
    }
    return steering;
}

void tl_steering_free(struct tl_steering **steering)
{
    struct tl_steering *old = *steering;
    *steering = NULL;
    if (old == NULL)
        return;
    tl_prober_free(&old->prober);
    tl_args_free(&old->args);
    free(old);
}

/* What the probe of this queue has found since the last step, as a report; "" for nothing. */
static void take_probed(struct tl_steering *steering, const char *queue, int64_t now_ms,
                        char text[TL_FEEDBACK_TEXT_MAX])
{
    struct tl_probed probed;
    unsigned suppressed;
    text[0] = '\0';
    if (!tl_prober_take(steering->prober, queue, &probed))
        return;
    tl_metrics_add(steering->metrics, TL_ADMITTER_PROBES, 1);
    if (!probed.failed) {
        tl_feedback_format(
            &(struct tl_feedback){.load = probed.load, .latency_ms = -1, .errors = -1}, text);
        return;
    }
    tl_metrics_add(steering->metrics, TL_ADMITTER_PROBE_ERRORS, 1);
    if (tl_log_allow(&steering->failure_log, now_ms, FAILURE_LOG_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue, .error = &probed.error},
               "the probe of the site failed");
}

/* ---- what the function returned ---- */

/* ", load 93.0 %, errors 7.1 %": the worst that was reported, in thousandths; -1: nothing. */
static void describe(const struct tl_reply *step, char text[REPORT_TEXT_MAX])
{
    int64_t load = tl_reply_signed(step, TL_ADAPT_LOAD);
    int64_t latency_ms = tl_reply_signed(step, TL_ADAPT_LATENCY);
    int64_t errors = tl_reply_signed(step, TL_ADAPT_ERRORS);
    int n = 0;
    text[0] = '\0';
    if (load >= 0)
        n += snprintf(text, REPORT_TEXT_MAX, ", load %lld.%lld %%", (long long)load / 10,
                      (long long)load % 10);
    if (latency_ms >= 0)
        n += snprintf(text + n, REPORT_TEXT_MAX - (size_t)n, ", latency %lld ms",
                      (long long)latency_ms);
    if (errors >= 0)
        (void)snprintf(text + n, REPORT_TEXT_MAX - (size_t)n, ", errors %lld.%lld %%",
                       (long long)errors / 10, (long long)errors % 10);
}

/* Tells the log and the metrics; *steered is still as of the step before. */
static void tell(struct tl_steering *steering, const char *queue, const struct tl_reply *step,
                 const struct tl_steered *steered)
{
    char report[REPORT_TEXT_MAX];
    const struct tl_log_fields fields = {.queue = queue};
    long long before = tl_reply_signed(step, TL_ADAPT_BEFORE);
    long long after = tl_reply_signed(step, TL_ADAPT_AFTER);
    int64_t why = tl_reply_signed(step, TL_ADAPT_WHY);
    bool unreported = why == TL_WHY_UNREPORTED;
    describe(step, report);
    if (after < before && !unreported) {
        tl_metrics_add(steering->metrics, TL_ADMITTER_CUTS, 1);
        tl_log(TL_LOG_INFO, &fields, "the site is overloaded%s: capacity cut from %lld to %lld",
               report, before, after);
    } else if (after > before) {
        tl_metrics_add(steering->metrics, TL_ADMITTER_RAISES, 1);
        tl_log(TL_LOG_DEBUG, &fields, "the site has room%s: capacity raised from %lld to %lld",
               report, before, after);
    }
    if (unreported && !(steered->known && steered->unreported))
        tl_log(TL_LOG_WARN, &fields,
               "the site reports nothing: capacity %lld, the last one seen to be safe, until it "
               "does",
               after);
    else if (!unreported && steered->known && steered->unreported)
        tl_log(TL_LOG_INFO, &fields, "the site reports again%s: its reports steer the capacity",
               report);
    if (why == TL_WHY_LOWEST && !(steered->known && steered->lowest))
        tl_log(TL_LOG_WARN, &fields,
               "the site is overloaded%s, and the capacity is as low as it may be: %lld "
               "(capacity_min)",
               report, after);
}

bool tl_steering_step(struct tl_steering *steering, const struct tl_held_queue *held,
                      struct tl_steered *steered, int64_t now_ms, struct tl_error *err)
{
    char own[TL_FEEDBACK_TEXT_MAX];
    if (!steered->on) {
        steered->known = false;
        return true;
    }
    steered->probe_ms = tl_prober_tend(steering->prober, held->keys.queue, now_ms);
    if (now_ms < steered->due_ms)
        return true;
    take_probed(steering, held->keys.queue, now_ms, own);
    tl_call_begin(&steering->args, TL_FN_ADAPT, &held->keys);
    tl_args_uint(&steering->args, steering->events_length);
    tl_args_str(&steering->args, own);
    struct tl_reply *step = tl_call(held->redis, &steering->args, err);
    if (step == NULL)
        return false;
    steered->due_ms = now_ms + STEP_MS;
    steered->on = tl_reply_signed(step, TL_ADAPT_STEERED) == 1;
    if (steered->on) {
        int64_t why = tl_reply_signed(step, TL_ADAPT_WHY);
        tell(steering, held->keys.queue, step, steered);
        steered->known = true;
        steered->unreported = why == TL_WHY_UNREPORTED;
        steered->lowest = why == TL_WHY_LOWEST;
        steered->capacity = tl_reply_signed(step, TL_ADAPT_AFTER);
        steered->load = tl_reply_signed(step, TL_ADAPT_LOAD);
    }
    tl_reply_free(step);
    return true;
}
