/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admitter/reading.h"
#include "admitter/steering.h"
#include "common/base/log.h"
#include "common/client/fetcher.h"
#include "common/store/feedback.h"
#include "common/store/library.h"
#include "common/store/reply.h"

enum {
    STEP_MS = 1000,
    FAILURE_LOG_MS = 30000,
    REPORT_TEXT_MAX = 128,
    WANTED_MS = 10000, /* what was found and not tended for this long is old */
    ANSWER_MAX = 1 << 20,
    LOAD_MAX = 1000000, /* a thousand times the full load */
};

/* Asks the site of one queue, as long as its capacity is steered. */
struct probe {
    const char *queue;
    const struct tl_probe_config *config;
    double full;
    struct tl_fetch *fetch; /* under way, or NULL */
    int64_t due_ms, tended_ms;
    bool fresh;            /* the result was not taken yet */
    int64_t load;          /* in thousandths; -1: it failed */
    struct tl_error error; /* of a failure */
};

struct tl_steering {
    struct tl_metrics *metrics;
    struct tl_args args;
    uint64_t events_length;
    struct tl_log_limit failure_log;
    struct tl_fetcher *fetcher; /* NULL: no queue has a probe */
    size_t n_probes;
    struct probe probes[];
};

struct tl_steering *tl_steering_new(const struct tl_config *config, struct tl_metrics *metrics,
                                    struct tl_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < config->n_queues; i++)
        n += config->queues[i].probe.url[0] != '\0';
    struct tl_steering *steering = calloc(1, sizeof(*steering) + n * sizeof(steering->probes[0]));
    if (steering == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory to steer capacities");
        return NULL;
    }
    steering->metrics = metrics;
    steering->events_length = config->retention.events_entries;
    for (size_t i = 0; i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        if (queue->probe.url[0] != '\0')
            steering->probes[steering->n_probes++] = (struct probe){
                .queue = queue->name, .config = &queue->probe, .full = queue->probe.full};
    }
    if (n > 0 && (steering->fetcher = tl_fetcher_new(n, err)) == NULL)
        tl_steering_free(&steering);
    return steering;
}

void tl_steering_free(struct tl_steering **steering)
{
    struct tl_steering *old = *steering;
    *steering = NULL;
    if (old == NULL)
        return;
    for (size_t i = 0; i < old->n_probes; i++)
        tl_fetch_end(&old->probes[i].fetch);
    tl_fetcher_free(&old->fetcher);
    tl_args_free(&old->args);
    free(old);
}

/* ---- what the site says ---- */

static void judge(struct probe *probe, const struct tl_fetched *fetched)
{
    double number;
    struct tl_error *err = &probe->error;
    probe->load = -1;
    if (fetched->end == TL_FETCH_CUT_OFF) {
        tl_error_set(err, TL_ERR_PROTOCOL, "the site answers with more than %d bytes", ANSWER_MAX);
    } else if (fetched->end == TL_FETCH_LATE) {
        tl_error_set(err, TL_ERR_TIMEOUT, "the site does not answer within %lld ms",
                     (long long)probe->config->timeout_ms);
    } else if (fetched->end != TL_FETCH_ANSWERED) {
        tl_error_set(err, TL_ERR_CONNECT, "%s", fetched->problem);
    } else if (tl_reading_take(probe->config->format, fetched->text, fetched->length,
                               probe->config->value, &number, err)) {
        double load = ceil(number / probe->full * 1000 - 1e-6);
        probe->load = load < LOAD_MAX ? (int64_t)load : LOAD_MAX;
    }
}

/* Reads what the probe has found, and asks again when it is due. Returns when to come again;
 * INT64_MAX: no matter when. */
static int64_t tend(const struct tl_steering *steering, struct probe *probe, int64_t now_ms)
{
    const struct tl_fetched *fetched = tl_fetch_result(probe->fetch);
    if (fetched != NULL) {
        judge(probe, fetched);
        probe->fresh = true;
        tl_fetch_end(&probe->fetch);
    }
    probe->fresh = probe->fresh && now_ms - probe->tended_ms < WANTED_MS;
    probe->tended_ms = now_ms;
    if (probe->fetch == NULL && now_ms >= probe->due_ms) {
        const struct tl_fetch_request request = {.url = probe->config->url,
                                                 .timeout_ms = probe->config->timeout_ms,
                                                 .answer_max = ANSWER_MAX,
                                                 .fails_on_error = true};
        probe->due_ms = now_ms + probe->config->every_ms;
        probe->fetch = tl_fetch_begin(steering->fetcher, &request);
        if (probe->fetch == NULL) {
            tl_error_set(&probe->error, TL_ERR_NOMEM, "no memory to ask the site");
            probe->load = -1;
            probe->fresh = true;
        }
    }
    return probe->due_ms > now_ms ? probe->due_ms : INT64_MAX;
}

/* What the probe has found since the last step, as a report; "" for nothing. */
static void take_probed(struct tl_steering *steering, struct probe *probe, int64_t now_ms,
                        char text[TL_FEEDBACK_TEXT_MAX])
{
    unsigned suppressed;
    text[0] = '\0';
    if (probe == NULL || !probe->fresh)
        return;
    probe->fresh = false;
    tl_metrics_add(steering->metrics, TL_ADMITTER_PROBES, 1);
    if (probe->load >= 0) {
        tl_feedback_format(
            &(struct tl_feedback){.load = probe->load, .latency_ms = -1, .errors = -1}, text);
        return;
    }
    tl_metrics_add(steering->metrics, TL_ADMITTER_PROBE_ERRORS, 1);
    if (tl_log_allow(&steering->failure_log, now_ms, FAILURE_LOG_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = probe->queue, .error = &probe->error},
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
               "(capacity.min)",
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
    struct probe *probe = NULL;
    for (size_t i = 0; i < steering->n_probes && probe == NULL; i++)
        if (strcmp(steering->probes[i].queue, held->keys.queue) == 0)
            probe = &steering->probes[i];
    steered->probe_ms = probe != NULL ? tend(steering, probe, now_ms) : INT64_MAX;
    if (now_ms < steered->due_ms)
        return true;
    take_probed(steering, probe, now_ms, own);
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
