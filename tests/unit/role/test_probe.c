/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/role/listen.h"
#include "common/role/program.h"

/* A server that accepts one connection and sends a given answer in pieces. */
struct server {
    int fd, port;
    const char *pieces[4];
    pthread_t thread;
};

static void *serve(void *context)
{
    struct server *server = context;
    char request[512];
    int fd = accept(server->fd, NULL, NULL);
    if (fd < 0 || recv(fd, request, sizeof(request), 0) <= 0)
        return "no request";
    for (size_t i = 0; i < 4 && server->pieces[i] != NULL; i++) {
        if (send(fd, server->pieces[i], strlen(server->pieces[i]), MSG_NOSIGNAL) < 0)
            break;
        usleep(20000); /* so that the pieces arrive apart */
    }
    close(fd);
    return NULL;
}

static void open_server(struct server *server)
{
    const struct tl_listen listen = {.host = "127.0.0.1"};
    struct tl_error err = {0};
    server->fd = tl_listen_open(&listen, false, &server->port, &err);
    assert_true(server->fd >= 0);
}

/* The probe's result for an answer. */
static int probe_answer(const char *first, const char *second)
{
    struct server server = {.pieces = {first, second}};
    void *problem;
    open_server(&server);
    /* Blocking, for accept. */
    const struct timeval patience = {.tv_sec = 10};
    assert_int_equal(setsockopt(server.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
                     0);
    assert_int_equal(fcntl(server.fd, F_SETFL, 0), 0);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, &server), 0);
    int status = tl_http_get("127.0.0.1", server.port, "/livez", 5000, NULL, 0);
    assert_int_equal(pthread_join(server.thread, &problem), 0);
    assert_null(problem);
    close(server.fd);
    return status;
}

static void the_status_is_read(void **state)
{
    (void)state;
    assert_int_equal(probe_answer("HTTP/1.1 200 OK\r\n\r\n", NULL), 200);
    assert_int_equal(probe_answer("HTTP/1.0 503 Service Unavailable\r\n\r\n", NULL), 503);
    assert_int_equal(probe_answer("HTTP/1.1", " 200 OK\r\n\r\n"), 200);
}

static void what_is_not_http_is_no_answer(void **state)
{
    (void)state;
    assert_int_equal(probe_answer("-ERR unknown command 'GET'\r\n", NULL), -1);
    assert_int_equal(probe_answer("HTTP/1.1 999 Odd\r\n\r\n", NULL), -1);
    assert_int_equal(probe_answer("HTTP/1.1 20", NULL), -1);
    assert_int_equal(probe_answer("", NULL), -1);
}

static void the_timeout_bounds_a_silent_listener(void **state)
{
    (void)state;
    struct server server = {0};
    open_server(&server); /* the kernel accepts, and no answer ever comes */
    int64_t began_ms = tl_clock_ms();
    assert_int_equal(tl_http_get("127.0.0.1", server.port, "/livez", 200, NULL, 0), -1);
    int64_t took_ms = tl_clock_ms() - began_ms;
    assert_in_range(took_ms, 190, 120000);
    close(server.fd);
}

static void nobody_there_is_no_answer(void **state)
{
    (void)state;
    struct server server = {0};
    open_server(&server);
    close(server.fd);
    assert_int_equal(tl_http_get("127.0.0.1", server.port, "/livez", 5000, NULL, 0), -1);
    assert_int_equal(tl_http_get("no such host", server.port, "/livez", 5000, NULL, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_status_is_read),
        cmocka_unit_test(what_is_not_http_is_no_answer),
        cmocka_unit_test(the_timeout_bounds_a_silent_listener),
        cmocka_unit_test(nobody_there_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
