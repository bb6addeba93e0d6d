/* SPDX-License-Identifier: Apache-2.0 */
/* One server-sent events connection, over a socket pair whose other end is the reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/http/stream.h"

enum { LARGE = 1 << 20 };

struct reader {
    uv_loop_t loop;
    struct tl_stream *stream;
    int fd;
    unsigned broken;
    char *bytes; /* LARGE of them, no two neighbours equal */
};

static void on_broken(void *context)
{
    struct reader *reader = context;
    reader->broken++;
}

static int setup(void **state)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    int ends[2];
    assert_non_null(reader);
    reader->bytes = malloc(LARGE);
    assert_non_null(reader->bytes);
    for (size_t i = 0; i < LARGE; i++)
        reader->bytes[i] = (char)(i * 7 + i / 251);
    assert_int_equal(uv_loop_init(&reader->loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    reader->stream = tl_stream_open(&reader->loop, ends[0], on_broken, reader);
    assert_non_null(reader->stream);
    reader->fd = ends[1];
    *state = reader;
    return 0;
}

static int teardown(void **state)
{
    struct reader *reader = *state;
    tl_stream_close(&reader->stream);
    assert_null(reader->stream);
    tl_stream_close(&reader->stream); /* of NULL: nothing */
    uv_run(&reader->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&reader->loop), 0);
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader->bytes);
    free(reader);
    return 0;
}

static void turn(struct reader *reader)
{
    for (int i = 0; i < 3; i++)
        uv_run(&reader->loop, UV_RUN_NOWAIT);
}

static void what_fits_is_sent_at_once(void **state)
{
    struct reader *reader = *state;
    char text[16];
    assert_true(tl_stream_ready(reader->stream));
    assert_true(tl_stream_send(reader->stream, "hello", 5));
    assert_true(tl_stream_ready(reader->stream));
    assert_int_equal(recv(reader->fd, text, sizeof(text), 0), 5);
    assert_memory_equal(text, "hello", 5);
}

static void what_does_not_fit_is_kept_until_the_reader_takes_it(void **state)
{
    struct reader *reader = *state;
    char *text = malloc(LARGE);
    size_t length = 0;
    unsigned turns = 0;
    assert_non_null(text);
    assert_true(tl_stream_send(reader->stream, reader->bytes, LARGE));
    assert_false(tl_stream_ready(reader->stream));
    turn(reader);
    assert_false(tl_stream_ready(reader->stream)); /* nothing was read yet */
    while (length < LARGE && turns++ < 10000) {
        ssize_t n = recv(reader->fd, text + length, LARGE - length, 0);
        length += n > 0 ? (size_t)n : 0;
        turn(reader);
    }
    assert_int_equal(length, LARGE);
    assert_memory_equal(text, reader->bytes, LARGE);
    assert_true(tl_stream_ready(reader->stream));
    assert_true(tl_stream_send(reader->stream, "next", 4));
    assert_int_equal(recv(reader->fd, text, LARGE, 0), 4);
    assert_memory_equal(text, "next", 4);
    assert_int_equal(reader->broken, 0);
    free(text);
}

static void count_turn(uv_check_t *check)
{
    ++*(unsigned *)check->data;
}

static void on_time(uv_timer_t *timer)
{
    (void)timer;
}

static void with_all_sent_the_loop_sleeps(void **state)
{
    struct reader *reader = *state;
    unsigned turns = 0;
    char text[4096];
    uv_check_t check;
    uv_timer_t timer;
    assert_true(tl_stream_send(reader->stream, reader->bytes, LARGE));
    while (!tl_stream_ready(reader->stream) && turns++ < 100000) {
        (void)recv(reader->fd, text, sizeof(text), 0);
        uv_run(&reader->loop, UV_RUN_NOWAIT);
    }
    assert_true(tl_stream_ready(reader->stream));
    while (recv(reader->fd, text, sizeof(text), 0) > 0)
        ;
    turns = 0;
    uv_check_init(&reader->loop, &check);
    uv_timer_init(&reader->loop, &timer);
    check.data = &turns;
    uv_check_start(&check, count_turn);
    uv_timer_start(&timer, on_time, 50, 0);
    while (uv_is_active((uv_handle_t *)&timer))
        uv_run(&reader->loop, UV_RUN_ONCE);
    assert_true(turns < 10); /* else it turns without end, since the socket can always be written */
    uv_close((uv_handle_t *)&check, NULL);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&reader->loop, UV_RUN_NOWAIT);
}

static void a_reader_may_send_what_it_likes(void **state)
{
    struct reader *reader = *state;
    assert_int_equal(send(reader->fd, "noise", 5, 0), 5);
    turn(reader);
    assert_int_equal(reader->broken, 0);
    assert_true(tl_stream_send(reader->stream, "still", 5));
}

static void a_reader_that_leaves_is_reported_once(void **state)
{
    struct reader *reader = *state;
    close(reader->fd);
    reader->fd = -1;
    turn(reader);
    assert_int_equal(reader->broken, 1);
    turn(reader);
    assert_int_equal(reader->broken, 1);
    assert_false(tl_stream_send(reader->stream, "late", 4));
    assert_int_equal(reader->broken, 1);
}

static void a_failed_send_says_so_itself(void **state)
{
    struct reader *reader = *state;
    close(reader->fd);
    reader->fd = -1;
    assert_false(tl_stream_send(reader->stream, "late", 4)); /* and no SIGPIPE */
    assert_int_equal(reader->broken, 0);                     /* never from within a send */
}

static void a_stream_can_be_closed_with_something_unsent(void **state)
{
    struct reader *reader = *state;
    assert_true(tl_stream_send(reader->stream, reader->bytes, LARGE));
    tl_stream_close(&reader->stream);
    turn(reader);
    assert_int_equal(reader->broken, 0);
    size_t length = 0;
    ssize_t n;
    char text[4096];
    while ((n = recv(reader->fd, text, sizeof(text), 0)) > 0)
        length += (size_t)n;
    assert_int_equal(n, 0); /* the end, not "nothing yet" */
    assert_true(length < LARGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_fits_is_sent_at_once),
        TEST(what_does_not_fit_is_kept_until_the_reader_takes_it),
        TEST(with_all_sent_the_loop_sleeps),
        TEST(a_reader_may_send_what_it_likes),
        TEST(a_reader_that_leaves_is_reported_once),
        TEST(a_failed_send_says_so_itself),
        TEST(a_stream_can_be_closed_with_something_unsent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
