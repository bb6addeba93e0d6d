/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/base/clock.h"

#include "lab/http.h"

enum {
    ANSWER_MAX = 64 * 1024,
    CONNECT_TIMEOUT_MS = 10000,
    SHORT_TIMEOUT_MS = 60000,
    EVENTS_PER_TURN = 256,
    STREAM_BUFFER = 4096,
    HEADER_MAX = 512,
};

struct tl_http_request {
    struct tl_http *http;
    CURL *easy;
    struct curl_slist *headers;
    bool post, stream, begun;
    char *url, *body; /* owned; body NULL: none */
    void *context;
    bool (*bytes)(void *context, const char *bytes, size_t length);
    void (*done)(void *context, unsigned status, const char *body, size_t length);
    char *answer;
    size_t length;
    char problem[CURL_ERROR_SIZE];
    struct tl_http_request *before, *next; /* in the list of those that wait or are under way */
};

struct tl_http {
    char *base;
    CURLM *multi;
    int epoll_fd;
    int64_t timer_ms;              /* when libcurl wants to be called; -1: not */
    struct tl_http_request *first; /* short ones that wait */
    struct tl_http_request *last;
    struct tl_http_request *active; /* under way */
    size_t n_short;
    bool failed; /* epoll refused a socket */
};

/* ---- callbacks of libcurl ---- */

static int watch(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct tl_http *http = context;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        /* libcurl may have closed it already. */
        (void)epoll_ctl(http->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    struct epoll_event event = {.data = {.fd = fd}};
    event.events |= what == CURL_POLL_IN || what == CURL_POLL_INOUT ? (uint32_t)EPOLLIN : 0;
    event.events |= what == CURL_POLL_OUT || what == CURL_POLL_INOUT ? (uint32_t)EPOLLOUT : 0;
    int status =
        epoll_ctl(http->epoll_fd, known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    if (status != 0)
        http->failed = true;
    else
        curl_multi_assign(http->multi, fd, http);
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct tl_http *http = context;
    (void)multi;
    http->timer_ms = timeout_ms < 0 ? -1 : tl_clock_ms() + timeout_ms;
    return 0;
}

static size_t take_answer(char *bytes, size_t size, size_t n, void *context)
{
    struct tl_http_request *request = context;
    size_t length = size * n;
    long status = 0;
    if (request->stream &&
        curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
        status == 200)
        return request->bytes(request->context, bytes, length) ? length : 0;
    if (length > ANSWER_MAX - request->length)
        return 0; /* ends the transfer */
    char *answer = realloc(request->answer, request->length + length + 1);
    if (answer == NULL)
        return 0;
    memcpy(answer + request->length, bytes, length);
    request->answer = answer;
    request->length += length;
    return length;
}

/* ---- requests ---- */

static void unlink_request(struct tl_http_request **first, struct tl_http_request *request)
{
    if (request->before != NULL)
        request->before->next = request->next;
    else
        *first = request->next;
    if (request->next != NULL)
        request->next->before = request->before;
    request->before = request->next = NULL;
}

static void push(struct tl_http_request **first, struct tl_http_request *request)
{
    request->before = NULL;
    request->next = *first;
    if (*first != NULL)
        (*first)->before = request;
    *first = request;
}

static void release(struct tl_http *http, struct tl_http_request *request)
{
    if (request->begun) {
        curl_multi_remove_handle(http->multi, request->easy);
        unlink_request(&http->active, request);
        http->n_short -= request->stream ? 0 : 1;
    } else {
        if (http->last == request)
            http->last = request->before;
        unlink_request(&http->first, request);
    }
    curl_easy_cleanup(request->easy);
    curl_slist_free_all(request->headers);
    free(request->url);
    free(request->body);
    free(request->answer);
    free(request);
}

static void release_all(struct tl_http *http, struct tl_http_request *first)
{
    for (struct tl_http_request *request = first; request != NULL; request = first) {
        first = request->next;
        release(http, request);
    }
}

static bool add_header(struct tl_http_request *request, const char *name, const char *value)
{
    char line[HEADER_MAX];
    int length = snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *list = length > 0 && (size_t)length < sizeof(line)
                                  ? curl_slist_append(request->headers, line)
                                  : NULL;
    if (list != NULL)
        request->headers = list;
    return list != NULL;
}

/* Errors mean that memory ran out, or an option that this libcurl does not have. */
static bool prepare(struct tl_http_request *request)
{
    CURL *easy = request->easy;
    return curl_easy_setopt(easy, CURLOPT_URL, request->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           /* Only the server that was named is asked: no proxy of the environment. */
           curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, "tellerline/" TELLERLINE_VERSION) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->problem) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, request) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, request) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, request->stream ? 0L : SHORT_TIMEOUT_MS) ==
               CURLE_OK &&
           (!request->stream ||
            (curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)STREAM_BUFFER) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L) == CURLE_OK)) &&
           (!request->post ||
            (curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
                              request->body != NULL ? request->body : "") == CURLE_OK));
}

static struct tl_http_request *make(struct tl_http *http, const struct tl_http_call *call)
{
    struct tl_http_request *request = calloc(1, sizeof(*request));
    if (request == NULL)
        return NULL;
    request->http = http;
    request->post = call->post;
    request->stream = call->stream;
    request->context = call->context;
    request->bytes = call->bytes;
    request->done = call->done;
    char bearer[HEADER_MAX - 32];
    int length =
        snprintf(bearer, sizeof(bearer), "Bearer %s", call->bearer != NULL ? call->bearer : "");
    bool ok = (size_t)length < sizeof(bearer) &&
              asprintf(&request->url, "%s%s", http->base, call->path) > 0;
    if (!ok)
        request->url = NULL;
    if (call->body != NULL)
        request->body = strdup(call->body);
    request->easy = curl_easy_init();
    ok = ok && request->easy != NULL && (call->body == NULL || request->body != NULL) &&
         (call->bearer == NULL || add_header(request, "Authorization", bearer)) &&
         (call->body == NULL || add_header(request, "Content-Type", "application/json")) &&
         prepare(request);
    explicit_bzero(bearer, sizeof(bearer));
    push(&http->first, request);
    if (http->last == NULL)
        http->last = request;
    if (ok)
        return request;
    release(http, request);
    return NULL;
}

