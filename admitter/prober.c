/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "admitter/prober.h"
#include "admitter/reading.h"
#include "common/base/clock.h"
#include "common/base/grow.h"
#include "common/config/checks.h"

enum {
    WANTED_MS = 10000, /* after the last question for a result */
    IDLE_MS = 1000,
    ANSWER_MAX = 1 << 20,
    LOAD_MAX = 1000000, /* a thousand times the full load */
};

struct probe {
    const char *queue;
    const struct tl_probe_config *config;
    double full;
    /* Under the lock: */
    int64_t wanted_ms; /* until then */
    bool fresh;        /* the result was not taken yet */
    struct tl_probed result;
    /* The thread's own: */
    CURL *easy; /* NULL until its first use */
    bool asking;
    int64_t due_ms;
    char *answer; /* grows; kept for the next one */
    size_t length, size;
    bool too_long, no_memory;
    char problem[CURL_ERROR_SIZE];
};

struct tl_prober {
    pthread_mutex_t lock;
    pthread_t thread;
    bool started, stopping; /* stopping: under the lock */
    CURLM *multi;           /* of the thread; others only wake it */
    size_t n;
    struct probe *probes;
};

/* ---- the thread ---- */

static size_t take_answer(char *bytes, size_t size, size_t n, void *context)
{
    struct probe *probe = context;
    size_t more = size * n;
    probe->too_long = probe->too_long || more > ANSWER_MAX - probe->length;
    if (probe->too_long)
        return 0; /* ends the transfer */
    char *answer = tl_grow(probe->answer, &probe->size, probe->length + more + 1, 1);
    probe->no_memory = answer == NULL;
    if (answer == NULL)
        return 0;
    probe->answer = answer;
    memcpy(probe->answer + probe->length, bytes, more);
    probe->length += more;
    return more;
}

static bool prepare(struct probe *probe)
{
    CURL *easy = curl_easy_init();
    if (easy == NULL)
        return false;
    bool ok =
        curl_easy_setopt(easy, CURLOPT_URL, probe->config->url) == CURLE_OK &&
        (!tl_url_is_local(probe->config->url) ||
         curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK) &&
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
        /* Only the address of the configuration is asked, no other that it names. */
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        /* A transfer that ends does not wait for the thread that resolves its host name. */
        curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)probe->config->timeout_ms) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_USERAGENT, "tellerline/" TELLERLINE_VERSION) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, probe->problem) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, probe) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PRIVATE, probe) == CURLE_OK;
    if (ok)
        probe->easy = easy;
    else
        curl_easy_cleanup(easy);
    return ok;
}

static void post(struct tl_prober *prober, struct probe *probe, const struct tl_probed *result)
{
    pthread_mutex_lock(&prober->lock);
    probe->result = *result;
    probe->fresh = true;
    pthread_mutex_unlock(&prober->lock);
}

static void begin(struct tl_prober *prober, struct probe *probe, int64_t now_ms)
{
    probe->due_ms = now_ms + probe->config->every_ms;
    probe->length = 0;
    probe->too_long = probe->no_memory = false;
    probe->problem[0] = '\0';
    probe->asking = (probe->easy != NULL || prepare(probe)) &&
                    curl_multi_add_handle(prober->multi, probe->easy) == CURLM_OK;
    if (!probe->asking) {
        struct tl_probed result = {.failed = true};
        tl_error_set(&result.error, TL_ERR_NOMEM, "no memory to ask the site");
        post(prober, probe, &result);
    }
}

/* Begins what is due. Returns after how many ms the next probe is. */
static int begin_due(struct tl_prober *prober)
{
    int64_t now_ms = tl_clock_ms();
    int64_t next_ms = now_ms + IDLE_MS;
    for (size_t i = 0; i < prober->n; i++) {
        struct probe *probe = &prober->probes[i];
        pthread_mutex_lock(&prober->lock);
        bool wanted = now_ms < probe->wanted_ms;
        pthread_mutex_unlock(&prober->lock);
        if (!wanted || probe->asking)
            continue;
        if (now_ms >= probe->due_ms)
            begin(prober, probe, now_ms);
        if (probe->due_ms < next_ms)
            next_ms = probe->due_ms;
    }
    return (int)(next_ms - now_ms);
}

static void judge(const struct probe *probe, CURLcode code, struct tl_probed *result)
{
    double number;
    struct tl_error *err = &result->error;
    result->failed = true;
    if (probe->too_long) {
        tl_error_set(err, TL_ERR_PROTOCOL, "the site answers with more than %d bytes", ANSWER_MAX);
    } else if (probe->no_memory) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the site's answer");
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        tl_error_set(err, TL_ERR_TIMEOUT, "the site does not answer within %lld ms",
                     (long long)probe->config->timeout_ms);
    } else if (code != CURLE_OK) {
        tl_error_set(err, TL_ERR_CONNECT, "%s",
                     probe->problem[0] != '\0' ? probe->problem : curl_easy_strerror(code));
    } else if (tl_reading_take(probe->config->format, probe->answer != NULL ? probe->answer : "",
                               probe->length, probe->config->value, &number, err)) {
        double load = ceil(number / probe->full * 1000 - 1e-6);
        result->failed = false;
        result->load = load < LOAD_MAX ? (int64_t)load : LOAD_MAX;
    }
}

