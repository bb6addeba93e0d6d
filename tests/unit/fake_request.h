/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for tests of handlers: plain structs instead of connections. fake_request.c defines the
 * functions of worker/http/request.h for them, so that a test which links it links no HTTP server.
 */
#ifndef FAKE_REQUEST_H
#define FAKE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/http/request.h"

struct fake_value {
    const char *name, *value;
};

/* The test fills in what the client sends, and reads what was answered. */
struct tl_request {
    _Alignas(16) unsigned char visit[2048]; /* tl_request_visit */
    const char *method, *path;
    struct fake_value headers[8], cookies[4], queries[4];
    const char *body; /* NULL: none */
    const char *peer; /* an address; NULL: unknown */
    void *context;
    const struct tl_renderer *renderer;
    const char *shared_origin; /* whose pages may read the answer; NULL: none */

    bool by_origin;
    bool gone; /* the client has closed its end */
    bool held;
    bool taken_over;
    bool cannot_take_over;
    int client; /* the client's end of a connection that was taken over; the test closes it */

    unsigned answers; /* how often it was answered; a socket taken over counts */
    unsigned status;
    char type[64];  /* "": none */
    char cache[64]; /* "": none */
    char text[65536];
    size_t length;
    size_t n_answer_headers;
    struct {
        char name[64], value[4096];
    } answer_headers[TL_ANSWER_HEADERS_MAX];
};

/* The value of a header of the answer, or NULL. */
const char *fake_answer_header(const struct tl_request *request, const char *name);

#endif
