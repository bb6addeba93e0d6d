/* SPDX-License-Identifier: Apache-2.0 */
/* A real datagram socket replaces that of the service manager. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/role/notify.h"

static char folder[] = "/tmp/tl-notify-XXXXXX";
static char path[64];
static int manager = -1;
static char message[512];

static void listen_at(const char *address, socklen_t length)
{
    struct sockaddr_un bound = {.sun_family = AF_UNIX};
    memcpy(bound.sun_path, address, length);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(manager >= 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    assert_int_equal(bind(manager, (struct sockaddr *)&bound, size), 0);
}

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tl-notify-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    listen_at(path, (socklen_t)strlen(path));
    setenv("NOTIFY_SOCKET", path, 1);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(manager);
    unlink(path);
    rmdir(folder);
    unsetenv("NOTIFY_SOCKET");
    return 0;
}

/* What came, "" if nothing did. */
static const char *received(void)
{
    ssize_t n = recv(manager, message, sizeof(message) - 1, 0);
    message[n > 0 ? n : 0] = '\0';
    return message;
}

static struct tl_notify *opened(int64_t now_ms)
{
    struct tl_notify *notify = NULL;
    struct tl_error err = {0};
    assert_true(tl_notify_open(&notify, now_ms, &err));
    assert_non_null(notify);
    return notify;
}

static void test_nobody_to_tell(void **state)
{
    (void)state;
    struct tl_notify *notify = (void *)path;
    struct tl_error err = {0};
    unsetenv("NOTIFY_SOCKET");
    assert_true(tl_notify_open(&notify, 0, &err));
    assert_null(notify);
    tl_notify_turn(notify, true, "ready", 0);
    tl_notify_stopping(notify);
    tl_notify_free(&notify);
    assert_string_equal(received(), "");
}

static void test_bad_addresses(void **state)
{
    (void)state;
    char long_path[200];
    memset(long_path, 'x', sizeof(long_path));
    long_path[0] = '/';
    long_path[sizeof(long_path) - 1] = '\0';
    const char *const bad[] = {"relative", "/", "@", "vsock:2:1", long_path};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tl_notify *notify = NULL;
        struct tl_error err = {0};
        setenv("NOTIFY_SOCKET", bad[i], 1);
        assert_false(tl_notify_open(&notify, 0, &err));
        assert_int_equal(err.kind, TL_ERR_INVALID);
        assert_null(notify);
    }
}

/* Ready is said once, and the status only when it changes. */
static void test_ready(void **state)
{
    (void)state;
    struct tl_notify *notify = opened(0);
    tl_notify_turn(notify, false, "starting", 1);
    assert_string_equal(received(), "STATUS=starting\n");
    tl_notify_turn(notify, false, "starting", 2);
    assert_string_equal(received(), "");
    tl_notify_turn(notify, true, "ready", 3);
    assert_string_equal(received(), "READY=1\nSTATUS=ready\n");
    tl_notify_turn(notify, true, "ready", 4);
    assert_string_equal(received(), "");
    tl_notify_turn(notify, false, "the store is gone", 5);
    assert_string_equal(received(), "STATUS=the store is gone\n");
    tl_notify_turn(notify, true, "ready", 6);
    assert_string_equal(received(), "STATUS=ready\n");
    tl_notify_stopping(notify);
    assert_string_equal(received(), "STOPPING=1\nSTATUS=stopping\n");
    tl_notify_free(&notify);
    assert_null(notify);
}

/* A service manager that waits for the start gets ready after a while, with the reason as the
 * status. */
static void test_patience(void **state)
{
    (void)state;
    struct tl_notify *notify = opened(1000);
    tl_notify_turn(notify, false, "no store", 1000 + TL_NOTIFY_PATIENCE_MS - 1);
    assert_string_equal(received(), "STATUS=no store\n");
    tl_notify_turn(notify, false, "no store", 1000 + TL_NOTIFY_PATIENCE_MS);
    assert_string_equal(received(), "READY=1\nSTATUS=no store\n");
    tl_notify_turn(notify, true, "ready", 1000 + TL_NOTIFY_PATIENCE_MS + 1);
    assert_string_equal(received(), "STATUS=ready\n");
    tl_notify_free(&notify);
}

/* A message that could not be sent is sent again. */
static void test_said_again(void **state)
{
    (void)state;
    struct tl_notify *notify = opened(0);
    close(manager);
    unlink(path);
    tl_notify_turn(notify, true, "ready", 1);
    listen_at(path, (socklen_t)strlen(path));
    tl_notify_turn(notify, true, "ready", 2);
    assert_string_equal(received(), "READY=1\nSTATUS=ready\n");
    tl_notify_free(&notify);
}

/* A reason cannot inject another variable, even if it is too long. */
static void test_one_line(void **state)
{
    (void)state;
    struct tl_notify *notify = opened(0);
    char reason[1000];
    memset(reason, 'x', sizeof(reason));
    reason[sizeof(reason) - 1] = '\0';
    tl_notify_turn(notify, false, "odd\nREADY=1", 1);
    assert_string_equal(received(), "STATUS=odd\n");
    tl_notify_turn(notify, false, reason, 2);
    assert_int_equal(strspn(received() + strlen("STATUS="), "x"), 159);
    tl_notify_free(&notify);
}

/* Exactly four pings in the interval, and none from another process. */
static void test_watchdog(void **state)
{
    (void)state;
    setenv("WATCHDOG_USEC", "4000000", 1);
    struct tl_notify *notify = opened(0);
    tl_notify_turn(notify, true, "ready", 999);
    assert_string_equal(received(), "READY=1\nSTATUS=ready\n");
    tl_notify_turn(notify, true, "ready", 1000);
    assert_string_equal(received(), "WATCHDOG=1\nSTATUS=ready\n");
    tl_notify_turn(notify, true, "ready", 1999);
    assert_string_equal(received(), "");
    tl_notify_turn(notify, true, "ready", 2000);
    assert_string_equal(received(), "WATCHDOG=1\nSTATUS=ready\n");
    tl_notify_free(&notify);
    setenv("WATCHDOG_PID", "1", 1);
    notify = opened(0);
    tl_notify_turn(notify, true, "ready", 1);
    assert_string_equal(received(), "READY=1\nSTATUS=ready\n");
    tl_notify_turn(notify, true, "ready", 5000);
    assert_string_equal(received(), "");
    tl_notify_free(&notify);
}

static void test_abstract_address(void **state)
{
    (void)state;
    char name[64];
    close(manager);
    int length = snprintf(name, sizeof(name), "@tl-notify-%ld", (long)getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    name[0] = '\0';
    listen_at(name, (socklen_t)length);
    struct tl_notify *notify = opened(0);
    tl_notify_turn(notify, true, "ready", 1);
    assert_string_equal(received(), "READY=1\nSTATUS=ready\n");
    tl_notify_free(&notify);
}

#define NOTIFY_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NOTIFY_TEST(test_nobody_to_tell), NOTIFY_TEST(test_bad_addresses),
        NOTIFY_TEST(test_ready),          NOTIFY_TEST(test_patience),
        NOTIFY_TEST(test_said_again),     NOTIFY_TEST(test_one_line),
        NOTIFY_TEST(test_watchdog),       NOTIFY_TEST(test_abstract_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
