/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/base/clock.h"
#include "common/client/fetcher.h"
#include "common/config/checks.h"

enum {
    LOOK_MS = 100,   /* how often the thread looks whether the next one has waited too long */
    IDLE_MS = 10000, /* the same when none waits */
};

struct tl_fetch {
    struct tl_fetcher *fetcher;
    struct tl_fetch *next, **at; /* in the list; under the lock, like these: */
    bool under_way, left;
    _Atomic bool ended;
    int64_t until_ms, begun_us; /* local monotonic */
    CURL *easy;
    struct curl_slist *headers;
    struct tl_fetched result;
    char problem[CURL_ERROR_SIZE];
    char *answer;
    size_t answer_max, body_length;
    bool too_long;
    char bytes[]; /* the body, the answer, and a zero */
};

struct tl_fetcher {
    pthread_mutex_t lock;
    pthread_t thread;
    int ended;    /* an eventfd */
    CURLM *multi; /* of the thread; others only wake it */
    size_t at_once;
    /* Under the lock: */
    size_t under_way;
    struct tl_fetch *first,
        **last; /* those that have not ended; behind the others those that wait */
    bool stopping;
};

/* ---- one fetch ---- */

static size_t take_answer(char *bytes, size_t size, size_t n, void *context)
{
    struct tl_fetch *fetch = context;
    size_t more = size * n;
    fetch->too_long = fetch->too_long || more > fetch->answer_max - fetch->result.length;
    if (fetch->too_long)
        return 0; /* ends the transfer */
    memcpy(fetch->answer + fetch->result.length, bytes, more);
    fetch->result.length += more;
    return more;
}

/* Errors mean that memory ran out, or an option that this libcurl does not have. */
static bool prepare(struct tl_fetch *fetch, const struct tl_fetch_request *request)
{
#define SET(option, value) (curl_easy_setopt(easy, CURLOPT_##option, value) == CURLE_OK)
    CURL *easy = fetch->easy = curl_easy_init();
    const char *body = fetch->bytes;
    bool ok = easy != NULL;
    for (const char *const *line = request->headers; ok && line != NULL && *line != NULL; line++) {
        struct curl_slist *longer = curl_slist_append(fetch->headers, *line);
        ok = longer != NULL;
        fetch->headers = ok ? longer : fetch->headers;
    }
    ok = ok && SET(URL, request->url) && SET(PROTOCOLS_STR, "http,https") &&
         SET(FOLLOWLOCATION, 0L) && SET(FAILONERROR, request->fails_on_error ? 1L : 0L) &&
         SET(NOSIGNAL, 1L) && SET(USERAGENT, "tellerline/" TELLERLINE_VERSION) &&
         SET(HTTPHEADER, fetch->headers) && SET(ERRORBUFFER, fetch->problem) &&
         SET(WRITEFUNCTION, take_answer) && SET(WRITEDATA, fetch) && SET(PRIVATE, fetch) &&
         SET(QUICK_EXIT, 1L); /* do not wait for the thread that resolves a host name */
    if (ok && request->body != NULL)
        ok = SET(POSTFIELDS, body) && SET(POSTFIELDSIZE, (long)request->length);
    return ok && (!tl_url_is_local(request->url) || SET(PROXY, ""));
#undef SET
}

static void free_fetch(struct tl_fetch *fetch)
{
    curl_easy_cleanup(fetch->easy);
    curl_slist_free_all(fetch->headers);
    explicit_bzero(fetch->bytes, fetch->body_length);
    free(fetch);
}

/* Takes it off the list. */
static void take_off(struct tl_fetch *fetch)
{
    struct tl_fetcher *fetcher = fetch->fetcher;
    *fetch->at = fetch->next;
    if (fetch->next != NULL)
        fetch->next->at = fetch->at;
    else
        fetcher->last = fetch->at;
    if (fetch->under_way)
        (void)curl_multi_remove_handle(fetcher->multi, fetch->easy); /* fails for other handles */
    fetcher->under_way -= fetch->under_way;
}

/* ---- the thread, which holds the lock but while it performs and sleeps ---- */

