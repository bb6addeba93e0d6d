/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/role/listen.h"

enum { BOUND = 256 * 1024 };

static int option(int fd, int name)
{
    int value = -1;
    socklen_t length = sizeof(value);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, name, &value, &length), 0);
    return value;
}

/* A client that reads nothing, while it is sent what it asked for: how much goes into the kernel?
 */
static void the_kernel_keeps_little_for_who_does_not_read(void **state)
{
    static char bytes[BOUND];
    const struct tl_listen listen = {.host = "127.0.0.1"};
    struct tl_error err = {0};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int port, small = 4096;
    (void)state;
    int listener = tl_listen_open(&listen, false, &port, &err);
    assert_true(listener >= 0);
    address.sin_port = htons((uint16_t)port);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof(address)), 0);
    struct pollfd comes = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&comes, 1, -1), 1);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(option(fd, SO_SNDBUF) <= BOUND && option(fd, SO_RCVBUF) <= BOUND);
    ssize_t sent = 0, n;
    while ((n = send(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        sent += n;
    assert_in_range(sent, 1, BOUND);
    close(fd);
    close(client);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_keeps_little_for_who_does_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
