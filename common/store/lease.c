/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/store/keys.h"
#include "common/store/lease.h"
#include "common/store/library.h"
#include "common/store/reply.h"

/* Queues the command of one step. */
static bool ask_one(struct tl_lease_client *client, struct tl_redis *redis,
                    const struct tl_lease *lease, struct tl_error *err)
{
    struct tl_args *args = &client->args;
    struct tl_keys keys;
    char key[TL_KEY_MAX];
    tl_keys_lease(lease->queue, client->key_prefix, client->role, key);
    tl_args_reset(args);
    switch (lease->step) {
    case TL_LEASE_SKIP:
        return true;
    case TL_LEASE_CHECK:
        tl_args_strs(args, "PTTL", key, NULL);
        break;
    case TL_LEASE_RENEW:
        tl_args_strs(args, "GETEX", key, "PX", NULL);
        tl_args_int(args, client->length_ms);
        break;
    case TL_LEASE_TAKE:
    case TL_LEASE_RELEASE:
        tl_keys_init(&keys, client->key_prefix, lease->queue);
        tl_call_begin(args, TL_FN_LEASE, &keys);
        tl_args_strs(args, client->role, client->owner, NULL);
        tl_args_int(args, lease->step == TL_LEASE_TAKE ? client->length_ms : 0); /* 0: release */
        tl_args_str(args, client->fenced ? "1" : "0");
        tl_args_int(args, TL_LEASE_MAX_MS);
        break;
    }
    return tl_redis_append(redis, args, err);
}

static void note(const struct tl_lease_client *client, struct tl_lease *lease,
                 const struct tl_reply *reply)
{
    int64_t left_ms = tl_reply_integer(reply);
    switch (lease->step) {
    case TL_LEASE_CHECK:
        /* One that ends later than any can, or never, was set before the server's clock went back,
         * or by hand. */
        lease->free = left_ms < 0 || left_ms > TL_LEASE_MAX_MS;
        lease->left_ms = lease->free ? TL_LEASE_MS : left_ms;
        break;
    case TL_LEASE_RENEW:
        lease->free = tl_reply_type(reply) == TL_REPLY_NIL;
        lease->held = strcmp(tl_reply_string(reply, NULL), client->owner) == 0;
        break;
    case TL_LEASE_TAKE:
        lease->held = tl_reply_signed(reply, 0) == 1;
        lease->store_changed = false;
        lease->fence = tl_reply_number(reply, 1);
        lease->left_ms = 0; /* not known for a lease of another replica */
        break;
    case TL_LEASE_SKIP:
    case TL_LEASE_RELEASE:
        break;
    }
}

/* Loads the library where it was missing. */
static bool load_library(struct tl_store *store, const struct tl_lease *leases, size_t n,
                         struct tl_error *err)
{
    bool ok = true;
    for (size_t k = 0; ok && k < tl_store_nodes(store); k++) {
        struct tl_redis *redis = tl_store_node(store, k);
        size_t i = 0;
        while (i < n &&
               (leases[i].step == TL_LEASE_SKIP || leases[i].error.kind != TL_ERR_NOFUNCTION ||
                tl_store_of(store, leases[i].queue) != redis))
            i++;
        ok = i == n || tl_library_load(redis, err);
    }
    return ok;
}

bool tl_lease_ask(struct tl_lease_client *client, struct tl_store *store, struct tl_lease *leases,
                  size_t n, struct tl_error *err)
{
    size_t sent = 0;
    bool ok = true, lacking = false;
    for (; ok && sent < n; sent++) {
        struct tl_lease *lease = &leases[sent];
        struct tl_redis *redis = tl_store_of(store, lease->queue);
        if (lease->step == TL_LEASE_SKIP)
            continue;
        lease->error.kind = TL_OK;
        ok = ask_one(client, redis, lease, &lease->error) || tl_redis_is_node(redis);
        if (!ok && err != NULL)
            *err = lease->error;
    }
    for (size_t i = 0; i < sent; i++) {
        struct tl_lease *lease = &leases[i];
        if (lease->step == TL_LEASE_SKIP)
            continue;
        lease->held = false;
        lease->free = false;
        lease->left_ms = TL_LEASE_MS;
        if (lease->error.kind != TL_OK)
            continue; /* it was not sent */
        struct tl_reply *reply = tl_redis_next(tl_store_of(store, lease->queue), &lease->error);
        if (reply != NULL)
            note(client, lease, reply);
        lacking = lacking || lease->error.kind == TL_ERR_NOFUNCTION;
        tl_reply_free(reply);
    }
    return (!lacking || load_library(store, leases, n, err)) && ok;
}

/* ---- what a round asks ---- */

void tl_lease_plan_round(struct tl_lease *leases, size_t n, const struct tl_lease_round *round,
                         size_t *next)
{
    size_t checks = 0;
    size_t first = *next;
    for (size_t k = 0; k < n; k++) {
        size_t at = (first + k) % n;
        struct tl_lease *lease = &leases[at];
        lease->free = false;
        lease->error.kind = TL_OK;
        lease->step = TL_LEASE_SKIP;
        if (lease->resting && !lease->held) {
            lease->left_ms = TL_LEASE_MS;
        } else if (round->take_all || lease->store_changed) {
            lease->step = TL_LEASE_TAKE;
        } else if (lease->held) {
            lease->step = round->renew ? TL_LEASE_RENEW : TL_LEASE_SKIP;
        } else if (round->check_all || checks < TL_LEASE_CHECKS_PER_ROUND) {
            lease->step = TL_LEASE_CHECK;
            checks++;
            *next = at + 1;
        }
    }
}

bool tl_lease_plan_checks(struct tl_lease *leases, size_t n)
{
    bool any_free = false;
    for (size_t i = 0; i < n; i++)
        any_free = any_free || (leases[i].step == TL_LEASE_CHECK && leases[i].free);
    if (!any_free)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct tl_lease *lease = &leases[i];
        bool skipped = lease->step == TL_LEASE_SKIP && !lease->held && !lease->resting;
        lease->step = skipped ? TL_LEASE_CHECK : TL_LEASE_SKIP;
    }
    return true;
}

bool tl_lease_plan_take(struct tl_lease *leases, size_t n)
{
    bool any_free = false;
    for (size_t i = 0; i < n; i++) {
        leases[i].step = leases[i].free ? TL_LEASE_TAKE : TL_LEASE_SKIP;
        any_free = any_free || leases[i].free;
    }
    return any_free;
}

int64_t tl_lease_plan_length(int64_t length_ms, int64_t turn_ms)
{
    int64_t longest_ms = TL_LEASE_MAX_MS / 2;
    int64_t needed_ms = 2 * (turn_ms < longest_ms ? turn_ms : longest_ms);
    int64_t kept_ms = length_ms - length_ms / 4;
    int64_t most_ms = needed_ms > kept_ms ? needed_ms : kept_ms;
    return most_ms > TL_LEASE_MS ? most_ms : TL_LEASE_MS;
}

int64_t tl_lease_next_check_ms(const struct tl_lease *leases, size_t n, int64_t now_ms)
{
    int64_t left_ms = TL_LEASE_MS;
    for (size_t i = 0; i < n; i++)
        if (!leases[i].held && !leases[i].free && leases[i].left_ms < left_ms)
            left_ms = leases[i].left_ms;
    return now_ms + (left_ms < TL_LEASE_CHECK_MIN_MS ? TL_LEASE_CHECK_MIN_MS : left_ms + 1);
}
