/* SPDX-License-Identifier: Apache-2.0 */
/* Which master the sentinels name: three of them, played by this test. */
#include <netinet/in.h>
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

#include "common/store/sentinel.h"

/* OLDER_MS: after it an older master counts, if most of them name it (common/store/sentinel.c). */
enum { SENTINELS = 3, OLDER_MS = 5000, PEERS_MAX = 1000 };

/* One sentinel: answers as long as it is there. */
struct sentinel {
    int listener, port;
    pthread_t thread;
    atomic_bool there;
    atomic_uint epoch, master; /* the port of the master that it names */
};

struct fixture {
    struct sentinel sentinels[SENTINELS];
    struct tl_redis_url url;
    struct tl_sentinel *under_test;
    int64_t now_ms;
};

/* Reads one command; false at the end. The last word but one is what is asked. */
static bool read_command(FILE *peer, char asked[64])
{
    char line[128], before[128] = "";
    long words;
    if (fgets(line, sizeof(line), peer) == NULL || line[0] != '*')
        return false;
    words = strtol(line + 1, NULL, 10);
    for (long i = 0; i < 2 * words; i++) { /* a length, then the word */
        if (fgets(line, sizeof(line), peer) == NULL)
            return false;
        if (i % 2 == 0)
            continue;
        line[strcspn(line, "\r\n")] = '\0';
        snprintf(asked, 64, "%.63s", before);
        snprintf(before, sizeof(before), "%s", line);
    }
    return true;
}

static void answer(const struct sentinel *self, int peer, const char *asked)
{
    char text[16];
    int length;
    if (strcmp(asked, "GET-MASTER-ADDR-BY-NAME") == 0) {
        length = snprintf(text, sizeof(text), "%u", atomic_load(&self->master));
        dprintf(peer, "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", length, text);
    } else if (strcmp(asked, "MASTER") == 0) {
        length = snprintf(text, sizeof(text), "%u", atomic_load(&self->epoch));
        dprintf(peer, "*2\r\n$12\r\nconfig-epoch\r\n$%d\r\n%s\r\n", length, text);
    } else {
        dprintf(peer, "+OK\r\n");
    }
}

/* One connection at a time. */
static void *serve(void *context)
{
    struct sentinel *self = context;
    int socket;
    while ((socket = accept(self->listener, NULL, NULL)) >= 0) {
        char asked[64];
        FILE *peer = fdopen(socket, "r");
        assert_non_null(peer);
        while (atomic_load(&self->there) && read_command(peer, asked)) {
            answer(self, socket, asked);
        }
        fclose(peer);
    }
    return NULL;
}

static void name_master(struct sentinel *self, unsigned epoch, unsigned master)
{
    atomic_store(&self->epoch, epoch);
    atomic_store(&self->master, master);
}

static int start(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const struct tl_redis_settings settings = {.timeout_ms = 60000};
    assert_non_null(f);
    f->now_ms = 1;
    f->url = (struct tl_redis_url){.n_sentinels = SENTINELS, .master = "line"};
    for (size_t i = 0; i < SENTINELS; i++) {
        struct sentinel *self = &f->sentinels[i];
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof(address);
        self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(self->listener, (struct sockaddr *)&address, length), 0);
        assert_int_equal(listen(self->listener, PEERS_MAX), 0);
        assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &length), 0);
        self->port = ntohs(address.sin_port);
        atomic_store(&self->there, true);
        name_master(self, 3, 7000);
        assert_int_equal(pthread_create(&self->thread, NULL, serve, self), 0);
        snprintf(f->url.sentinels[i].host, sizeof(f->url.sentinels[i].host), "127.0.0.1");
        f->url.sentinels[i].port = self->port;
    }
    f->under_test = tl_sentinel_new(&f->url, &settings, NULL);
    assert_non_null(f->under_test);
    *state = f;
    return 0;
}

static int stop(void **state)
{
    struct fixture *f = *state;
    tl_sentinel_free(&f->under_test);
    for (size_t i = 0; i < SENTINELS; i++) {
        shutdown(f->sentinels[i].listener, SHUT_RDWR);
        close(f->sentinels[i].listener);
        pthread_join(f->sentinels[i].thread, NULL);
    }
    free(f);
    return 0;
}

/* The port of the master that is found; 0: none is. */
static int found(struct fixture *f)
{
    struct tl_redis_address master = {0};
    struct tl_error err = {0};
    return tl_sentinel_find(f->under_test, f->now_ms, &master, &err) ? master.port : 0;
}

static void the_latest_failover_counts(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(found(f), 7000);
    name_master(&f->sentinels[1], 4, 7001);
    while (found(f) != 7001) /* asks the next one first each time */
        ;
    assert_int_equal(found(f), 7001); /* although the others do not know it yet */
    assert_int_equal(found(f), 7001);
}

/* They count their failovers from the beginning again. */
static void sentinels_that_were_set_up_again_count(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(found(f), 7000);
    for (size_t i = 0; i < SENTINELS; i++)
        name_master(&f->sentinels[i], 0, 7002);
    assert_int_equal(found(f), 7002);
}

/* One of them does not come back, and is still named in the address. */
static void most_of_them_are_enough(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(found(f), 7000);
    atomic_store(&f->sentinels[0].there, false);
    name_master(&f->sentinels[1], 0, 7002);
    name_master(&f->sentinels[2], 1, 7003);
    assert_int_equal(found(f), 0); /* they may not have heard of the last failover yet */
    f->now_ms += OLDER_MS - 1;
    assert_int_equal(found(f), 0);
    f->now_ms++;
    assert_int_equal(found(f), 7003);
}

static void one_alone_is_not(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(found(f), 7000);
    atomic_store(&f->sentinels[0].there, false);
    atomic_store(&f->sentinels[1].there, false);
    name_master(&f->sentinels[2], 0, 7002);
    for (size_t i = 0; i < SENTINELS; i++, f->now_ms += 10 * OLDER_MS)
        assert_int_equal(found(f), 0);
    name_master(&f->sentinels[2], 3, 7000);
    assert_int_equal(found(f), 7000);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_latest_failover_counts),
        CASE(sentinels_that_were_set_up_again_count),
        CASE(most_of_them_are_enough),
        CASE(one_alone_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
