/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a challenge service whether tokens are good, in a thread of its own (common/client): the
 * loop looks for the verdict of each question and never waits for the service. A limited
 * number of questions is under way at a time, each over a connection that is used again; the others
 * wait in their order.
 */
#ifndef TL_VERIFIER_H
#define TL_VERIFIER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"
#include "common/base/metrics.h"
#include "common/client/fetcher.h"
#include "worker/verify/verdict.h"

struct tl_verifier;

struct tl_verifier_settings {
    const char *url; /* must outlive the verifier, like the rules' texts */
    struct tl_verdict_rules rules;
    uint64_t max_concurrent;
    struct tl_metrics *metrics;
    void *context;
    void (*ended)(void *context); /* called by the loop: fetches have ended, their askers look */
};

/* Everything is copied, and wiped after its use. */
struct tl_question {
    const char *secret, *token;
    const char *address; /* the visitor's, as text; NULL: is not sent */
    int64_t until_ms;    /* local monotonic time; after it the verdict is TL_VERDICT_TIMED_OUT */
};

struct tl_verifier *tl_verifier_new(uv_loop_t *loop, const struct tl_verifier_settings *settings,
                                    struct tl_error *err);
/* The question under way, which the caller ends in any case (tl_fetch_end). NULL when out of
 * memory.
 */
struct tl_fetch *tl_verifier_ask(struct tl_verifier *verifier, const struct tl_question *asked);
/* What has come of it; call it once. False: it has not ended. */
bool tl_verifier_judge(const struct tl_verifier *verifier, const struct tl_fetch *fetch,
                       struct tl_verdict *verdict);
/* No question may be left. The loop must run one more turn to close the handle. */
void tl_verifier_free(struct tl_verifier **verifier);

#endif
