/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the nodes of a cluster, and how often they are asked: against a node that says
 * what a test wants. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/store/cluster.h"

enum { SOCKETS = 8, ANSWER_BYTES = 65536, AWAY_FOR_MS = 3000 };

/* Nobody listens on the first ports: who connects is refused at once. */
struct fake {
    struct pollfd sockets[SOCKETS]; /* first the listener */
    int port;
    pthread_t thread;
    atomic_bool stop;
    atomic_int asked;
    pthread_mutex_t lock;
    char slots[ANSWER_BYTES]; /* the answer to CLUSTER SLOTS; under the lock */
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct fake *fake, const char *format, ...)
{
    va_list list;
    assert_int_equal(pthread_mutex_lock(&fake->lock), 0);
    va_start(list, format);
    int n = vsnprintf(fake->slots + fake->length, sizeof(fake->slots) - fake->length, format, list);
    va_end(list);
    assert_true(n > 0 && fake->length + (size_t)n < sizeof(fake->slots));
    fake->length += (size_t)n;
    assert_int_equal(pthread_mutex_unlock(&fake->lock), 0);
}

/* Begins another answer. */
static void say_nothing(struct fake *fake)
{
    assert_int_equal(pthread_mutex_lock(&fake->lock), 0);
    fake->length = 0;
    assert_int_equal(pthread_mutex_unlock(&fake->lock), 0);
}

/* [first, last, then so many nodes, which say_node adds]. */
static void say_range(struct fake *fake, int first, int last, int nodes)
{
    say(fake, "*%d\r\n:%d\r\n:%d\r\n", nodes + 2, first, last);
}

static void say_node(struct fake *fake, int port)
{
    say(fake, "*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$2\r\nid\r\n", port);
}

static void answer(struct fake *fake, struct pollfd *client)
{
    static const char info[] = "$43\r\ncluster_state:ok\r\ncluster_current_epoch:1\r\n\r\n";
    char command[256];
    ssize_t n = recv(client->fd, command, sizeof(command) - 1, 0);
    if (n <= 0) {
        close(client->fd);
        client->fd = -1;
        return;
    }
    command[n] = '\0';
    bool slots = strstr(command, "SLOTS") != NULL;
    atomic_fetch_add(&fake->asked, slots ? 1 : 0);
    (void)pthread_mutex_lock(&fake->lock);
    (void)send(client->fd, slots ? fake->slots : info, slots ? fake->length : sizeof(info) - 1,
               MSG_NOSIGNAL);
    (void)pthread_mutex_unlock(&fake->lock);
}

static void *serve(void *context)
{
    struct fake *fake = context;
    while (!atomic_load(&fake->stop)) {
        (void)poll(fake->sockets, SOCKETS, 10);
        for (size_t i = 1; i < SOCKETS; i++) {
            struct pollfd *client = &fake->sockets[i];
            if (client->fd >= 0 && client->revents != 0)
                answer(fake, client);
            if (client->fd < 0 && (fake->sockets[0].revents & POLLIN) != 0) {
                client->fd = accept(fake->sockets[0].fd, NULL, NULL);
                fake->sockets[0].revents = 0;
            }
        }
    }
    return NULL;
}

static int start(void **state)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    assert_non_null(fake);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < SOCKETS; i++)
        fake->sockets[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    int listener = fake->sockets[0].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(listen(listener, SOCKETS), 0);
    fake->port = ntohs(address.sin_port);
    assert_int_equal(pthread_mutex_init(&fake->lock, NULL), 0);
    assert_int_equal(pthread_create(&fake->thread, NULL, serve, fake), 0);
    *state = fake;
    return 0;
}

static int stop(void **state)
{
    struct fake *fake = *state;
    atomic_store(&fake->stop, true);
    assert_int_equal(pthread_join(fake->thread, NULL), 0);
    for (size_t i = 0; i < SOCKETS; i++)
        if (fake->sockets[i].fd >= 0)
            close(fake->sockets[i].fd);
    pthread_mutex_destroy(&fake->lock);
    free(fake);
    return 0;
}

static struct tl_cluster *cluster_of(const struct fake *fake)
{
    struct tl_redis_url url;
    char text[64];
    snprintf(text, sizeof(text), "redis+cluster://127.0.0.1:%d", fake->port);
    assert_true(tl_redis_url_parse(text, &url, NULL));
    struct tl_cluster *cluster = tl_cluster_new(&url, &(struct tl_redis_settings){0}, NULL);
    assert_non_null(cluster);
    return cluster;
}

