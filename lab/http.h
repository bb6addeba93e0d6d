/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests over HTTP to one server, thousands at a time: libcurl on epoll(7), in the caller's
 * thread. Short requests share connections, so many at once; the others wait in their order. A
 * stream has a connection of its own.
 */
#ifndef TL_LAB_HTTP_H
#define TL_LAB_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct tl_http;
struct tl_http_request; /* one that is under way */

enum { TL_HTTP_SHORT_MOST = 64 }; /* short requests under way at once */

struct tl_http_call {
    bool post;          /* else GET */
    bool stream;        /* its bytes go to `bytes` as they come */
    const char *path;   /* begins with '/' */
    const char *bearer; /* for Authorization; NULL: none */
    const char *body;   /* JSON of a POST; NULL: empty */
    void *context;
    /* Bytes of a stream with status 200. False ends it; `done` follows. Must start nothing. */
    bool (*bytes)(void *context, const char *bytes, size_t length);
    /* Called once, unless the request is cancelled. status 0: there was no answer, and body is a
     * sentence why. The body is valid during the call, and holds nothing of a stream with 200. */
    void (*done)(void *context, unsigned status, const char *body, size_t length);
};

/* base: http:// or https://, host and port, without a path; copied. wakes_fd: another descriptor
 * that ends a turn, or -1. NULL on failure. */
struct tl_http *tl_http_new(const char *base, int wakes_fd, struct tl_error *err);
/* Ends all requests without `done`. */
void tl_http_free(struct tl_http **http);

/* Begins a request; what call points to is copied, except context. NULL: out of memory. The request
 * is released before `done` is called. */
struct tl_http_request *tl_http_start(struct tl_http *http, const struct tl_http_call *call);
/* Ends a request. Not to be called from `bytes`. */
void tl_http_cancel(struct tl_http *http, struct tl_http_request **request);

/* Waits for something to happen, at most so long, and handles it. */
bool tl_http_turn(struct tl_http *http, int64_t timeout_ms, struct tl_error *err);

#endif