/* Frees one that was left. problem: said unless libcurl has said more. */
static void end(struct tl_fetch *fetch, enum tl_fetch_end how, const char *problem)
{
    take_off(fetch);
    if (fetch->left) {
        free_fetch(fetch);
        return;
    }
    if (fetch->problem[0] == '\0')
        snprintf(fetch->problem, sizeof(fetch->problem), "%s", problem);
    fetch->answer[fetch->result.length] = '\0';
    fetch->result.text = fetch->answer;
    fetch->result.problem = fetch->problem;
    fetch->result.end = how;
    atomic_store(&fetch->ended, true);
    (void)eventfd_write(fetch->fetcher->ended, 1); /* cannot fail */
}

static void begin(struct tl_fetch *fetch, int64_t now_ms)
{
    struct tl_fetcher *fetcher = fetch->fetcher;
    fetch->begun_us = tl_clock_us();
    fetch->under_way = curl_easy_setopt(fetch->easy, CURLOPT_TIMEOUT_MS,
                                        (long)(fetch->until_ms - now_ms)) == CURLE_OK &&
                       curl_multi_add_handle(fetcher->multi, fetch->easy) == CURLM_OK;
    fetcher->under_way += fetch->under_way;
    if (!fetch->under_way)
        end(fetch, TL_FETCH_FAILED, "no memory to ask it");
}

/* Ends those that were left, and begins others as far as they may. Returns how long the thread may
 * sleep. */
static int take_up(struct tl_fetcher *fetcher)
{
    int64_t now_ms = tl_clock_ms();
    struct tl_fetch *next;
    for (struct tl_fetch *fetch = fetcher->first; fetch != NULL; fetch = next) {
        next = fetch->next;
        if (fetch->left)
            end(fetch, TL_FETCH_FAILED, "");
        else if (!fetch->under_way && fetch->until_ms <= now_ms)
            end(fetch, TL_FETCH_UNSENT, "too many were before it");
        else if (!fetch->under_way && fetcher->under_way == fetcher->at_once)
            return LOOK_MS;
        else if (!fetch->under_way)
            begin(fetch, now_ms);
    }
    return IDLE_MS;
}

static bool end_finished(struct tl_fetcher *fetcher)
{
    int left;
    bool any = false;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(fetcher->multi, &left)) != NULL) {
        char *owner = NULL;
        CURLcode code = message->data.result; /* the message is gone with its handle */
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner) != CURLE_OK)
            continue;
        struct tl_fetch *fetch = (struct tl_fetch *)(void *)owner;
        fetch->result.took_us = tl_clock_us() - fetch->begun_us;
        (void)curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &fetch->result.status);
        enum tl_fetch_end how = fetch->too_long                    ? TL_FETCH_CUT_OFF
                                : code == CURLE_OK                 ? TL_FETCH_ANSWERED
                                : code == CURLE_OPERATION_TIMEDOUT ? TL_FETCH_LATE
                                                                   : TL_FETCH_FAILED;
        end(fetch, how, code != CURLE_OK ? curl_easy_strerror(code) : "");
        any = true;
    }
    return any;
}

static void *run(void *context)
{
    struct tl_fetcher *fetcher = context;
    int running;
    pthread_mutex_lock(&fetcher->lock);
    for (;;) {
        int wait_ms = take_up(fetcher);
        if (fetcher->stopping)
            break;
        pthread_mutex_unlock(&fetcher->lock);
        (void)curl_multi_perform(fetcher->multi, &running); /* each has its own result */
        pthread_mutex_lock(&fetcher->lock);
        if (end_finished(fetcher))
            continue; /* others may begin */
        pthread_mutex_unlock(&fetcher->lock);
        (void)curl_multi_poll(fetcher->multi, NULL, 0, wait_ms, NULL);
        pthread_mutex_lock(&fetcher->lock);
    }
    pthread_mutex_unlock(&fetcher->lock);
    return NULL;
}

/* ---- the callers' side ---- */

