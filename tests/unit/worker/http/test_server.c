/* The HTTP server on a loop of the test's own, with clients on the loopback interface. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "worker/http/server.h"

enum {
    LIMIT = 16,
    EACH = 20,
    PROXY = INADDR_LOOPBACK + 8,
    MAX_BODY = 64,
    IDLE_MS = 60000,
    PATIENCE_MS = 120000
};

struct site {
    uv_loop_t loop;
    struct tl_server *server;
    int listener;
    uint16_t port;
    bool hold, take_over; /* what the handler does */
    struct tl_request *held;
    int taken; /* a socket taken over; -1 */
    unsigned handled, too_large, answered;
    unsigned last_status;
    char problem[80];
    uint64_t streams;
    struct tl_networks *proxies;
    unsigned events[TL_SERVER_HOLDS_ENOUGH + 1]; /* how often each happened */
    char method[16], path[64], body[256], header[64], query[64], cookie[64], id[80], peer[64];
};

static void answer(struct tl_request *request, unsigned status, const char *text)
{
    struct tl_answer result = {
        .status = status, .type = "text/plain", .body = text, .length = strlen(text)};
    tl_answer_header(&result, "X-Test", "yes");
    tl_answer_header(&result, "X-Absent", NULL);
    tl_request_answer(request, &result);
}

static void copy(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text != NULL ? text : "(none)");
}

static void handle(void *context, struct tl_request *request)
{
    struct site *site = context;
    struct tl_address address;
    size_t length;
    site->handled++;
    assert_ptr_equal(tl_request_context(request), site);
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
    } else {
        answer(request, 200, "hello\n");
    }
}

static void too_large(void *context, struct tl_request *request)
{
    struct site *site = context;
    site->too_large++;
    answer(request, 413, "too large\n");
}

static void malformed(void *context, struct tl_request *request, const char *problem)
{
    struct site *site = context;
    copy(site->problem, sizeof(site->problem), problem);
    answer(request, 400, "malformed\n");
}

static void on_answered(void *context, unsigned status)
{
    struct site *site = context;
    site->answered++;
    site->last_status = status;
}

static uint64_t streams(void *context)
{
    return ((struct site *)context)->streams;
}

static void on_happened(void *context, enum tl_server_event event, const struct tl_address *address)
{
    struct site *site = context;
    assert_int_equal(address == NULL, event == TL_SERVER_CROWDED_OUT);
    site->events[event]++;
}

static void on_turn_end(void *context)
{
    (void)context;
}

static int setup(void **state)
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
    site->server = tl_server_new(&site->loop,
                                 &(struct tl_server_settings){.listen_fd = site->listener,
                                                              .max_connections = LIMIT,
                                                              .connections_per_address = EACH,
                                                              .proxies = site->proxies,
                                                              .idle_timeout_ms = IDLE_MS,
                                                              .max_body = MAX_BODY,
                                                              .handler_context = site,
                                                              .handle = handle,
                                                              .too_large = too_large,
                                                              .malformed = malformed,
                                                              .context = site,
                                                              .streams = streams,
                                                              .happened = on_happened,
                                                              .answered = on_answered,
                                                              .turn_end = on_turn_end},
                                 &err);
    assert_non_null(site->server);
    *state = site;
    return 0;
}

static int teardown(void **state)
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
    free(site);
    return 0;
}

