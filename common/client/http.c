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
#include "common/base/grow.h"
#include "common/client/http.h"

enum {
    ANSWER_MAX = 64 * 1024, /* unless the call says more */
    ETAG_MAX = 64,
    CONNECT_TIMEOUT_MS = 10000,
    SHORT_TIMEOUT_MS = 60000,
    EVENTS_PER_TURN = 256,
    STREAM_BUFFER = 4096,
};

struct tl_http_request {
    CURL *easy;
    struct curl_slist *headers;
    struct tl_http_call call; /* its texts are not kept, but method */
    bool begun;
    char *url, *body; /* owned; body NULL: none */
    char *answer;
    size_t length, capacity;
    char etag[ETAG_MAX];
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
    const char *problem; /* what no single request can tell; NULL: none */
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
        http->problem = "epoll refused a socket";
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
    if (request->call.bytes != NULL &&
        curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
        status == 200)
        return request->call.bytes(request->call.context, bytes, length) ? length : 0;
    if (length > request->call.answer_max - request->length) {
        snprintf(request->problem, sizeof(request->problem), "the answer is too large");
        return 0; /* ends the transfer */
    }
    char *longer = tl_grow(request->answer, &request->capacity, request->length + length + 1, 1);
    if (longer == NULL) {
        snprintf(request->problem, sizeof(request->problem), "no memory for the answer");
        return 0;
    }
    request->answer = longer;
    memcpy(request->answer + request->length, bytes, length);
    request->length += length;
    request->answer[request->length] = '\0';
    return length;
}

static size_t take_header(char *line, size_t size, size_t n, void *context)
{
    static const char name[] = "etag:";
    struct tl_http_request *request = context;
    const size_t length = size * n;
    if (length > strlen(name) && strncasecmp(line, name, strlen(name)) == 0) {
        size_t from = strlen(name), to = length;
        while (from < to && line[from] == ' ')
            from++;
        while (to > from && (line[to - 1] == '\r' || line[to - 1] == '\n'))
            to--;
        if (to - from < sizeof(request->etag))
            snprintf(request->etag, sizeof(request->etag), "%.*s", (int)(to - from), line + from);
    }
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

static void free_request(struct tl_http_request *request)
{
    curl_easy_cleanup(request->easy);
    curl_slist_free_all(request->headers);
    free(request->url);
    free(request->body);
    free(request->answer);
    free(request);
}

static void unlink_waiting(struct tl_http *http, struct tl_http_request *request)
{
    if (http->last == request)
        http->last = request->before;
    unlink_request(&http->first, request);
}

static void release(struct tl_http *http, struct tl_http_request *request)
{
    if (request->begun) {
        curl_multi_remove_handle(http->multi, request->easy);
        unlink_request(&http->active, request);
        http->n_short -= request->call.bytes != NULL ? 0 : 1;
    } else {
        unlink_waiting(http, request);
    }
    free_request(request);
}

static void release_all(struct tl_http *http, struct tl_http_request *first)
{
    for (struct tl_http_request *request = first; request != NULL; request = first) {
        first = request->next;
        release(http, request);
    }
}

/* A line of the head, from two texts: "If-Match: " and the value. False: no memory. */
static bool add_header(struct tl_http_request *request, const char *name, const char *value)
{
    char *line;
    int length = asprintf(&line, "%s%s", name, value);
    if (length < 0)
        return false;
    struct curl_slist *list = curl_slist_append(request->headers, line);
    request->headers = list != NULL ? list : request->headers;
    explicit_bzero(line, (size_t)length);
    free(line);
    return list != NULL;
}

/* A body is sent with any method. False means that memory ran out, or an option that this libcurl
 * does not have. */
static bool prepare(struct tl_http_request *request)
{
    const struct tl_http_call *call = &request->call;
    if ((call->bearer != NULL && !add_header(request, "Authorization: Bearer ", call->bearer)) ||
        (call->if_match != NULL && !add_header(request, "If-Match: ", call->if_match)) ||
        (call->body != NULL && (!add_header(request, "Content-Type: ", "application/json") ||
                                (request->body = strdup(call->body)) == NULL)))
        return false;
    CURL *easy = request->easy = curl_easy_init();
    const bool streams = call->bytes != NULL, posts = strcmp(call->method, "POST") == 0;
    const char *body = request->body != NULL ? request->body : posts ? "" : NULL;
#define SET(option, value) (curl_easy_setopt(easy, CURLOPT_##option, value) == CURLE_OK)
    return easy != NULL && SET(URL, request->url) && SET(PROTOCOLS_STR, "http,https") &&
           SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) && SET(FOLLOWLOCATION, 0L) &&
           (call->proxy || SET(PROXY, "")) && SET(NOSIGNAL, 1L) &&
           SET(USERAGENT, "tellerline/" TELLERLINE_VERSION) && SET(HTTPHEADER, request->headers) &&
           SET(ERRORBUFFER, request->problem) && SET(WRITEFUNCTION, take_answer) &&
           SET(WRITEDATA, request) && SET(HEADERFUNCTION, take_header) &&
           SET(HEADERDATA, request) && SET(PRIVATE, request) &&
           SET(CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS) &&
           SET(TIMEOUT_MS, streams ? 0L : SHORT_TIMEOUT_MS) &&
           SET(LOW_SPEED_LIMIT, call->stalled_s > 0 ? 1L : 0L) &&
           SET(LOW_SPEED_TIME, call->stalled_s) && (!streams || SET(FORBID_REUSE, 1L)) &&
           /* A stream that may be silent is one of thousands. */
           (!streams || call->stalled_s > 0 || SET(BUFFERSIZE, (long)STREAM_BUFFER)) &&
           (body == NULL || SET(POSTFIELDS, body)) && SET(CUSTOMREQUEST, call->method);
#undef SET
}

