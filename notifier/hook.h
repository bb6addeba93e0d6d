/* SPDX-License-Identifier: Apache-2.0 */
/* A hook as the notifier knows it: its settings, its secrets, and how it answers. */
#ifndef TL_HOOK_H
#define TL_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/config/config.h"
#include "notifier/sender.h"
#include "notifier/signature.h"

enum tl_notifier_metric {
    TL_NOTIFIER_TOLD,            /* events */
    TL_NOTIFIER_LOST,            /* events that hooks were not told of */
    TL_NOTIFIER_POSTS,           /* requests that ended */
    TL_NOTIFIER_FAILED,          /* those that failed */
    TL_NOTIFIER_POST_TIME,       /* of a request */
    TL_NOTIFIER_LOOKS,           /* calls of the function look */
    TL_NOTIFIER_HOOKS,           /* configured */
    TL_NOTIFIER_FAILING,         /* hooks whose last request failed */
    TL_NOTIFIER_FAILING_SECONDS, /* for how long, the one that fails longest */
    TL_NOTIFIER_METRICS
};

enum {
    TL_HOOK_POSTS_MAX = 8, /* under way to one hook, so that a slow one holds up no other */
    TL_DELIVERY_ID_MAX = 256,
};

struct tl_hook {
    const struct tl_hook_config *config; /* borrowed */
    struct tl_signer *signer;
    struct tl_sender *sender;   /* borrowed */
    struct tl_metrics *metrics; /* borrowed */
    unsigned under_way;
    bool failing;
    int64_t failing_since_ms; /* local monotonic */
};

/* One request to a hook: begins zeroed. */
struct tl_delivery {
    struct tl_post *post; /* NULL: none is under way */
    int64_t started_us;
};

/* Signs and sends a body. False with err when it cannot even begin. */
bool tl_hook_post(struct tl_hook *hook, struct tl_delivery *delivery, const char *id,
                  const char *body, size_t length, struct tl_error *err);
/* Is the request over? Then frees it and says how it went; counts it; logs when the hook begins or
 * ends to fail. */
bool tl_hook_result(struct tl_hook *hook, struct tl_delivery *delivery, int64_t now_ms,
                    struct tl_post_result *result);
/* Breaks the request off, if there is one. */
void tl_hook_break_off(struct tl_hook *hook, struct tl_delivery *delivery);

#endif
