#include <string.h>

#include "common/store/keys.h"
#include "common/store/lease.h"
#include "common/store/reply.h"

#include "generated/store_scripts.h"

void tl_lease_client_init(struct tl_lease_client *client, const char *key_prefix, const char *role,
                          const char *owner, bool fenced)
{
    *client = (struct tl_lease_client){.key_prefix = key_prefix,
                                       .role = role,
                                       .owner = owner,
                                       .fenced = fenced,
                                       .script.source = tl_script_lease};
}

void tl_lease_client_deinit(struct tl_lease_client *client)
{
    tl_args_free(&client->args);
}

/* EVALSHA of the lease script; ttl 0 releases the lease. */
static bool build_script(struct tl_lease_client *client, struct tl_redis *redis, const char *queue,
                         const char *key, int64_t ttl_ms, struct tl_error *err)
{
    struct tl_args *args = &client->args;
    struct tl_keys keys;
    if (!tl_script_begin(redis, &client->script, args, err))
        return false;
    tl_keys_init(&keys, client->key_prefix, queue);
    tl_args_strs(args, "2", keys.names[TL_KEY_STATE], key, client->owner, NULL);
    tl_args_int(args, ttl_ms);
    tl_args_str(args, client->fenced ? "fence" : "");
    return true;
}

/* Loads the script before the pipeline when a step needs it: within the pipeline its reply would be
 * taken for the reply of a step. */
static bool load_script(struct tl_lease_client *client, struct tl_store *store,
                        const struct tl_lease *leases, size_t n, struct tl_error *err)
{
    for (size_t i = 0; i < n && client->script.sha[0] == '\0'; i++) {
        enum tl_lease_step step = leases[i].step;
        if ((step == TL_LEASE_TAKE || step == TL_LEASE_RELEASE) &&
            !tl_script_load(tl_store_of(store, leases[i].queue), &client->script, err))
            return false;
    }
    return true;
}

/* Queues the command of one step. */
static bool ask_one(struct tl_lease_client *client, struct tl_redis *redis,
                    const struct tl_lease *lease, struct tl_error *err)
{
    struct tl_args *args = &client->args;
    char key[TL_KEY_MAX];
    bool ok = true;
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
        tl_args_int(args, TL_LEASE_MS);
        break;
    case TL_LEASE_TAKE:
        ok = build_script(client, redis, lease->queue, key, TL_LEASE_MS, err);
        break;
    case TL_LEASE_RELEASE:
        ok = build_script(client, redis, lease->queue, key, 0, err);
        break;
    }
    return ok && tl_redis_append(redis, args, err);
}

static void note(const struct tl_lease_client *client, struct tl_lease *lease,
                 const struct tl_reply *reply)
{
    int64_t left_ms;
    switch (lease->step) {
    case TL_LEASE_SKIP:
        break;
    case TL_LEASE_CHECK:
        left_ms = tl_reply_integer(reply);
        lease->free = left_ms == -2;
        /* A lease that was set by hand has no time to live, or another one. */
        lease->left_ms = left_ms < 0 || left_ms > TL_LEASE_MS ? TL_LEASE_MS : left_ms;
        break;
    case TL_LEASE_RENEW:
        lease->free = tl_reply_type(reply) == TL_REPLY_NIL;
        lease->held = strcmp(tl_reply_string(reply, NULL), client->owner) == 0;
        break;
    case TL_LEASE_TAKE:
        lease->held = tl_reply_integer(tl_reply_at(reply, 0)) == 1;
        lease->fence = (uint64_t)tl_reply_integer(tl_reply_at(reply, 1));
        lease->left_ms = 0; /* not known for a lease of another replica */
        break;
    case TL_LEASE_RELEASE:
        break;
    }
}

bool tl_lease_ask(struct tl_lease_client *client, struct tl_store *store, struct tl_lease *leases,
                  size_t n, struct tl_error *err)
{
    size_t sent = 0;
    bool ok = load_script(client, store, leases, n, err);
    while (ok && sent < n) {
        ok = ask_one(client, tl_store_of(store, leases[sent].queue), &leases[sent], err);
        sent += ok ? 1 : 0;
    }
    for (size_t i = 0; i < sent; i++) {
        struct tl_lease *lease = &leases[i];
        if (lease->step == TL_LEASE_SKIP)
            continue;
        lease->held = false;
        lease->free = false;
        lease->left_ms = TL_LEASE_MS;
        lease->error.kind = TL_OK;
        struct tl_reply *reply = tl_redis_next(tl_store_of(store, lease->queue), &lease->error);
        if (reply != NULL)
            note(client, lease, reply);
        tl_reply_free(reply);
    }
    return ok;
}
