/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "admitter/prober.h"
#include "admitter/reading.h"
#include "common/client/fetcher.h"

enum {
    WANTED_MS = 10000, /* what was found and not tended for so long is old */
    ANSWER_MAX = 1 << 20,
    LOAD_MAX = 1000000, /* a thousand times the full load */
};

struct probe {
    const char *queue;
    const struct tl_probe_config *config;
    double full;
    struct tl_fetch *fetch; /* under way, or NULL */
    int64_t due_ms, tended_ms;
    bool fresh; /* the result was not taken yet */
    struct tl_probed result;
};

struct tl_prober {
    struct tl_fetcher *fetcher;
    size_t n;
    struct probe probes[];
};

static struct probe *find(struct tl_prober *prober, const char *queue)
{
    for (size_t i = 0; prober != NULL && i < prober->n; i++)
        if (strcmp(prober->probes[i].queue, queue) == 0)
            return &prober->probes[i];
    return NULL;
}

static void judge(const struct probe *probe, const struct tl_fetched *fetched,
                  struct tl_probed *result)
{
    double number;
    struct tl_error *err = &result->error;
    *result = (struct tl_probed){.failed = true};
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
        result->failed = false;
        result->load = load < LOAD_MAX ? (int64_t)load : LOAD_MAX;
    }
}

static void ask(const struct tl_prober *prober, struct probe *probe, int64_t now_ms)
{
    const struct tl_fetch_request request = {.url = probe->config->url,
                                             .timeout_ms = probe->config->timeout_ms,
                                             .answer_max = ANSWER_MAX,
                                             .fails_on_error = true};
    probe->due_ms = now_ms + probe->config->every_ms;
    probe->fetch = tl_fetch_begin(prober->fetcher, &request);
    if (probe->fetch != NULL)
        return;
    probe->result = (struct tl_probed){.failed = true};
    tl_error_set(&probe->result.error, TL_ERR_NOMEM, "no memory to ask the site");
    probe->fresh = true;
}

int64_t tl_prober_tend(struct tl_prober *prober, const char *queue, int64_t now_ms)
{
    struct probe *probe = find(prober, queue);
    if (probe == NULL)
        return INT64_MAX;
    const struct tl_fetched *fetched = tl_fetch_result(probe->fetch);
    if (fetched != NULL) {
        judge(probe, fetched, &probe->result);
        probe->fresh = true;
        tl_fetch_end(&probe->fetch);
    }
    probe->fresh = probe->fresh && now_ms - probe->tended_ms < WANTED_MS;
    probe->tended_ms = now_ms;
    if (probe->fetch == NULL && now_ms >= probe->due_ms)
        ask(prober, probe, now_ms);
    return probe->due_ms > now_ms ? probe->due_ms : INT64_MAX;
}

bool tl_prober_take(struct tl_prober *prober, const char *queue, struct tl_probed *probed)
{
    struct probe *probe = find(prober, queue);
    if (probe == NULL || !probe->fresh)
        return false;
    *probed = probe->result;
    probe->fresh = false;
    return true;
}

struct tl_prober *tl_prober_new(const struct tl_config *config, struct tl_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < config->n_queues; i++)
        n += config->queues[i].probe.url[0] != '\0';
    if (n == 0)
        return NULL;
    struct tl_prober *prober = calloc(1, sizeof(*prober) + n * sizeof(prober->probes[0]));
    if (prober == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory to probe sites");
        return NULL;
    }
    for (size_t i = 0; i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        if (queue->probe.url[0] != '\0')
            prober->probes[prober->n++] = (struct probe){.queue = queue->name,
                                                         .config = &queue->probe,
                                                         .full = strtod(queue->probe.full, NULL)};
    }
    prober->fetcher = tl_fetcher_new(n, err);
    if (prober->fetcher == NULL)
        tl_prober_free(&prober);
    return prober;
}

void tl_prober_free(struct tl_prober **prober)
{
    struct tl_prober *old = *prober;
    *prober = NULL;
    if (old == NULL)
        return;
    for (size_t i = 0; i < old->n; i++)
        tl_fetch_end(&old->probes[i].fetch);
    tl_fetcher_free(&old->fetcher);
    free(old);
}
