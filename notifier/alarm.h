/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells webhooks that the store cannot be reached, and that it is back. That is in no journal,
 * because the journal is in the store: it is kept in memory, and a process that ends forgets it.
 */
#ifndef TL_ALARM_H
#define TL_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "notifier/webhook.h"

enum { TL_ALARM_LOST_MS = 3000 }; /* a store that is away for less is not told of */

/* What one webhook is still to be told. */
struct tl_alarm {
    struct tl_webhook *webhook; /* borrowed */
    int64_t lost_ms, back_ms;   /* Unix ms; 0: nothing to tell */
    bool sent_lost, sent_back;  /* of the request under way */
    struct tl_fetch *post;      /* NULL: none */
    struct tl_backoff backoff;
    int64_t due_ms; /* local monotonic */
};

/* Is the store away, as the notifier knows it? Begins zeroed. */
struct tl_store_watch {
    int64_t failed_ms; /* local monotonic: since then; 0: it answers */
    bool told;
};

void tl_alarm_init(struct tl_alarm *alarm, struct tl_webhook *webhook);
void tl_alarm_deinit(struct tl_alarm *alarm);

/* Notes after each turn whether the store answered. `holds`: this process serves queues, so that
 * not every replica tells of it. */
void tl_alarm_watch(struct tl_alarm *alarms, size_t n, struct tl_store_watch *watch, bool answered,
                    bool holds, int64_t now_ms);
/* Sends what is due. `owner` names this process, `kept_ms` says how long a webhook is tried again.
 */
void tl_alarm_serve(struct tl_alarm *alarm, const char *owner, int64_t kept_ms, int64_t now_ms);

#endif
