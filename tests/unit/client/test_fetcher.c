/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of our own to a small server on this machine. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
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

#include "common/client/fetcher.h"

enum { LONG_MS = 60000, ANSWER_MAX = 8 };

/* Serves one connection at a time. */
struct site {
    int fd;
    unsigned port;
    pthread_t thread;
    char request[1024]; /* the last one; read it when its answer is there */
};

static const struct {
    const char *path, *answer;
} answers[] = {
    {"/well", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"},
    {"/long", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789"},
    {"/moved", "HTTP/1.1 302 Found\r\nLocation: /well\r\nContent-Length: 5\r\n\r\nmoved"},
    {"/busy", "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"},
    {"/hangs", ""},
};

/* Reads a request and answers by its path. False at the end of the connection. */
static bool serve_one(struct site *site, int fd)
{
    char text[sizeof(site->request)];
    size_t length = 0;
    const char *body = NULL;
    do {
        ssize_t n = recv(fd, text + length, sizeof(text) - 1 - length, 0);
        if (n <= 0)
            return false;
        length += (size_t)n;
        text[length] = '\0';
        body = strstr(text, "\r\n\r\n");
    } while (body == NULL || (strncmp(text, "POST", 4) == 0 && text[length - 1] != '!'));
    memcpy(site->request, text, length + 1);
    const char *answer = "";
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if (strstr(text, answers[i].path) != NULL)
            answer = answers[i].answer;
    return send(fd, answer, strlen(answer), MSG_NOSIGNAL) >= 0;
}

static void *serve(void *context)
{
    struct site *site = context;
    int fd;
    while ((fd = accept(site->fd, NULL, NULL)) >= 0) {
        while (serve_one(site, fd))
            continue;
        close(fd);
    }
    return NULL;
}

struct world {
    struct site site;
    struct tl_fetcher *fetcher;
};

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    assert_non_null(world);
    world->site.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(world->site.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(world->site.fd, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(world->site.fd, 16), 0);
    world->site.port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&world->site.thread, NULL, serve, &world->site), 0);
    world->fetcher = tl_fetcher_new(1, NULL);
    assert_non_null(world->fetcher);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    tl_fetcher_free(&world->fetcher);
    assert_null(world->fetcher);
    shutdown(world->site.fd, SHUT_RDWR);
    pthread_join(world->site.thread, NULL);
    close(world->site.fd);
    free(world);
    return 0;
}

static struct tl_fetch *begin(struct world *world, const char *path,
                              struct tl_fetch_request request)
{
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", world->site.port, path);
    request.url = url;
    request.answer_max = ANSWER_MAX;
    request.timeout_ms = request.timeout_ms > 0 ? request.timeout_ms : LONG_MS;
    struct tl_fetch *fetch = tl_fetch_begin(world->fetcher, &request);
    assert_non_null(fetch);
    return fetch;
}

/* Waits as a loop does. */
static const struct tl_fetched *wait_for(struct world *world, const struct tl_fetch *fetch)
{
    const struct tl_fetched *fetched;
    struct pollfd ended = {.fd = tl_fetcher_fd(world->fetcher), .events = POLLIN};
    while ((fetched = tl_fetch_result(fetch)) == NULL) {
        assert_int_equal(poll(&ended, 1, LONG_MS), 1);
        tl_fetcher_seen(world->fetcher);
    }
    return fetched;
}

static void an_answer_is_told_as_it_is(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *path, *text;
        long status;
        enum tl_fetch_end end;
    } rows[] = {
        {"/well", "well", 200, TL_FETCH_ANSWERED},
        {"/moved", "moved", 302, TL_FETCH_ANSWERED},
        {"/busy", "busy", 503, TL_FETCH_ANSWERED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tl_fetch *fetch = begin(world, rows[i].path, (struct tl_fetch_request){0});
        const struct tl_fetched *fetched = wait_for(world, fetch);
        assert_int_equal(fetched->end, rows[i].end);
        assert_int_equal(fetched->status, rows[i].status);
        assert_string_equal(fetched->text, rows[i].text);
        assert_int_equal(fetched->length, strlen(rows[i].text));
        assert_string_equal(fetched->problem, "");
        assert_int_equal(strncmp(world->site.request, "GET ", 4), 0);
        tl_fetch_end(&fetch);
        assert_null(fetch);
    }
}