static int client_from(const struct site *site, in_addr_t host)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(site->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(host)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static int client(const struct site *site)
{
    return client_from(site, INADDR_LOOPBACK);
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void turn(struct site *site)
{
    uv_run(&site->loop, UV_RUN_NOWAIT);
    usleep(200);
}

/* Lets the server finish what it has begun. */
static void settle(struct site *site)
{
    for (int i = 0; i < 10; i++)
        turn(site);
}

/* Lets the server work until the client has got the text (true), or its connection is closed. */
static bool hears(struct site *site, int fd, const char *expected, char *text, size_t size)
{
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    size_t length = 0;
    text[0] = '\0';
    while (tl_clock_ms() < until_ms) {
        turn(site);
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

/* Lets the server work until this counter has the value. */
static void until(struct site *site, const unsigned *counter, unsigned value)
{
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    while (*counter != value && tl_clock_ms() < until_ms)
        turn(site);
    assert_int_equal(*counter, value);
}

static const char request_text[] = "POST /some/path?a=1%202 HTTP/1.1\r\nHost: x\r\nX-Wanted: w\r\n"
                                   "Cookie: b=1; c=2\r\nX-Request-Id: my.id-1\r\n"
                                   "Content-Length: 5\r\n\r\n12345";

static void assert_read(const struct site *site)
{
    assert_int_equal(site->handled, 1);
    assert_string_equal(site->method, "POST");
    assert_string_equal(site->path, "/some/path");
    assert_string_equal(site->query, "1 2");
    assert_string_equal(site->header, "w");
    assert_string_equal(site->cookie, "2");
    assert_string_equal(site->body, "12345");
    assert_string_equal(site->id, "my.id-1");
}

static void a_request_is_read_and_answered(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = client(site);
    say(fd, request_text);
    assert_true(hears(site, fd, "hello\n", text, sizeof(text)));
    assert_read(site);
    assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
    assert_non_null(strstr(text, "\r\nCache-Control: no-store\r\n"));
    assert_non_null(strstr(text, "\r\nContent-Type: text/plain\r\n"));
    assert_non_null(strstr(text, "\r\nX-Request-Id: my.id-1\r\n"));
    assert_non_null(strstr(text, "\r\nX-Test: yes\r\n"));
    assert_null(strstr(text, "X-Absent"));
    assert_null(strstr(text, "Connection: close"));
    assert_int_equal(site->answered, 1);
    assert_int_equal(site->last_status, 200);
    assert_int_equal(tl_server_connections(site->server), 1); /* kept alive */

    say(fd, "GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: not/valid\r\n\r\n");
    assert_true(hears(site, fd, "hello\n", text, sizeof(text)));
    assert_int_equal(site->handled, 2);
    assert_string_equal(site->body, "");
    assert_string_equal(site->query, "(none)");
    assert_int_equal(strlen(site->id), 16);
    close(fd);
}

static void a_request_may_come_byte_by_byte(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = client(site);
    for (size_t i = 0; i < sizeof(request_text) - 1; i++) {
        assert_int_equal(site->handled, 0);
        assert_int_equal(send(fd, request_text + i, 1, MSG_NOSIGNAL), 1);
        turn(site);
    }
    assert_true(hears(site, fd, "hello\n", text, sizeof(text)));
    assert_read(site);
    close(fd);
}

static void a_body_declared_too_large_is_refused_before_it_comes(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = client(site);
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 65\r\n\r\n");
    assert_true(hears(site, fd, "too large\n", text, sizeof(text)));
    assert_int_equal(strncmp(text, "HTTP/1.1 413 ", 13), 0);
    assert_int_equal(site->too_large, 1);
    assert_int_equal(site->handled, 0);
    close(fd);
}

static void a_body_that_turns_out_too_large_is_refused(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = client(site);
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 4; i++)
        say(fd, "10\r\n0123456789abcdef\r\n");
    say(fd, "1\r\nx\r\n0\r\n\r\n");
    assert_true(hears(site, fd, "too large\n", text, sizeof(text)));
    assert_int_equal(site->too_large, 1);
    assert_int_equal(site->handled, 0);
    close(fd);
    fd = client(site);
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 4; i++)
        say(fd, "10\r\n0123456789abcdef\r\n");
    say(fd, "0\r\n\r\n");
    assert_true(hears(site, fd, "hello\n", text, sizeof(text)));
    assert_int_equal(strlen(site->body), MAX_BODY); /* exactly as much as is allowed */
    close(fd);
}

static void a_request_that_may_end_elsewhere_is_refused(void **state)
{
    static const struct {
        const char *request, *problem;
    } bad[] = {
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n12345",
         "Content-Length"},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\ncontent-length: 5\r\n\r\n12345",
         "Content-Length"},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
         "0\r\n\r\n",
         "Transfer-Encoding"},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n", "chunked"},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n"
         "\r\n0\r\n\r\n",
         "chunked"},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
         "before a colon"},
        {"GET / HTTP/1.1\nHost: x\r\n\r\n", "CR LF"},
        {"GET / HTTP/1.1\r\nHost: x\nX-Wanted: w\r\n\r\n", "CR LF"},
        {"GET / HTTP/1.1\r\nHost: x\r\nX-Wanted: w\n\r\n", "CR LF"},
        {"GET / HTTP/1.1\r\nHost: x\r\n\n", "CR LF"},
        {"GET / HTTP/1.1\r\nHost: x\r\nX-Wanted:\r\n\n", "CR LF"},
        {"GET / HTTP/1.1\r\nHost: x\r\nX-Wanted: a\rb: c\r\n\r\n", "CR LF"},
        {"GET / HTTP/1.1\r\nHost: x\r\nX-Wanted: a\r\n b\r\n\r\n", "CR LF"},
    };
    struct site *site = *state;
    char text[1024];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int fd = client(site);
        site->problem[0] = '\0';
        say(fd, bad[i].request);
        say(fd, "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_true(hears(site, fd, "malformed\n", text, sizeof(text)));
        assert_int_equal(strncmp(text, "HTTP/1.1 400 ", 13), 0);
        assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
        assert_non_null(strstr(site->problem, bad[i].problem));
        assert_false(hears(site, fd, NULL, text, sizeof(text)));
        close(fd);
    }
    assert_int_equal(site->handled, 0);
}