/* Two masters, the first with these replicas: one, and then those from 2 on. */
static void say_replicas(struct fake *fake, int one, int replicas, int other)
{
    say_nothing(fake);
    say(fake, "*2\r\n");
    say_range(fake, 0, 99, 1 + replicas);
    say_node(fake, fake->port);
    say_node(fake, one);
    for (int i = 2; i <= replicas; i++)
        say_node(fake, i);
    say_range(fake, 100, 16383, 1);
    say_node(fake, other);
}

static void more_replicas_than_are_remembered(void **state)
{
    static struct tl_cluster_map map;
    struct fake *fake = *state;
    struct tl_cluster *cluster = cluster_of(fake);
    enum { REPLICAS = 300 };
    map = (struct tl_cluster_map){0};
    say_replicas(fake, 1, REPLICAS, REPLICAS + 1);
    assert_true(tl_cluster_look(cluster, &map, NULL));
    assert_int_equal(map.n, 2);
    assert_int_equal(map.slots[99], 0);
    assert_int_equal(map.slots[100], 1);
    assert_int_equal(map.nodes[1].port, REPLICAS + 1);
    /* The master that was named last is known all the same: it is found to be away. */
    int64_t until_ms = tl_clock_ms() + 20000;
    for (; !map.away[1] && tl_clock_ms() < until_ms; usleep(10000)) {
        tl_cluster_doubt(cluster);
        assert_true(tl_cluster_look(cluster, &map, NULL));
    }
    assert_true(map.away[1]);
    assert_false(map.away[0]);
    /* A replica for which there was no room takes its place, and it stays as a replica. */
    say_replicas(fake, REPLICAS + 1, REPLICAS - 1, REPLICAS);
    for (until_ms = tl_clock_ms() + 20000;
         map.nodes[1].port != REPLICAS && tl_clock_ms() < until_ms; usleep(10000)) {
        tl_cluster_doubt(cluster);
        assert_true(tl_cluster_look(cluster, &map, NULL));
    }
    assert_int_equal(map.nodes[1].port, REPLICAS);
    tl_cluster_free(&cluster);
}

static void more_masters_than_a_map_has(void **state)
{
    static struct tl_cluster_map map;
    struct fake *fake = *state;
    for (int masters = TL_STORE_NODES_MAX; masters <= TL_STORE_NODES_MAX + 1; masters++) {
        struct tl_cluster *cluster = cluster_of(fake);
        struct tl_error err = {0};
        map = (struct tl_cluster_map){0};
        say_nothing(fake);
        say(fake, "*%d\r\n", masters);
        for (int i = 1; i <= masters; i++) {
            say_range(fake, i, i, 1);
            say_node(fake, i);
        }
        bool fit = masters == TL_STORE_NODES_MAX;
        assert_int_equal(tl_cluster_look(cluster, &map, &err), fit);
        assert_int_equal(map.n, fit ? masters : 0);
        assert_int_equal(err.kind, fit ? TL_OK : TL_ERR_PROTOCOL);
        tl_cluster_free(&cluster);
    }
}

/* The others are asked at once, and then less and less often. */
static void a_master_that_stays_away_is_no_reason_to_ask_all_the_time(void **state)
{
    static struct tl_cluster_map map;
    struct fake *fake = *state;
    struct tl_cluster *cluster = cluster_of(fake);
    map = (struct tl_cluster_map){0};
    say(fake, "*2\r\n");
    say_range(fake, 0, 99, 1);
    say_node(fake, fake->port);
    say_range(fake, 100, 16383, 1);
    say_node(fake, 1);
    assert_true(tl_cluster_look(cluster, &map, NULL));
    int64_t until_ms = tl_clock_ms() + AWAY_FOR_MS;
    for (; tl_clock_ms() < until_ms; usleep(10000))
        tl_cluster_doubt(cluster); /* as its queues do that are tried again */
    int asked = atomic_load(&fake->asked);
    if (asked < 4 || asked > 4 + 2 * AWAY_FOR_MS / 1000)
        fail_msg("asked %d times in %d ms", asked, AWAY_FOR_MS);
    tl_cluster_free(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(more_replicas_than_are_remembered, start, stop),
        cmocka_unit_test_setup_teardown(more_masters_than_a_map_has, start, stop),
        cmocka_unit_test_setup_teardown(a_master_that_stays_away_is_no_reason_to_ask_all_the_time,
                                        start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