static bool begin(struct tl_http *http, struct tl_http_request *request)
{
    if (curl_multi_add_handle(http->multi, request->easy) != CURLM_OK)
        return false;
    if (http->last == request)
        http->last = request->before;
    unlink_request(&http->first, request);
    push(&http->active, request);
    request->begun = true;
    http->n_short += request->stream ? 0 : 1;
    return true;
}

/* New ones are put in front, so the last one has waited longest. */
static void begin_waiting(struct tl_http *http)
{
    while (http->last != NULL && http->n_short < TL_HTTP_SHORT_MOST) {
        if (!begin(http, http->last))
            return;
    }
}

struct tl_http_request *tl_http_start(struct tl_http *http, const struct tl_http_call *call)
{
    struct tl_http_request *request = make(http, call);
    if (request == NULL)
        return NULL;
    if (!request->stream) {
        begin_waiting(http);
    } else if (!begin(http, request)) {
        release(http, request);
        return NULL;
    }
    return request;
}

void tl_http_cancel(struct tl_http *http, struct tl_http_request **request)
{
    if (*request != NULL)
        release(http, *request);
    *request = NULL;
}

/* Takes what `done` needs, so that the request can be released before. */
static void finish(struct tl_http *http, struct tl_http_request *request, CURLcode result)
{
    long status = 0;
    char problem[CURL_ERROR_SIZE];
    char *answer = request->answer;
    size_t length = request->length;
    void *context = request->context;
    void (*done)(void *context, unsigned status, const char *body, size_t length) = request->done;
    request->answer = NULL;
    (void)curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    /* A stream that ends in its middle had its answer. */
    bool answered = status != 0 && (result == CURLE_OK || request->stream);
    snprintf(problem, sizeof(problem), "%s",
             request->problem[0] != '\0' ? request->problem : curl_easy_strerror(result));
    release(http, request);
    if (answered)
        done(context, (unsigned)status, answer != NULL ? answer : "", length);
    else
        done(context, 0, problem, strlen(problem));
    free(answer);
}

static void finish_all(struct tl_http *http)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        char *request = NULL;
        if (message->msg == CURLMSG_DONE &&
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request) == CURLE_OK)
            finish(http, (struct tl_http_request *)(void *)request, message->data.result);
    }
}

/* ---- the loop ---- */

/* Frees what has no request any more. */
static void dispose(struct tl_http *http)
{
    if (http->multi != NULL)
        curl_multi_cleanup(http->multi);
    curl_global_cleanup();
    if (http->epoll_fd >= 0)
        close(http->epoll_fd);
    free(http->base);
    free(http);
}

struct tl_http *tl_http_new(const char *base, int wakes_fd, struct tl_error *err)
{
    struct tl_http *http = calloc(1, sizeof(*http));
    if (http == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for requests");
        return NULL;
    }
    http->timer_ms = -1;
    http->base = strdup(base);
    http->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    http->multi = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = wakes_fd}};
    bool ok = http->base != NULL && http->epoll_fd >= 0 && http->multi != NULL &&
              curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, watch) == CURLM_OK &&
              curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http) == CURLM_OK &&
              curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, set_timer) == CURLM_OK &&
              curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http) == CURLM_OK &&
              curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)TL_HTTP_SHORT_MOST) ==
                  CURLM_OK &&
              (wakes_fd < 0 || epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, wakes_fd, &event) == 0);
    if (ok)
        return http;
    tl_error_set(err, TL_ERR_SYSTEM, "cannot set up requests: %s", strerror(errno));
    dispose(http);
    return NULL;
}

void tl_http_free(struct tl_http **http)
{
    if (*http == NULL)
        return;
    release_all(*http, (*http)->first);
    /* The two lists share no request. */
    release_all(*http, (*http)->active); /* NOLINT(clang-analyzer-unix.Malloc) */
    dispose(*http);
    *http = NULL;
}

static int wait_for(const struct tl_http *http, int64_t timeout_ms)
{
    int64_t wait_ms = timeout_ms;
    if (http->timer_ms >= 0) {
        int64_t left_ms = http->timer_ms - tl_clock_ms();
        wait_ms = left_ms < wait_ms ? left_ms : wait_ms;
    }
    return wait_ms <= 0 ? 0 : wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
}

bool tl_http_turn(struct tl_http *http, int64_t timeout_ms, struct tl_error *err)
{
    struct epoll_event events[EVENTS_PER_TURN];
    int running;
    begin_waiting(http);
    int n = epoll_wait(http->epoll_fd, events, EVENTS_PER_TURN, wait_for(http, timeout_ms));
    if (n < 0 && errno != EINTR)
        return tl_error_set(err, TL_ERR_SYSTEM, "epoll_wait: %s", strerror(errno));
    if (http->timer_ms >= 0 && tl_clock_ms() >= http->timer_ms) {
        http->timer_ms = -1;
        (void)curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    for (int i = 0; i < n; i++) {
        int what = (events[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (events[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);
        /* For a descriptor that is not libcurl's, it does nothing. */
        (void)curl_multi_socket_action(http->multi, events[i].data.fd, what, &running);
    }
    finish_all(http);
    return !http->failed || tl_error_set(err, TL_ERR_SYSTEM, "epoll refused a socket");
}
