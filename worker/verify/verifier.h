/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a challenge service whether tokens are good, in a thread of its own (common/client): the
 * loop gets a verdict for each question and never waits for the service. So many questions are
 * under way at a time, each over a connection that is used again; the others wait in their order.
 */
#ifndef TL_VERIFIER_H
#define TL_VERIFIER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"
#include "common/base/metrics.h"
#include "worker/verify/verdict.h"

struct tl_verifier;

struct tl_verifier_settings {
    const char *url; /* must outlive the verifier, like the rules' texts */
    struct tl_verdict_rules rules;
    uint64_t max_concurrent;
    struct tl_metrics *metrics;
    void *context;
    /* Called by the loop, once for each question that was not cancelled, unless the verifier is
     * freed before. Must not cancel another one. */
    void (*verified)(void *context, uint64_t number, const struct tl_verdict *verdict);
};

/* Everything is copied, and wiped after its use. */
struct tl_question {
    uint64_t number; /* the caller's */
    const char *secret, *token;
    const char *address; /* the visitor's, as text; NULL: is not sent */
    int64_t until_ms;    /* local monotonic time; after it the verdict is TL_VERDICT_TIMED_OUT */
};

struct tl_verifier *tl_verifier_new(uv_loop_t *loop, const struct tl_verifier_settings *settings,
                                    struct tl_error *err);
/* False when out of memory. */
bool tl_verifier_ask(struct tl_verifier *verifier, const struct tl_question *asked);
/* Ends the question, if it has no verdict yet. */
void tl_verifier_cancel(struct tl_verifier *verifier, uint64_t number);
/* The loop must run one more turn to close the handle. */
void tl_verifier_free(struct tl_verifier **verifier);

#endif
