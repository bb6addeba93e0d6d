/* SPDX-License-Identifier: Apache-2.0 */
/* Standard error closed, full or shared: the program continues, and lines stay whole. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "tests/unit/base/log_capture.h"

static void test_broken_pipe(void **state)
{
    (void)state;
    int ends[2];
    init(TL_LOG_INFO, TL_LOG_LOGFMT, "worker");
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    struct sigaction before;
    const struct sigaction deadly = {.sa_handler = SIG_DFL};
    assert_int_equal(sigaction(SIGPIPE, &deadly, &before), 0);

    stderr_to(ends[1]);
    errno = ENOTDIR;
    tl_info("nobody hears this");
    int kept = errno;
    tl_warn("nor this");
    stderr_to(real_stderr);
    assert_int_equal(kept, ENOTDIR); /* %m and strerror after a log line still tell the truth */

    sigset_t set;
    assert_int_equal(sigpending(&set), 0);
    assert_false(sigismember(&set, SIGPIPE));
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &set), 0);
    assert_false(sigismember(&set, SIGPIPE));
    assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
    close(ends[1]);

    /* The next written line reports how many were lost. The one after it reports nothing. */
    assert_logfmt("back", " lost_lines=2 msg=\"back\"\n");
    assert_logfmt("again", " msg=\"again\"\n");
}

static void test_closed_stderr(void **state)
{
    (void)state;
    init(TL_LOG_INFO, TL_LOG_LOGFMT, "worker");
    assert_int_equal(close(STDERR_FILENO), 0);
    tl_info("nobody hears this");
    stderr_to(real_stderr);
    assert_logfmt("back", " lost_lines=1 msg=\"back\"\n");
}

/* A reader that does not read must not stop the program when standard error is non-blocking. */
static void test_full_pipe(void **state)
{
    (void)state;
    int ends[2];
    init(TL_LOG_INFO, TL_LOG_LOGFMT, "worker");
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    stderr_to(ends[1]);
    for (int i = 0; i < 5000; i++)
        tl_info("%0*d", 100, i);
    stderr_to(real_stderr);
    close(ends[0]);
    close(ends[1]);
    const char *text = log_line(TL_LOG_INFO, NULL, "back");
    assert_non_null(strstr(text, " lost_lines="));
}

/* ---- threads ---- */

enum { THREADS = 4, LINES = 2000 };

static void *write_lines(void *argument)
{
    const char *name = argument;
    const struct tl_log_fields fields = {.queue = name};
    for (int i = 0; i < LINES; i++)
        tl_log(TL_LOG_INFO, &fields, "line %d", i);
    return NULL;
}

/* Counts the lines of the file, each of which must be whole. */
static int count_lines(int fd)
{
    int copy = dup(fd);
    assert_true(copy >= 0);
    FILE *file = fdopen(copy, "r");
    assert_non_null(file);
    rewind(file);
    int n = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        assert_memory_equal(line, "time=", 5);
        assert_message_closes(line);
        n++;
    }
    fclose(file);
    return n;
}

static void test_threads(void **state)
{
    (void)state;
    static char names[THREADS][8] = {"a", "b", "c", "d"};
    pthread_t threads[THREADS];
    int fd = memfd_create("log", 0);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
    init(TL_LOG_INFO, TL_LOG_LOGFMT, "worker");
    stderr_to(fd);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, names[i]), 0);
    for (int i = 0; i < 1000; i++) /* as SIGHUP would */
        init(TL_LOG_INFO, TL_LOG_LOGFMT, i % 2 == 0 ? "worker" : "worker.1");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    stderr_to(real_stderr);
    assert_int_equal(count_lines(fd), THREADS * LINES);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_pipe),
        cmocka_unit_test(test_closed_stderr),
        cmocka_unit_test(test_full_pipe),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
