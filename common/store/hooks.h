/*
 * How far hooks were told what happened to a queue: tl:{q}:hooks, which the notifier keeps
 * (docs/contributors/wire-format.md).
 */
#ifndef TL_STORE_HOOKS_H
#define TL_STORE_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

/* One hook on one queue. */
struct tl_hook_state {
    bool watched;        /* a notifier tells it; what follows is known */
    uint64_t behind;     /* entries of the journal that it was not told of yet */
    uint64_t event, nth; /* the last entry that it was told of */
    uint64_t told, lost; /* events, since it is watched */
    int64_t at_ms;       /* of the last request, Unix ms; 0: there was none */
    int64_t since_ms;    /* since when it fails; 0: it does not */
    int64_t status;      /* of its last answer; 0: there was none */
    char problem[160];   /* "": none */
};

bool tl_hook_state_read(struct tl_redis *redis, const struct tl_keys *keys, const char *hook,
                        struct tl_hook_state *state, struct tl_error *err);

/* Puts an event into the journal that only this hook is told of. *event gets its number, or 0 when
 * no notifier watches the queue for the hook. */
bool tl_hook_test(struct tl_redis *redis, const struct tl_keys *keys, const char *hook,
                  uint64_t *event, struct tl_error *err);

#endif
