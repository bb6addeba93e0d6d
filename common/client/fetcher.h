/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests that a program makes itself, many at a time (libcurl). A thread of its own sends
 * them, so that no one waits for an answer, nor for TLS: reading the certificates of the system
 * alone takes 45 ms for each connection.
 *
 * Only the address that was given is asked: redirects are not followed, and a proxy of the
 * environment is used for other machines only. Connections are kept and used again.
 *
 * One thread makes and ends all fetches of a fetcher.
 */
#ifndef TL_FETCHER_H
#define TL_FETCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct tl_fetcher;
struct tl_fetch; /* one request with its answer */

/* Everything is copied. */
struct tl_fetch_request {
    const char *url;
    int64_t timeout_ms; /* from now on, with the time it waits for others */
    const char *body;   /* NULL: it is a GET, else a POST. Wiped after its use */
    size_t length;
    const char *const *headers; /* lines, the last NULL, beside those of libcurl; NULL: none */
    size_t answer_max;          /* bytes; a longer answer is cut off there */
    bool fails_on_error;        /* a status of 400 or more is a failure, whose text is not read */
};

enum tl_fetch_end {
    TL_FETCH_ANSWERED,
    TL_FETCH_CUT_OFF, /* likewise, with the beginning of an answer that is too long */
    TL_FETCH_FAILED,
    TL_FETCH_LATE,   /* not all of the answer came in time */
    TL_FETCH_UNSENT, /* likewise: too many were before it */
};

/* What came of it. */
struct tl_fetched {
    enum tl_fetch_end end;
    long status;      /* 0: there was no answer */
    const char *text; /* terminated with a zero, as far as it came */
    size_t length;
    int64_t took_us;     /* since it was sent */
    const char *problem; /* a text, of libcurl's mostly; "" for ANSWERED */
};

/* at_once: the most under way at a time; the others wait in their order. Signals must be blocked
 * already. NULL on failure. */
struct tl_fetcher *tl_fetcher_new(size_t at_once, struct tl_error *err);
/* No fetch may be left. */
void tl_fetcher_free(struct tl_fetcher **fetcher); /* NULL allowed */
/* A descriptor that is readable when fetches have ended since tl_fetcher_seen. */
int tl_fetcher_fd(const struct tl_fetcher *fetcher);
void tl_fetcher_seen(struct tl_fetcher *fetcher);

/* NULL when out of memory. */
struct tl_fetch *tl_fetch_begin(struct tl_fetcher *fetcher, const struct tl_fetch_request *request);
/* NULL while it has not ended; valid until tl_fetch_end. NULL allowed. */
const struct tl_fetched *tl_fetch_result(const struct tl_fetch *fetch);
/* Frees it, breaking off what is under way. NULL in it is allowed; clears the caller's pointer. */
void tl_fetch_end(struct tl_fetch **fetch);

#endif
