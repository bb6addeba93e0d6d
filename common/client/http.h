/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests over HTTP to one server, thousands at a time: libcurl on epoll(7), in the caller's
 * thread. A limited number of short requests share connections; the others wait in their order. A
 * stream has a connection of its own.
 */
#ifndef TL_CLIENT_HTTP_H
#define TL_CLIENT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct tl_http;
struct tl_http_request; /* one that is under way */

enum { TL_HTTP_SHORT_MOST = 64 }; /* short requests under way at once */

/* What came of a request. */
struct tl_http_answer {
    unsigned status;  /* 0: there was no answer */
    const char *body; /* ended by a zero; "" for a stream with status 200 */
    size_t length;
    const char *etag;    /* "": none */
    const char *problem; /* why it broke off, or there was no answer; "": it did not */
};

struct tl_http_call {
    const char *method;   /* NULL: GET */
    const char *path;     /* begins with '/' */
    const char *bearer;   /* for Authorization; NULL: none */
    const char *if_match; /* NULL: none */
    const char *body;     /* JSON; NULL: none */
    size_t answer_max;    /* bytes; a longer answer breaks off; 0: 64 KiB */
    bool proxy; /* as the environment says; else only the server that was named is asked */
    /* The bytes of an answer with status 200, as they come, with a connection of its own; NULL: it
     * is no stream. False ends it; `done` follows. Must start nothing. */
    bool (*bytes)(void *context, const char *bytes, size_t length);
    long stalled_s; /* a stream without a byte for this time has ended; 0: it may be silent */
    /* Called once, unless the request is cancelled. The answer is valid during the call. */
    void (*done)(void *context, const struct tl_http_answer *answer);
    void *context; /* of both */
};

/* base: http:// or https://, host and port, without a path; copied. wakes_fd: another descriptor
 * that ends a turn, or -1. NULL on failure. */
struct tl_http *tl_http_new(const char *base, int wakes_fd, struct tl_error *err);
/* Ends all requests without `done`. */
void tl_http_free(struct tl_http **http);

/* Begins a request; what call points to is copied, except context. The request is released before
 * `done` is called. NULL when out of memory. */
struct tl_http_request *tl_http_start(struct tl_http *http, const struct tl_http_call *call);
/* Starts a request, and turns until all are done. */
bool tl_http_ask(struct tl_http *http, const struct tl_http_call *call, struct tl_error *err);
/* Ends a request. Not to be called from `bytes`. */
void tl_http_cancel(struct tl_http *http, struct tl_http_request **request);

/* Waits for something to happen, at most timeout_ms, and handles it. */
bool tl_http_turn(struct tl_http *http, int64_t timeout_ms, struct tl_error *err);

#endif