static void an_unusual_request_is_not_malformed(void **state)
{
    static const char *const good[] = {
        "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /?a=1 HTTP/1.1\r\nHost:x\r\nX-Wanted:\t w \r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nX-Wanted:\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nCookie: a=1; c=2\r\nCookie: b=3\r\n\r\n",
    };
    struct site *site = *state;
    char text[1024];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int fd = client(site);
        say(fd, good[i]);
        assert_true(hears(site, fd, "hello\n", text, sizeof(text)));
        close(fd);
    }
}

static void a_held_request_is_answered_in_a_later_turn(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = client(site);
    site->hold = true;
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    until(site, &site->handled, 1);
    settle(site);
    assert_int_equal(recv(fd, text, sizeof(text), MSG_DONTWAIT), -1);
    assert_int_equal(tl_server_requests(site->server), 1);
    answer(site->held, 201, "later\n");
    assert_true(hears(site, fd, "later\n", text, sizeof(text)));
    assert_int_equal(strncmp(text, "HTTP/1.1 201 ", 13), 0);
    settle(site);
    assert_int_equal(tl_server_requests(site->server), 0);
    close(fd);
}

static void a_connection_can_be_taken_over(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = client(site);
    site->take_over = true;
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    until(site, &site->handled, 1);
    assert_true(site->taken >= 0);
    settle(site);
    assert_int_equal(tl_server_connections(site->server), 0); /* the server let go of it */
    assert_int_equal(tl_server_requests(site->server), 0);
    say(site->taken, "raw");
    assert_true(hears(site, fd, "raw", text, sizeof(text)));
    assert_string_equal(text, "raw"); /* nothing of the server's before it */
    assert_int_equal(site->last_status, 200);
    close(fd);
}

