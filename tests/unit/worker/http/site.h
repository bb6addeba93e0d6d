/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server on a loop of the test's own, with clients on the loopback interface.
 */
#ifndef TEST_HTTP_SITE_H
#define TEST_HTTP_SITE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "worker/http/server.h"
#include "worker/report/worker_metrics.h"

enum {
    LIMIT = 16,
    EACH = 20,
    PROXY = INADDR_LOOPBACK + 8,
    MAX_BODY = 64,
    VISIT_SIZE = 40,
    LARGE = 8 * 1024 * 1024, /* more than the kernel keeps */
    FEW = 64 * 1024,         /* of it, in a client's kernel */
    IDLE_MS = 60000,
    PATIENCE_MS = 120000
};

struct site {
    uv_loop_t loop;
    struct tl_server *server;
    int listener;
    uint16_t port;
    bool hold, take_over, large; /* what the handler does */
    struct tl_request *held;
    int taken; /* a socket taken over; -1 */
    unsigned handled, too_large;
    char problem[80];
    struct tl_networks *proxies;
    struct tl_metrics *metrics;
    /* Of the server, as they were after the last turn: connections, and answers that are no
     * refusals. */
    unsigned accepted, crowded_out, refused_full, refused_address, answered;
    char method[16], path[64], body[256], header[64], query[64], cookie[64], id[80], peer[64];
};

/* cmocka's setup and teardown: *state is a site that serves. */
int site_setup(void **state);
int site_teardown(void **state);

/* A client from this address. keeps: so much of what is sent to it, before it reads; 0: as its
 * kernel likes. */
int site_client_that_keeps(const struct site *site, in_addr_t host, int keeps);
int site_client_from(const struct site *site, in_addr_t host);
int site_client(const struct site *site);
void site_say(int fd, const char *text);
void site_answer(struct tl_request *request, unsigned status, const char *text);

void site_turn(struct site *site);
/* Lets the server finish what it has begun. */
void site_settle(struct site *site);
/* Lets the server work until the client has got the text (true), or its connection is closed. */
bool site_hears(struct site *site, int fd, const char *expected, char *text, size_t size);
/* Lets the server work until this counter has the value. */
void site_until(struct site *site, const unsigned *counter, unsigned value);

#endif
