/* The admin listener, while others hold connections without a request. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/role/admin.h"
#include "common/role/probe.h"

enum { SLOW = 80, PATIENCE_MS = 10000 };

static bool yes(void *context)
{
    (void)context;
    return true;
}

static bool ready(void *context, char reason[160])
{
    snprintf(reason, 160, "ready");
    return yes(context);
}

static void metrics(void *context, struct tl_text *out)
{
    (void)context;
    tl_text_append(out, "metric 1\n");
}

static int start(void **state)
{
    static struct tl_admin *admin;
    const struct tl_listen listen = {.host = "127.0.0.1", .port = 0};
    const struct tl_admin_source source = {.live = yes, .ready = ready, .metrics = metrics};
    struct tl_error err = {0};
    *state = &admin;
    return tl_admin_start(&admin, &listen, &source, &err) ? 0 : -1;
}

static int stop(void **state)
{
    tl_admin_stop(*state);
    return 0;
}

static int slow_client(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    (void)send(fd, "GET /livez HT", 13, MSG_NOSIGNAL); /* it may be closed already */
    return fd;
}

static void probes_are_answered(void **state)
{
    int port = tl_admin_port(*(struct tl_admin **)*state);
    char body[256];
    assert_int_equal(tl_http_probe("127.0.0.1", port, "/livez", PATIENCE_MS), 200);
    assert_int_equal(tl_http_get("127.0.0.1", port, "/metrics", PATIENCE_MS, body, sizeof(body)),
                     200);
    assert_non_null(strstr(body, "metric 1\n"));
    assert_int_equal(tl_http_probe("127.0.0.1", port, "/other", PATIENCE_MS), 404);
}

static void slow_connections_do_not_keep_a_probe_out(void **state)
{
    int port = tl_admin_port(*(struct tl_admin **)*state);
    int slow[SLOW];
    for (int i = 0; i < SLOW; i++)
        slow[i] = slow_client(port);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tl_http_probe("127.0.0.1", port, "/livez", PATIENCE_MS / 4), 200);
    for (int i = 0; i < SLOW; i++)
        close(slow[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(probes_are_answered, start, stop),
        cmocka_unit_test_setup_teardown(slow_connections_do_not_keep_a_probe_out, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
