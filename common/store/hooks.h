/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far hooks were told what happened to a queue: tl:{q}:hooks, which the notifier keeps
 * (docs/contributors/wire-format.md).
 */
#ifndef TL_STORE_HOOKS_H
#define TL_STORE_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/store/reply.h"

/* One hook on one queue. */
struct tl_hook_state {
    const char *hook;   /* its name, borrowed from the reply */
    uint64_t event;     /* of the last entry of the journal that it was told of */
    uint64_t pending;   /* entries that it was not told of yet */
    int64_t oldest_ms;  /* when the first of these happened, Unix ms; -1: none is pending */
    uint64_t told;      /* events, since it is watched */
    uint64_t lost;      /* the same for those that it is never told of */
    bool losing;        /* entries that it was not told of are gone, since its last answer */
    int64_t asked_ms;   /* of the last request, Unix ms; 0: there was none */
    int64_t failing_ms; /* since when it fails; 0: it does not */
    int64_t status;     /* of its last answer; 0: there was none */
    char problem[160];  /* "": none */
};

struct tl_hook_states {
    bool watched; /* a notifier tells the hooks of this queue */
    size_t n;
    struct tl_hook_state list[TL_HOOKS_MAX]; /* sorted by name */
};

/* Reads what hooks_of() of stats.lua returned. What cannot be read of the state of a hook
 * is as if it were not there. False: no memory. */
bool tl_hook_states_read(const struct tl_reply *reply, struct tl_hook_states *states,
                         struct tl_error *err);

/* Puts an event into the journal that only this hook is told of. *event gets its number, or 0 when
 * no notifier watches the queue for the hook. */
bool tl_hook_test(struct tl_redis *redis, const struct tl_keys *keys, const char *hook,
                  uint64_t *event, struct tl_error *err);

#endif