static void end_finished(struct tl_prober *prober)
{
    int left;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(prober->multi, &left)) != NULL) {
        char *owner = NULL;
        CURLcode code = message->data.result; /* the message is gone with its handle */
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner) != CURLE_OK)
            continue;
        struct probe *probe = (struct probe *)(void *)owner;
        struct tl_probed result = {0};
        (void)curl_multi_remove_handle(prober->multi, probe->easy); /* fails for other handles */
        probe->asking = false;
        judge(probe, code, &result);
        post(prober, probe, &result);
    }
}

static bool goes_on(struct tl_prober *prober)
{
    pthread_mutex_lock(&prober->lock);
    bool stopping = prober->stopping;
    pthread_mutex_unlock(&prober->lock);
    return !stopping;
}

static void *run(void *context)
{
    struct tl_prober *prober = context;
    int running;
    while (goes_on(prober)) {
        int wait_ms = begin_due(prober);
        (void)curl_multi_perform(prober->multi, &running); /* each transfer has its own result */
        end_finished(prober);
        (void)curl_multi_poll(prober->multi, NULL, 0, wait_ms, NULL);
    }
    return NULL;
}

/* ---- the admitter's side ---- */

bool tl_prober_take(struct tl_prober *prober, const char *queue, int64_t now_ms,
                    struct tl_probed *probed)
{
    bool taken = false, was_idle = false;
    for (size_t i = 0; prober != NULL && i < prober->n; i++) {
        struct probe *probe = &prober->probes[i];
        if (strcmp(probe->queue, queue) != 0)
            continue;
        pthread_mutex_lock(&prober->lock);
        was_idle = now_ms >= probe->wanted_ms;
        probe->wanted_ms = now_ms + WANTED_MS;
        taken = probe->fresh && !was_idle; /* what was found before it was wanted again is old */
        if (taken)
            *probed = probe->result;
        probe->fresh = false;
        pthread_mutex_unlock(&prober->lock);
    }
    if (was_idle)
        (void)curl_multi_wakeup(prober->multi); /* fails only when memory ran out */
    return taken;
}

static bool start(struct tl_prober *prober, struct tl_error *err)
{
    if (prober->multi == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory to probe sites");
    int problem = pthread_create(&prober->thread, NULL, run, prober);
    prober->started = problem == 0;
    return prober->started ||
           tl_error_set(err, TL_ERR_SYSTEM, "cannot start the thread that probes sites: %s",
                        strerror(problem));
}

struct tl_prober *tl_prober_new(const struct tl_config *config, struct tl_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < config->n_queues; i++)
        n += config->queues[i].probe.url[0] != '\0';
    if (n == 0)
        return NULL;
    struct tl_prober *prober = calloc(1, sizeof(*prober));
    struct probe *probes = calloc(n, sizeof(*probes));
    if (prober == NULL || probes == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory to probe sites");
        free(prober);
        free(probes);
        return NULL;
    }
    prober->probes = probes;
    for (size_t i = 0; i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        if (queue->probe.url[0] != '\0')
            probes[prober->n++] = (struct probe){.queue = queue->name,
                                                 .config = &queue->probe,
                                                 .full = strtod(queue->probe.full, NULL)};
    }
    pthread_mutex_init(&prober->lock, NULL);
    prober->multi = curl_multi_init();
    if (!start(prober, err))
        tl_prober_free(&prober);
    return prober;
}

void tl_prober_free(struct tl_prober **prober)
{
    struct tl_prober *old = *prober;
    *prober = NULL;
    if (old == NULL)
        return;
    if (old->started) {
        pthread_mutex_lock(&old->lock);
        old->stopping = true;
        pthread_mutex_unlock(&old->lock);
        (void)curl_multi_wakeup(old->multi);
        pthread_join(old->thread, NULL);
    }
    for (size_t i = 0; i < old->n; i++) {
        if (old->probes[i].asking)
            (void)curl_multi_remove_handle(old->multi, old->probes[i].easy);
        curl_easy_cleanup(old->probes[i].easy);
        free(old->probes[i].answer);
    }
    if (old->multi != NULL)
        (void)curl_multi_cleanup(old->multi);
    curl_global_cleanup();
    pthread_mutex_destroy(&old->lock);
    free(old->probes);
    free(old);
}