static void a_body_makes_it_a_post(void **state)
{
    struct world *world = *state;
    const char *const headers[] = {"Content-Type: text/plain", "X-One: 1", NULL};
    struct tl_fetch *fetch =
        begin(world, "/well",
              (struct tl_fetch_request){.body = "a body!", .length = 7, .headers = headers});
    assert_int_equal(wait_for(world, fetch)->end, TL_FETCH_ANSWERED);
    assert_int_equal(strncmp(world->site.request, "POST /well ", 11), 0);
    assert_non_null(strstr(world->site.request, "\r\nContent-Type: text/plain\r\n"));
    assert_non_null(strstr(world->site.request, "\r\nX-One: 1\r\n"));
    assert_non_null(strstr(world->site.request, "\r\nUser-Agent: tellerline/"));
    assert_non_null(strstr(world->site.request, "\r\n\r\na body!"));
    tl_fetch_end(&fetch);
}

static void an_answer_that_is_too_long_is_cut_off(void **state)
{
    struct world *world = *state;
    struct tl_fetch *fetch = begin(world, "/long", (struct tl_fetch_request){0});
    const struct tl_fetched *fetched = wait_for(world, fetch);
    assert_int_equal(fetched->end, TL_FETCH_CUT_OFF);
    assert_int_equal(fetched->status, 200);
    assert_true(fetched->length <= ANSWER_MAX);
    tl_fetch_end(&fetch);
}

static void an_error_may_be_a_failure(void **state)
{
    struct world *world = *state;
    struct tl_fetch *fetch =
        begin(world, "/busy", (struct tl_fetch_request){.fails_on_error = true});
    const struct tl_fetched *fetched = wait_for(world, fetch);
    assert_int_equal(fetched->end, TL_FETCH_FAILED);
    assert_int_equal(fetched->status, 503);
    assert_non_null(strstr(fetched->problem, "503"));
    tl_fetch_end(&fetch);
}

/* One is under way at a time. */
static void each_ends_in_time(void **state)
{
    struct world *world = *state;
    struct tl_fetch *first =
        begin(world, "/hangs", (struct tl_fetch_request){.timeout_ms = LONG_MS});
    struct tl_fetch *second = begin(world, "/well", (struct tl_fetch_request){.timeout_ms = 200});
    assert_int_equal(wait_for(world, second)->end, TL_FETCH_UNSENT);
    assert_null(tl_fetch_result(first));
    tl_fetch_end(&second);
    tl_fetch_end(&first);
    first = begin(world, "/hangs", (struct tl_fetch_request){.timeout_ms = 200});
    assert_int_equal(wait_for(world, first)->end, TL_FETCH_LATE);
    tl_fetch_end(&first);
}

static void one_that_is_left_makes_room(void **state)
{
    struct world *world = *state;
    struct tl_fetch *hangs = begin(world, "/hangs", (struct tl_fetch_request){0});
    struct tl_fetch *waits = begin(world, "/long", (struct tl_fetch_request){0});
    struct tl_fetch *last = begin(world, "/well", (struct tl_fetch_request){0});
    tl_fetch_end(&waits);
    tl_fetch_end(&hangs);
    assert_int_equal(wait_for(world, last)->end, TL_FETCH_ANSWERED);
    assert_string_equal(tl_fetch_result(last)->text, "well");
    tl_fetch_end(&last);
    tl_fetch_end(&last); /* there is none */
    hangs = begin(world, "/hangs", (struct tl_fetch_request){0});
    tl_fetch_end(&hangs); /* the fetcher is freed while its thread may be about to send it */
}

static void a_site_that_is_not_there(void **state)
{
    struct world *world = *state;
    shutdown(world->site.fd, SHUT_RDWR); /* no one listens any more */
    struct tl_fetch *fetch = begin(world, "/well", (struct tl_fetch_request){0});
    const struct tl_fetched *fetched = wait_for(world, fetch);
    assert_int_equal(fetched->end, TL_FETCH_FAILED);
    assert_int_equal(fetched->status, 0);
    assert_true(fetched->problem[0] != '\0');
    tl_fetch_end(&fetch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_told_as_it_is),
        TEST(a_body_makes_it_a_post),
        TEST(an_answer_that_is_too_long_is_cut_off),
        TEST(an_error_may_be_a_failure),
        TEST(each_ends_in_time),
        TEST(one_that_is_left_makes_room),
        TEST(a_site_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