static void begin(struct tl_http *http, struct tl_http_request *request)
{
    if (curl_multi_add_handle(http->multi, request->easy) != CURLM_OK)
        http->problem = "no memory for a request";
    unlink_waiting(http, request);
    push(&http->active, request);
    request->begun = true;
    http->n_short += request->call.bytes != NULL ? 0 : 1;
}

/* New ones are put in front, so the last one has waited longest. */
static void begin_waiting(struct tl_http *http)
{
    while (http->last != NULL && http->n_short < TL_HTTP_SHORT_MOST)
        begin(http, http->last);
}

struct tl_http_request *tl_http_start(struct tl_http *http, const struct tl_http_call *call)
{
    struct tl_http_request *request = calloc(1, sizeof(*request));
    if (request == NULL)
        return NULL;
    request->call = *call;
    if (call->method == NULL)
        request->call.method = "GET";
    if (call->answer_max == 0)
        request->call.answer_max = ANSWER_MAX;
    if (asprintf(&request->url, "%s%s", http->base, call->path) < 0)
        request->url = NULL;
    if (request->url == NULL || !prepare(request)) {
        free_request(request);
        return NULL;
    }
    push(&http->first, request);
    if (http->last == NULL)
        http->last = request;
    if (call->bytes != NULL)
        begin(http, request);
    else
        begin_waiting(http);
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
    char problem[CURL_ERROR_SIZE], etag[ETAG_MAX];
    char *body = request->answer;
    const struct tl_http_call call = request->call;
    const char *why = request->problem[0] != '\0' ? request->problem : curl_easy_strerror(result);
    (void)curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    snprintf(problem, sizeof(problem), "%s", result != CURLE_OK ? why : "");
    snprintf(etag, sizeof(etag), "%s", request->etag);
    /* A stream that ends in its middle had its answer. */
    bool answered = result == CURLE_OK || call.bytes != NULL;
    const struct tl_http_answer answer = {.status = answered ? (unsigned)status : 0,
                                          .body = body != NULL ? body : "",
                                          .length = request->length,
                                          .etag = etag,
                                          .problem = problem};
    request->answer = NULL;
    release(http, request);
    call.done(call.context, &answer);
    free(body);
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

/* Frees what no request uses. */
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
        tl_error_set(err, TL_ERR_NOMEM, "no memory for HTTP requests");
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
    return http->problem == NULL || tl_error_set(err, TL_ERR_SYSTEM, "%s", http->problem);
}

bool tl_http_ask(struct tl_http *http, const struct tl_http_call *call, struct tl_error *err)
{
    if (tl_http_start(http, call) == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a request");
    while (http->active != NULL || http->first != NULL) {
        if (!tl_http_turn(http, INT_MAX, err))
            return false;
    }
    return true;
}