struct tl_fetch *tl_fetch_begin(struct tl_fetcher *fetcher, const struct tl_fetch_request *request)
{
    size_t body_length = request->body != NULL ? request->length : 0;
    struct tl_fetch *fetch = malloc(sizeof(*fetch) + body_length + request->answer_max + 1);
    if (fetch == NULL)
        return NULL;
    *fetch = (struct tl_fetch){.fetcher = fetcher,
                               .until_ms = tl_clock_ms() + request->timeout_ms,
                               .answer = fetch->bytes + body_length,
                               .answer_max = request->answer_max,
                               .body_length = body_length};
    if (body_length > 0)
        memcpy(fetch->bytes, request->body, body_length);
    if (!prepare(fetch, request)) {
        free_fetch(fetch);
        return NULL;
    }
    pthread_mutex_lock(&fetcher->lock);
    fetch->at = fetcher->last;
    *fetcher->last = fetch;
    fetcher->last = &fetch->next;
    pthread_mutex_unlock(&fetcher->lock);
    (void)curl_multi_wakeup(fetcher->multi); /* fails only when memory ran out */
    return fetch;
}

const struct tl_fetched *tl_fetch_result(const struct tl_fetch *fetch)
{
    return fetch != NULL && atomic_load(&fetch->ended) ? &fetch->result : NULL;
}

void tl_fetch_end(struct tl_fetch **fetch)
{
    struct tl_fetch *old = *fetch;
    *fetch = NULL;
    if (old == NULL)
        return;
    struct tl_fetcher *fetcher = old->fetcher;
    pthread_mutex_lock(&fetcher->lock);
    old->left = old->under_way && !old->ended; /* then the thread frees it */
    bool left = old->left;
    if (!left && !old->ended)
        take_off(old);
    pthread_mutex_unlock(&fetcher->lock);
    if (left)
        (void)curl_multi_wakeup(fetcher->multi);
    else
        free_fetch(old);
}

int tl_fetcher_fd(const struct tl_fetcher *fetcher)
{
    return fetcher->ended;
}

void tl_fetcher_seen(struct tl_fetcher *fetcher)
{
    eventfd_t n;
    (void)eventfd_read(fetcher->ended, &n); /* there may be none */
}

/* ---- life ---- */

static void free_fetcher(struct tl_fetcher *fetcher)
{
    (void)curl_multi_cleanup(fetcher->multi);
    curl_global_cleanup();
    pthread_mutex_destroy(&fetcher->lock);
    if (fetcher->ended >= 0)
        close(fetcher->ended);
    free(fetcher);
}

struct tl_fetcher *tl_fetcher_new(size_t at_once, struct tl_error *err)
{
    struct tl_fetcher *fetcher = calloc(1, sizeof(*fetcher));
    if (fetcher == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for HTTP requests");
        free(fetcher);
        return NULL;
    }
    fetcher->at_once = at_once;
    fetcher->last = &fetcher->first;
    pthread_mutex_init(&fetcher->lock, NULL);
    fetcher->ended = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int problem = fetcher->ended < 0 ? errno : 0;
    fetcher->multi = curl_multi_init();
    if (curl_multi_setopt(fetcher->multi, CURLMOPT_MAXCONNECTS, (long)at_once) != CURLM_OK)
        problem = ENOMEM; /* also without a handle */
    if (problem == 0)
        problem = pthread_create(&fetcher->thread, NULL, run, fetcher);
    if (problem == 0)
        return fetcher;
    tl_error_set(err, TL_ERR_SYSTEM, "cannot start the thread of HTTP requests: %s",
                 strerror(problem));
    free_fetcher(fetcher);
    return NULL;
}

void tl_fetcher_free(struct tl_fetcher **fetcher)
{
    struct tl_fetcher *old = *fetcher;
    *fetcher = NULL;
    if (old == NULL)
        return;
    pthread_mutex_lock(&old->lock);
    old->stopping = true;
    pthread_mutex_unlock(&old->lock);
    (void)curl_multi_wakeup(old->multi);
    pthread_join(old->thread, NULL);
    free_fetcher(old);
}
