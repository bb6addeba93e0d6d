/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: requests and answers. */
#include <arpa/inet.h>
#include <errno.h>
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
#include "tests/unit/worker/http/site.h"

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
    int fd = site_client(site);
    site_say(fd, request_text);
    assert_true(site_hears(site, fd, "hello\n", text, sizeof(text)));
    assert_read(site);
    assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
    assert_non_null(strstr(text, "\r\nCache-Control: no-store\r\n"));
    assert_non_null(strstr(text, "\r\nContent-Type: text/plain\r\n"));
    assert_non_null(strstr(text, "\r\nX-Request-Id: my.id-1\r\n"));
    assert_non_null(strstr(text, "\r\nX-Test: yes\r\n"));
    assert_null(strstr(text, "X-Absent"));
    assert_null(strstr(text, "Connection: close"));
    assert_int_equal(site->answered, 1);
    assert_int_equal(tl_server_counts(site->server).connections, 1); /* kept alive */

    site_say(fd, "GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: not/valid\r\n\r\n");
    assert_true(site_hears(site, fd, "hello\n", text, sizeof(text)));
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
    int fd = site_client(site);
    for (size_t i = 0; i < sizeof(request_text) - 1; i++) {
        assert_int_equal(site->handled, 0);
        assert_int_equal(send(fd, request_text + i, 1, MSG_NOSIGNAL), 1);
        site_turn(site);
    }
    assert_true(site_hears(site, fd, "hello\n", text, sizeof(text)));
    assert_read(site);
    close(fd);
}

static void a_body_declared_too_large_is_refused_before_it_comes(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = site_client(site);
    site_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 65\r\n\r\n");
    assert_true(site_hears(site, fd, "too large\n", text, sizeof(text)));
    assert_int_equal(strncmp(text, "HTTP/1.1 413 ", 13), 0);
    assert_int_equal(site->too_large, 1);
    assert_string_equal(site->problem, "A body may have at most 64 bytes");
    assert_int_equal(site->handled, 0);
    close(fd);
}

static void a_body_that_turns_out_too_large_is_refused(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = site_client(site);
    site_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 4; i++)
        site_say(fd, "10\r\n0123456789abcdef\r\n");
    site_say(fd, "1\r\nx\r\n0\r\n\r\n");
    assert_true(site_hears(site, fd, "too large\n", text, sizeof(text)));
    assert_int_equal(site->too_large, 1);
    assert_int_equal(site->handled, 0);
    close(fd);
    fd = site_client(site);
    site_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 4; i++)
        site_say(fd, "10\r\n0123456789abcdef\r\n");
    site_say(fd, "0\r\n\r\n");
    assert_true(site_hears(site, fd, "hello\n", text, sizeof(text)));
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
        int fd = site_client(site);
        site->problem[0] = '\0';
        site_say(fd, bad[i].request);
        site_say(fd, "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_true(site_hears(site, fd, "malformed\n", text, sizeof(text)));
        assert_int_equal(strncmp(text, "HTTP/1.1 400 ", 13), 0);
        assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
        assert_non_null(strstr(site->problem, bad[i].problem));
        assert_false(site_hears(site, fd, NULL, text, sizeof(text)));
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
        int fd = site_client(site);
        site_say(fd, good[i]);
        assert_true(site_hears(site, fd, "hello\n", text, sizeof(text)));
        close(fd);
    }
}

static void a_held_request_is_answered_in_a_later_turn(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = site_client(site);
    site->hold = true;
    site_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    site_until(site, &site->handled, 1);
    site_settle(site);
    assert_int_equal(recv(fd, text, sizeof(text), MSG_DONTWAIT), -1);
    assert_int_equal(tl_server_counts(site->server).requests, 1);
    site_answer(site->held, 201, "later\n");
    assert_true(site_hears(site, fd, "later\n", text, sizeof(text)));
    assert_int_equal(strncmp(text, "HTTP/1.1 201 ", 13), 0);
    site_settle(site);
    assert_int_equal(tl_server_counts(site->server).requests, 0);
    close(fd);
}

static void a_connection_can_be_taken_over(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = site_client(site);
    site->take_over = true;
    site_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    site_until(site, &site->handled, 1);
    assert_true(site->taken >= 0);
    site_settle(site);
    assert_int_equal(tl_server_counts(site->server).connections, 0); /* the server let go of it */
    assert_int_equal(tl_server_counts(site->server).requests, 0);
    site_say(site->taken, "raw");
    assert_true(site_hears(site, fd, "raw", text, sizeof(text)));
    assert_string_equal(text, "raw");    /* nothing of the server's before it */
    assert_int_equal(site->answered, 1); /* with 200 */
    close(fd);
}

static void a_server_that_quiesces_closes_after_its_answers(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fd = site_client(site);
    site->hold = true;
    site_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    site_until(site, &site->handled, 1);
    tl_server_quiesce(site->server);
    tl_server_quiesce(site->server);
    int late = site_client(site); /* stays in the backlog */
    site_say(late, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    site_answer(site->held, 200, "last\n");
    assert_true(site_hears(site, fd, "last\n", text, sizeof(text)));
    assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
    assert_false(site_hears(site, fd, NULL, text, sizeof(text)));
    assert_int_equal(site->handled, 1);
    close(late);
    close(fd);
}

static void no_server_has_nothing(void **state)
{
    (void)state;
    struct tl_server *none = NULL;
    tl_server_quiesce(none);
    tl_server_tick(none, 0);
    tl_server_free(&none);
    assert_int_equal(tl_server_counts(none).connections, 0);
    assert_int_equal(tl_server_counts(none).busy, 0);
    assert_int_equal(tl_server_counts(none).requests, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, site_setup, site_teardown)

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
        cmocka_unit_test(no_server_has_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