static void a_server_that_quiesces_closes_after_its_answers(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = client(site);
    site->hold = true;
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    until(site, &site->handled, 1);
    tl_server_quiesce(site->server);
    tl_server_quiesce(site->server);
    int late = client(site); /* stays in the backlog */
    say(late, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    answer(site->held, 200, "last\n");
    assert_true(hears(site, fd, "last\n", text, sizeof(text)));
    assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
    assert_false(hears(site, fd, NULL, text, sizeof(text)));
    assert_int_equal(site->handled, 1);
    close(late);
    close(fd);
}

static void connections_without_a_whole_request_expire(void **state)
{
    struct site *site = *state;
    char text[1024];
    int slow = client(site);
    int waiting = client(site);
    say(slow, "GET / HTTP/1.1\r\nHos");
    say(waiting, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    site->hold = true;
    until(site, &site->handled, 1);
    tl_server_tick(site->server, tl_clock_ms());
    settle(site);
    assert_int_equal(tl_server_connections(site->server), 2);
    tl_server_tick(site->server, tl_clock_ms() + IDLE_MS + 1000);
    assert_false(hears(site, slow, NULL, text, sizeof(text)));
    assert_int_equal(tl_server_connections(site->server), 1); /* held requests stay */
    answer(site->held, 200, "held\n");
    assert_true(hears(site, waiting, "held\n", text, sizeof(text)));
    settle(site);
    tl_server_tick(site->server, tl_clock_ms() + IDLE_MS + 1000); /* idle from now on */
    assert_false(hears(site, waiting, NULL, text, sizeof(text)));
    close(slow);
    close(waiting);
}

/* Connects this many, which send nothing, from one address or each from its own. */
static int crowd(struct site *site, int *fds, int n, bool same, enum tl_server_event event,
                 unsigned happens)
{
    unsigned before = site->events[event];
    for (int i = 0; i < n; i++) {
        fds[i] = client_from(site, INADDR_LOOPBACK + (in_addr_t)(same ? 0 : 16 + i));
        turn(site);
    }
    until(site, &site->events[event], before + happens);
    settle(site);
    return n;
}

static void connections_without_a_request_make_room(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fds[LIMIT + TL_SERVER_FILES_SPARE];
    int n = crowd(site, fds, LIMIT, false, TL_SERVER_ACCEPTED, LIMIT);
    site->hold = true;
    say(fds[0], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    until(site, &site->handled, 1);
    /* All are new: they are spared until half of what is spare is used, then the oldest goes. */
    n += crowd(site, fds + n, TL_SERVER_FILES_SPARE / 2, false, TL_SERVER_ACCEPTED,
               TL_SERVER_FILES_SPARE / 2);
    assert_int_equal(site->events[TL_SERVER_CROWDED_OUT], 0);
    n += crowd(site, fds + n, 1, false, TL_SERVER_CROWDED_OUT, 1);
    assert_false(hears(site, fds[1], NULL, text, sizeof(text)));
    answer(site->held, 200, "held\n"); /* it had a request */
    assert_true(hears(site, fds[0], "held\n", text, sizeof(text)));
    assert_int_equal(site->events[TL_SERVER_FULL], 0);
    while (n > 0)
        close(fds[--n]);
}

static void streams_count_and_what_cannot_be_closed_is_refused(void **state)
{
    struct site *site = *state;
    char text[1024];
    site->streams = LIMIT + TL_SERVER_FILES_SPARE;
    int fd = client(site);
    assert_false(hears(site, fd, NULL, text, sizeof(text)));
    assert_int_equal(site->events[TL_SERVER_FULL], 1);
    close(fd);
    site->streams = 0;
    fd = client(site);
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(hears(site, fd, "hello\n", text, sizeof(text)));
    close(fd);
}

static void an_address_has_its_limit(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fds[EACH];
    (void)crowd(site, fds, EACH, true, TL_SERVER_ACCEPTED, EACH);
    int more = client(site);
    assert_false(hears(site, more, NULL, text, sizeof(text)));
    assert_int_equal(site->events[TL_SERVER_HOLDS_ENOUGH], 1);
    close(more);
    int proxied[EACH + 1]; /* those of a trusted proxy have none */
    for (int i = 0; i < EACH + 1; i++) {
        proxied[i] = client_from(site, PROXY);
        turn(site);
    }
    until(site, &site->events[TL_SERVER_ACCEPTED], EACH + EACH + 1);
    assert_int_equal(site->events[TL_SERVER_HOLDS_ENOUGH], 1);
    for (int i = 0; i < EACH + 1; i++)
        close(proxied[i]);
    for (int i = 0; i < EACH; i++)
        close(fds[i]);
}

static void no_server_has_nothing(void **state)
{
    (void)state;
    struct tl_server *none = NULL;
    tl_server_quiesce(none);
    tl_server_tick(none, 0);
    tl_server_free(&none);
    assert_int_equal(tl_server_connections(none), 0);
    assert_int_equal(tl_server_requests(none), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_read_and_answered),
        TEST(a_request_may_come_byte_by_byte),
        TEST(a_body_declared_too_large_is_refused_before_it_comes),
        TEST(a_body_that_turns_out_too_large_is_refused),
        TEST(a_request_that_may_end_elsewhere_is_refused),
        TEST(an_unusual_request_is_not_malformed),
        TEST(a_held_request_is_answered_in_a_later_turn),
        TEST(a_connection_can_be_taken_over),
        TEST(a_server_that_quiesces_closes_after_its_answers),
        TEST(connections_without_a_whole_request_expire),
        TEST(connections_without_a_request_make_room),
        TEST(streams_count_and_what_cannot_be_closed_is_refused),
        TEST(an_address_has_its_limit),
        cmocka_unit_test(no_server_has_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
