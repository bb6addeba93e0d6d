/* SPDX-License-Identifier: Apache-2.0 */
/* The admin listener, while others hold connections without a request. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>
#include <microhttpd.h>

#include "common/role/admin.h"
#include "common/role/program.h"
#include "tests/unit/listening.h"

enum { SLOW = 80, DIGEST_TRIES = 100, PATIENCE_MS = 120000 };

static atomic_bool busy;  /* answers about life take until it is false... */
static atomic_bool waits; /* ...and one has begun */

static bool live(void *context)
{
    (void)context;
    while (atomic_load(&busy)) {
        atomic_store(&waits, true);
        (void)usleep(1000);
    }
    return true;
}

static bool ready(void *context, char reason[160])
{
    (void)context;
    snprintf(reason, 160, "ready");
    return true;
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
    const struct tl_admin_source source = {.live = live, .ready = ready, .metrics = metrics};
    struct tl_error err = {0};
    *state = &admin;
    return tl_admin_start(&admin, &listen, &source, NULL, &err) ? 0 : -1;
}

static int stop(void **state)
{
    tl_admin_stop(*state);
    return 0;
}

/* A connection from this address, with the first bytes of a request. */
static int client(int port, in_addr_t from, const char *text)
{
    const struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr = {from}};
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&source, sizeof(source)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    (void)send(fd, text, strlen(text), MSG_NOSIGNAL); /* it may be closed already */
    return fd;
}

static int slow_client(int port, in_addr_t from)
{
    return client(port, from, "GET /livez HT");
}

static void probes_are_answered(void **state)
{
    (void)state;
    int port = listening_port();
    char body[256];
    assert_int_equal(tl_http_get("127.0.0.1", port, "/livez", PATIENCE_MS, NULL, 0), 200);
    assert_int_equal(tl_http_get("127.0.0.1", port, "/metrics", PATIENCE_MS, body, sizeof(body)),
                     200);
    assert_non_null(strstr(body, "metric 1\n"));
    assert_int_equal(tl_http_get("127.0.0.1", port, "/other", PATIENCE_MS, NULL, 0), 404);
}

static void slow_connections_do_not_keep_a_probe_out(void **state)
{
    (void)state;
    int port = listening_port();
    int slow[SLOW];
    for (int i = 0; i < SLOW; i++)
        slow[i] = slow_client(port, htonl(INADDR_LOOPBACK));
    /* A listener that slept meanwhile finds all of them at once: until it has closed those that
     * give way, it has no place. */
    for (int i = 0;
         i < DIGEST_TRIES && tl_http_get("127.0.0.1", port, "/livez", PATIENCE_MS, NULL, 0) < 0;
         i++)
        (void)usleep(10000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tl_http_get("127.0.0.1", port, "/livez", PATIENCE_MS, NULL, 0), 200);
    for (int i = 0; i < SLOW; i++)
        close(slow[i]);
}

