/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends bodies to hooks over HTTP, many at the same time, without waiting for any (libcurl). It
 * knows no journal: who posts looks later how it went.
 */
#ifndef TL_SENDER_H
#define TL_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct tl_sender;
struct tl_post; /* one request under way, or done */

struct tl_post_request {
    const char *url;
    const char *body; /* JSON; copied */
    size_t length;
    const char *id;        /* header Tellerline-Id */
    const char *signature; /* header Tellerline-Signature */
    int64_t timeout_ms;
};

struct tl_post_result {
    bool accepted; /* a 2xx */
    long status;   /* 0: there was no answer */
    char problem[160];
};

struct tl_sender *tl_sender_new(struct tl_error *err);
/* All posts must have been freed. */
void tl_sender_free(struct tl_sender **sender);

/* Begins to send. NULL with err. */
struct tl_post *tl_sender_post(struct tl_sender *sender, const struct tl_post_request *request,
                               struct tl_error *err);
/* Is it over? Then *result says how. */
bool tl_post_done(const struct tl_post *post, struct tl_post_result *result);
/* Breaks off what is under way. NULL in it is allowed; clears the caller's pointer. */
void tl_post_free(struct tl_post **post);

/* Goes on with all posts; waits up to wait_ms for something to happen. */
void tl_sender_turn(struct tl_sender *sender, int64_t wait_ms);
/* How many posts are under way. */
size_t tl_sender_under_way(const struct tl_sender *sender);

#endif
