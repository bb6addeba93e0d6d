/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: which connections it closes, and when. */
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

static void connections_without_a_whole_request_expire(void **state)
{
    struct site *site = *state;
    char text[1024];
    int slow = site_client(site);
    int waiting = site_client(site);
    site_say(slow, "GET / HTTP/1.1\r\nHos");
    site_say(waiting, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    site->hold = true;
    site_until(site, &site->handled, 1);
    tl_server_tick(site->server, tl_clock_ms());
    site_settle(site);
    assert_int_equal(tl_server_counts(site->server).connections, 2);
    tl_server_tick(site->server, tl_clock_ms() + IDLE_MS + 1000);
    assert_false(site_hears(site, slow, NULL, text, sizeof(text)));
    assert_int_equal(tl_server_counts(site->server).connections, 1); /* held requests stay */
    site_answer(site->held, 200, "held\n");
    assert_true(site_hears(site, waiting, "held\n", text, sizeof(text)));
    site_settle(site);
    tl_server_tick(site->server, tl_clock_ms() + IDLE_MS + 1000); /* idle from now on */
    assert_false(site_hears(site, waiting, NULL, text, sizeof(text)));
    close(slow);
    close(waiting);
}

/* Connects this many, which send nothing, from one address or each from its own. */
static int crowd(struct site *site, int *fds, int n, bool same, const unsigned *counter,
                 unsigned more)
{
    const unsigned before = *counter;
    for (int i = 0; i < n; i++) {
        fds[i] = site_client_from(site, INADDR_LOOPBACK + (in_addr_t)(same ? 0 : 16 + i));
        site_turn(site);
    }
    site_until(site, counter, before + more);
    site_settle(site);
    return n;
}

static void connections_without_a_request_make_room(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fds[LIMIT + TL_SERVER_FILES_SPARE];
    int n = crowd(site, fds, LIMIT, false, &site->accepted, LIMIT);
    site->hold = true;
    site_say(fds[0], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    site_until(site, &site->handled, 1);
    /* All are new: they are spared until half of what is spare is used, then the oldest goes. */
    n += crowd(site, fds + n, TL_SERVER_FILES_SPARE / 2, false, &site->accepted,
               TL_SERVER_FILES_SPARE / 2);
    assert_int_equal(site->crowded_out, 0);
    n += crowd(site, fds + n, 1, false, &site->crowded_out, 1);
    assert_false(site_hears(site, fds[1], NULL, text, sizeof(text)));
    site_answer(site->held, 200, "held\n"); /* it had a request */
    assert_true(site_hears(site, fds[0], "held\n", text, sizeof(text)));
    assert_int_equal(site->refused_full, 0);
    while (n > 0)
        close(fds[--n]);
}

/* Those that were spared while they were new, or at work, are too many later: one newcomer is
 * enough. */
static void all_that_are_too_many_make_room_for_one(void **state)
{
    enum { BEYOND = TL_SERVER_FILES_SPARE / 2, NEW_MS = 1000 };
    struct site *site = *state;
    int fds[LIMIT + BEYOND + 1];
    int n = crowd(site, fds, LIMIT + BEYOND, false, &site->accepted, LIMIT + BEYOND);
    int64_t until_ms = tl_clock_ms() + NEW_MS;
    while (tl_clock_ms() <= until_ms)
        site_turn(site);
    n += crowd(site, fds + n, 1, false, &site->crowded_out, BEYOND + 1);
    assert_int_equal(tl_server_counts(site->server).connections, LIMIT);
    while (n > 0)
        close(fds[--n]);
}

/* Lets the server work until the client has taken so much, or its connection is closed: then
 * false. */
static bool takes(struct site *site, int fd, size_t much)
{
    static char bytes[FEW];
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    while (much > 0 && tl_clock_ms() < until_ms) {
        site_turn(site);
        ssize_t n = recv(fd, bytes, much < FEW ? much : FEW, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        much -= n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(much, 0);
    return true;
}

static void answers_that_are_not_taken_make_room(void **state)
{
    struct site *site = *state;
    int greedy[LIMIT], fds[TL_SERVER_FILES_SPARE];
    char text[1024];
    site->large = true;
    for (int i = 0; i < LIMIT; i++) {
        greedy[i] = site_client_that_keeps(site, INADDR_LOOPBACK + 16 + (in_addr_t)i, FEW);
        site_say(greedy[i], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    site_until(site, &site->handled, LIMIT);
    site_settle(site);
    assert_int_equal(tl_server_counts(site->server).busy, 0);
    /* Two more than are spared while all are new. */
    int n = crowd(site, fds, TL_SERVER_FILES_SPARE / 2 + 2, false, &site->accepted,
                  TL_SERVER_FILES_SPARE / 2 + 2);
    assert_true(site->crowded_out >= 2);
    assert_false(takes(site, greedy[0], LARGE) || takes(site, greedy[1], LARGE));
    site->large = false;
    site_say(fds[n - 1], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(site_hears(site, fds[n - 1], "hello\n", text, sizeof(text)));
    assert_int_equal(site->refused_full, 0);
    while (n > 0)
        close(fds[--n]);
    for (int i = 0; i < LIMIT; i++)
        close(greedy[i]);
}

static void an_answer_is_taken_steadily_or_dropped(void **state)
{
    enum { PERIOD_MS = IDLE_MS + 1000, PERIODS = 4 };
    struct site *site = *state;
    int64_t now_ms = tl_clock_ms();
    int fd = site_client_that_keeps(site, INADDR_LOOPBACK, FEW);
    site->large = true;
    site_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    site_until(site, &site->handled, 1);
    for (int i = 1; i <= PERIODS; i++) {
        assert_true(takes(site, fd, 4 * (size_t)PERIOD_MS));
        tl_server_tick(site->server, now_ms + i * (int64_t)PERIOD_MS);
        site_settle(site);
        assert_int_equal(tl_server_counts(site->server).connections, 1);
    }
    tl_server_tick(site->server, now_ms + (PERIODS + 1) * (int64_t)PERIOD_MS);
    site_settle(site);
    assert_int_equal(tl_server_counts(site->server).connections, 0);
    assert_false(takes(site, fd, LARGE));
    close(fd);
}

static void streams_count_and_what_cannot_be_closed_is_refused(void **state)
{
    struct site *site = *state;
    char text[1024];
    tl_metrics_set(site->metrics, TL_WORKER_EVENT_STREAMS, LIMIT + TL_SERVER_FILES_SPARE);
    int fd = site_client(site);
    assert_false(site_hears(site, fd, NULL, text, sizeof(text)));
    assert_int_equal(site->refused_full, 1);
    close(fd);
    tl_metrics_set(site->metrics, TL_WORKER_EVENT_STREAMS, 0);
    fd = site_client(site);
    site_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(site_hears(site, fd, "hello\n", text, sizeof(text)));
    close(fd);
}

static void an_address_has_its_limit(void **state)
{
    struct site *site = *state;
    char text[1024];
    int fds[EACH];
    (void)crowd(site, fds, EACH, true, &site->accepted, EACH);
    int more = site_client(site);
    assert_false(site_hears(site, more, NULL, text, sizeof(text)));
    assert_int_equal(site->refused_address, 1);
    close(more);
    int proxied[EACH + 1]; /* those of a trusted proxy have none */
    for (int i = 0; i < EACH + 1; i++) {
        proxied[i] = site_client_from(site, PROXY);
        site_turn(site);
    }
    site_until(site, &site->accepted, EACH + 1 + EACH + 1);
    assert_int_equal(site->refused_address, 1);
    for (int i = 0; i < EACH + 1; i++)
        close(proxied[i]);
    for (int i = 0; i < EACH; i++)
        close(fds[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, site_setup, site_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connections_without_a_whole_request_expire),
        TEST(connections_without_a_request_make_room),
        TEST(all_that_are_too_many_make_room_for_one),
        TEST(answers_that_are_not_taken_make_room),
        TEST(an_answer_is_taken_steadily_or_dropped),
        TEST(streams_count_and_what_cannot_be_closed_is_refused),
        TEST(an_address_has_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
