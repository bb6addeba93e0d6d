/* SPDX-License-Identifier: Apache-2.0 */
/* A webhook as the notifier knows it: its settings, its secrets, and how it answers. A post to
 * it does not wait; its caller looks later how it went. */
#ifndef TL_WEBHOOK_H
#define TL_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/metrics.h"
#include "common/client/fetcher.h"
#include "common/config/config.h"

enum tl_notifier_metric {
    TL_NOTIFIER_TOLD,            /* events */
    TL_NOTIFIER_LOST,            /* events that webhooks were not told of */
    TL_NOTIFIER_POSTS,           /* requests that ended */
    TL_NOTIFIER_FAILED,          /* those that failed */
    TL_NOTIFIER_POST_TIME,       /* of a request */
    TL_NOTIFIER_LOOKS,           /* calls of the function look */
    TL_NOTIFIER_WEBHOOKS,        /* configured */
    TL_NOTIFIER_FAILING,         /* webhooks whose last request failed */
    TL_NOTIFIER_FAILING_SECONDS, /* for how long, the one that fails longest */
    TL_NOTIFIER_METRICS
};

enum {
    TL_WEBHOOK_POSTS_MAX = 8,   /* under way to one webhook, so that a slow one holds up no other */
    TL_WEBHOOK_SECRETS_MAX = 2, /* while one is changed, both sign */
    TL_WEBHOOK_SECRET_MAX = 256,
    TL_DELIVERY_ID_MAX = 256,
};

struct tl_webhook {
    const struct tl_webhook_config *config; /* borrowed */
    struct tl_fetcher *fetcher;             /* borrowed */
    struct tl_metrics *metrics;             /* borrowed */
    size_t n_secrets;
    char secrets[TL_WEBHOOK_SECRETS_MAX][TL_WEBHOOK_SECRET_MAX + 1]; /* the owner wipes them */
    unsigned under_way;                                              /* posts */
    bool failing;
    int64_t failing_since_ms; /* local monotonic */
};

struct tl_post_result {
    bool accepted; /* a 2xx */
    long status;   /* 0: there was no answer */
    char problem[160];
};

/* Reads the secrets of the webhook, one a line, of 16 to 256 characters; a missing file is made
 * with a random one. Each signs the time and the body, so that neither can be changed, nor an old
 * delivery be sent again later. */
bool tl_webhook_load(struct tl_webhook *webhook, struct tl_error *err);

/* Begins to tell the webhook of an array of events (docs/integrators/webhooks.md), which is
 * borrowed; NULL counts as out of memory. id: of the delivery. NULL with err when it cannot even
 * begin. */
struct tl_fetch *tl_webhook_post(struct tl_webhook *webhook, const char *id, json_t *events,
                                 struct tl_error *err);
/* Is the request over? Then frees it, clears the caller's pointer, and says how it went; counts it;
 * logs when the webhook begins or ends to fail. NULL in it: there is none. */
bool tl_webhook_result(struct tl_webhook *webhook, struct tl_fetch **post, int64_t now_ms,
                       struct tl_post_result *result);
/* Breaks off what is under way. NULL in it is allowed; clears the caller's pointer. */
void tl_webhook_break_off(struct tl_webhook *webhook, struct tl_fetch **post);

#endif