/* An address of this machine that is not loopback; 0: there is none. */
static in_addr_t other_address(void)
{
    struct ifaddrs *list = NULL;
    in_addr_t found = 0;
    assert_int_equal(getifaddrs(&list), 0);
    for (const struct ifaddrs *one = list; one != NULL && found == 0; one = one->ifa_next) {
        struct sockaddr_in address;
        if (one->ifa_addr == NULL || one->ifa_addr->sa_family != AF_INET ||
            (one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0)
            continue;
        memcpy(&address, one->ifa_addr, sizeof(address));
        found = address.sin_addr.s_addr;
    }
    freeifaddrs(list);
    return found;
}

static bool is_alive(int fd)
{
    static const char answer[] = "HTTP/1.1 200 ";
    char text[sizeof(answer)] = "";
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    return recv(fd, text, sizeof(text) - 1, MSG_WAITALL) == sizeof(text) - 1 &&
           strcmp(text, answer) == 0;
}

/* A burst of slow sockets from elsewhere and then some probes of this machine, faster than sockets
 * can be closed: all are in the backlog when the listener comes to accept. It accepts a few at a
 * time, so the burst has several lengths. */
static void the_last_places_are_for_loopback(void **state)
{
    enum { OTHERS = 80, LENGTHS = 10, PROBES = 6 };
    static const char request[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    int port = listening_port();
    (void)state;
    in_addr_t other = other_address();
    int slow[OTHERS + LENGTHS], probes[PROBES];
    if (other == 0) {
        print_message("this machine has only loopback addresses\n");
        skip();
    }
    for (int n = OTHERS; n < OTHERS + LENGTHS; n++) {
        atomic_store(&waits, false);
        atomic_store(&busy, true);
        int holds = client(port, htonl(INADDR_LOOPBACK), request);
        while (!atomic_load(&waits)) /* the listener's thread is in its answer */
            (void)usleep(1000);
        for (int i = 0; i < n; i++)
            slow[i] = slow_client(port, other);
        for (int i = 0; i < PROBES; i++)
            probes[i] = client(port, htonl(INADDR_LOOPBACK), request);
        atomic_store(&busy, false);
        assert_true(is_alive(holds));
        for (int i = 0; i < PROBES; i++)
            assert_true(is_alive(probes[i]));
        close(holds);
        for (int i = 0; i < PROBES; i++)
            close(probes[i]);
        for (int i = 0; i < n; i++)
            close(slow[i]);
    }
}

/* ---- further requests ---- */

struct further {
    atomic_int begun, ended, handled;
    atomic_bool as_sent; /* the target is what the client wrote */
};

static void *begin_further(void *context, const char *target)
{
    struct further *further = context;
    atomic_fetch_add(&further->begun, 1);
    if (strcmp(target, "/more%2Fthan?one=%20") == 0)
        atomic_store(&further->as_sent, true);
    return further;
}

static bool handle_further(void *context, struct tl_admin *admin, void *request,
                           struct MHD_Connection *connection, const char *method,
                           const char *version, const char *upload, size_t *upload_size)
{
    static char body[] = "more";
    struct further *further = context;
    (void)version;
    (void)upload;
    (void)upload_size;
    assert_ptr_equal(request, further);
    assert_string_equal(method, "GET");
    atomic_fetch_add(&further->handled, 1);
    tl_admin_busy(admin, connection, true);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(sizeof(body) - 1, body, MHD_RESPMEM_PERSISTENT);
    bool queued = response != NULL && MHD_queue_response(connection, 202, response) == MHD_YES;
    MHD_destroy_response(response);
    return queued;
}

static void end_further(void *context, void *request)
{
    struct further *further = context;
    assert_ptr_equal(request, further);
    atomic_fetch_add(&further->ended, 1);
}

static void a_program_may_serve_more(void **state)
{
    struct further further = {0};
    struct tl_admin *admin;
    struct tl_error err = {0};
    const struct tl_listen listen = {.host = "127.0.0.1", .port = 0};
    const struct tl_admin_source source = {.live = live, .ready = ready, .metrics = metrics};
    const struct tl_admin_calls calls = {.context = &further,
                                         .places = 4,
                                         .begin = begin_further,
                                         .handle = handle_further,
                                         .end = end_further};
    char body[64];
    (void)state;
    assert_true(tl_admin_start(&admin, &listen, &source, &calls, &err));
    int port = listening_port();
    assert_int_equal(
        tl_http_get("127.0.0.1", port, "/more%2Fthan?one=%20", PATIENCE_MS, body, sizeof(body)),
        202);
    assert_string_equal(body, "more");
    assert_int_equal(tl_http_get("127.0.0.1", port, "/livez", PATIENCE_MS, NULL, 0), 200);
    assert_int_equal(tl_http_get("127.0.0.1", port, "/readyz", PATIENCE_MS, NULL, 0), 200);
    tl_admin_stop(&admin);
    assert_true(further.as_sent);
    assert_int_equal(further.handled, 1);
    assert_int_equal(further.begun, 3);
    assert_int_equal(further.ended, 3);
}

/* The library itself refuses a query that does not fit, after the request began. */
static void a_request_that_began_ends(void **state)
{
    enum { ARGUMENTS = 4000, REQUESTS = 20 };
    static char request[2 * ARGUMENTS + 64];
    struct further further = {0};
    struct tl_admin *admin;
    struct tl_error err = {0};
    const struct tl_listen listen = {.host = "127.0.0.1", .port = 0};
    const struct tl_admin_source source = {.live = live, .ready = ready, .metrics = metrics};
    const struct tl_admin_calls calls = {.context = &further,
                                         .places = 4,
                                         .begin = begin_further,
                                         .handle = handle_further,
                                         .end = end_further};
    (void)state;
    size_t length = (size_t)snprintf(request, sizeof(request), "GET /more?");
    for (size_t i = 0; i < ARGUMENTS; i++)
        length += (size_t)snprintf(request + length, sizeof(request) - length, "a&");
    snprintf(request + length, sizeof(request) - length, " HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(tl_admin_start(&admin, &listen, &source, &calls, &err));
    int port = listening_port();
    for (int i = 0; i < REQUESTS; i++) {
        int fd = client(port, htonl(INADDR_LOOPBACK), request);
        while (atomic_load(&further.begun) <= i)
            (void)usleep(1000);
        close(fd);
    }
    /* It is answered meanwhile, and a stop ends what is left. */
    assert_int_equal(tl_http_get("127.0.0.1", port, "/livez", PATIENCE_MS, NULL, 0), 200);
    tl_admin_stop(&admin);
    assert_int_equal(further.handled, 0);
    assert_int_equal(further.begun, REQUESTS + 1);
    assert_int_equal(further.ended, REQUESTS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_may_serve_more),
        cmocka_unit_test(a_request_that_began_ends),
        cmocka_unit_test_setup_teardown(probes_are_answered, start, stop),
        cmocka_unit_test_setup_teardown(slow_connections_do_not_keep_a_probe_out, start, stop),
        cmocka_unit_test_setup_teardown(the_last_places_are_for_loopback, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
