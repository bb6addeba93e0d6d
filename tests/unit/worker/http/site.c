/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "tests/unit/worker/http/site.h"

static char large[LARGE];

void site_answer(struct tl_request *request, unsigned status, const char *text)
{
    struct tl_answer result = {
        .status = status, .type = "text/plain", .body = text, .length = strlen(text)};
    tl_answer_header(&result, "X-Test", "yes");
    tl_answer_header(&result, "X-Absent", NULL);
    tl_request_answer(request, &result);
}

static void copy(char *to, size_t size, const char *text)
{
    (void)tl_text_copy(to, size, text != NULL ? text : "(none)");
}

static void refuse(struct site *site, struct tl_request *request, const struct tl_refusal *refusal)
{
    copy(site->problem, sizeof(site->problem), refusal->detail);
    if (refusal->kind == TL_REFUSAL_TOO_LARGE) {
        site->too_large++;
        site_answer(request, 413, "too large\n");
        return;
    }
    assert_int_equal(refusal->kind, TL_REFUSAL_BAD_REQUEST);
    site_answer(request, 400, "malformed\n");
}

static void handle(void *context, struct tl_request *request, const struct tl_refusal *refusal)
{
    struct site *site = context;
    struct tl_address address;
    size_t length;
    if (refusal != NULL) {
        refuse(site, request, refusal);
        return;
    }
    site->handled++;
    assert_ptr_equal(tl_request_context(request), site);
    assert_memory_equal(tl_request_visit(request), (unsigned char[VISIT_SIZE]){0}, VISIT_SIZE);
    memset(tl_request_visit(request), 0xff, VISIT_SIZE);
    copy(site->method, sizeof(site->method), tl_request_method(request));
    copy(site->path, sizeof(site->path), tl_request_path(request));
    copy(site->body, sizeof(site->body), tl_request_body(request, &length));
    assert_int_equal(length, strlen(site->body));
    copy(site->header, sizeof(site->header), tl_request_header(request, "x-wanted"));
    copy(site->query, sizeof(site->query), tl_request_query(request, "a"));
    copy(site->cookie, sizeof(site->cookie), tl_request_cookie(request, "c"));
    copy(site->id, sizeof(site->id), tl_request_id(request));
    assert_true(tl_request_peer(request, &address));
    if (site->take_over) {
        site->taken = tl_request_take_over(request);
    } else if (site->hold) {
        tl_request_hold(request);
        tl_request_hold(request); /* stays held */
        site->held = request;
    } else if (site->large) {
        tl_request_answer(request,
                          &(struct tl_answer){.status = 200, .body = large, .length = LARGE});
    } else {
        site_answer(request, 200, "hello\n");
    }
}

int site_setup(void **state)
{
    struct site *site = calloc(1, sizeof(*site));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    struct tl_error err = {0};
    assert_non_null(site);
    site->taken = -1;
    assert_int_equal(uv_loop_init(&site->loop), 0);
    site->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(site->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(site->listener, 16), 0);
    assert_int_equal(getsockname(site->listener, (struct sockaddr *)&address, &length), 0);
    site->port = ntohs(address.sin_port);
    site->proxies = tl_networks_parse("127.0.0.9", &err);
    site->metrics = tl_metrics_new(tl_worker_metrics, TL_WORKER_METRICS);
    assert_non_null(site->metrics);
    site->server = tl_server_new(&site->loop,
                                 &(struct tl_server_settings){.listen_fd = site->listener,
                                                              .max_connections = LIMIT,
                                                              .connections_per_address = EACH,
                                                              .proxies = site->proxies,
                                                              .idle_timeout_ms = IDLE_MS,
                                                              .max_body = MAX_BODY,
                                                              .visit_size = VISIT_SIZE,
                                                              .metrics = site->metrics,
                                                              .context = site,
                                                              .handle = handle},
                                 &err);
    assert_non_null(site->server);
    *state = site;
    return 0;
}

int site_teardown(void **state)
{
    struct site *site = *state;
    tl_server_free(&site->server);
    assert_null(site->server);
    uv_run(&site->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&site->loop), 0);
    assert_int_equal(close(site->listener), 0); /* stays the caller's */
    if (site->taken >= 0)
        close(site->taken);
    tl_networks_free(&site->proxies);
    free(site->metrics);
    free(site);
    return 0;
}

int site_client_that_keeps(const struct site *site, in_addr_t host, int keeps)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(site->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(host)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (keeps > 0)
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &keeps, sizeof(keeps)), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

int site_client_from(const struct site *site, in_addr_t host)
{
    return site_client_that_keeps(site, host, 0);
}

int site_client(const struct site *site)
{
    return site_client_from(site, INADDR_LOOPBACK);
}

void site_say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

void site_turn(struct site *site)
{
    uv_run(&site->loop, UV_RUN_NOWAIT);
    site->accepted = (unsigned)tl_server_counts(site->server).accepted;
    site->crowded_out = (unsigned)tl_metrics_get(site->metrics, TL_WORKER_CROWDED_OUT);
    site->refused_full = (unsigned)tl_metrics_get(site->metrics, TL_WORKER_REFUSED_FULL);
    site->refused_address = (unsigned)tl_metrics_get(site->metrics, TL_WORKER_REFUSED_ADDRESS);
    site->answered = (unsigned)tl_metrics_get(site->metrics, TL_WORKER_ANSWERS_OK);
    usleep(200);
}

void site_settle(struct site *site)
{
    for (int i = 0; i < 10; i++)
        site_turn(site);
}

bool site_hears(struct site *site, int fd, const char *expected, char *text, size_t size)
{
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    size_t length = 0;
    text[0] = '\0';
    while (tl_clock_ms() < until_ms) {
        site_turn(site);
        ssize_t n = recv(fd, text + length, size - 1 - length, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return false;
        length += n > 0 ? (size_t)n : 0;
        text[length] = '\0';
        if (expected != NULL && strstr(text, expected) != NULL)
            return true;
    }
    fail_msg("waited in vain for %s, have %s", expected != NULL ? expected : "the end", text);
    return false;
}

void site_until(struct site *site, const unsigned *counter, unsigned value)
{
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    while (*counter != value && tl_clock_ms() < until_ms)
        site_turn(site);
    assert_int_equal(*counter, value);
}
