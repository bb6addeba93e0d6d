/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <sodium.h>

#include "common/base/net.h"
#include "worker/http/sharing.h"

enum {
    BUCKETS = 1 << 14,
    WAYS = 4,    /* sessions of a bucket */
    CLIENTS = 3, /* remembered of a session */
    NETWORK_IPV4 = 24,
    NETWORK_IPV6 = 48,
    /* Milliseconds. */
    FORGET = 600000, /* a client not seen for this long is gone */
    WINDOW = 60000,  /* in which returns count */
    BUSY = 10000,    /* a client seen so lately is still there */
    FAST_WINDOW = 10000,
    RETURNS = 4,        /* make a session a shared one */
    FAST_CHECKS = 1000, /* a page of a hundred files, every second */
};

/* Times are the low 32 bits of milliseconds, which repeat after 49 days: since() compares them. */

/* Hashes; 0: none. */
struct client {
    uint32_t agent, ipv4, ipv6;
    uint32_t first, last; /* when it was seen; last 0: a free entry */
};

struct session {
    uint32_t key, check; /* two halves of the hash of queue and place */
    uint32_t last;
    uint32_t current; /* the client that was seen last */
    uint32_t window, returns;
    uint32_t shared; /* when it was last shared; 0: never */
    uint32_t fast_window, checks;
    struct client clients[CLIENTS];
};

enum { WORDS = sizeof(struct session) / sizeof(uint32_t) };

struct tl_sharing {
    unsigned char key[crypto_shorthash_KEYBYTES];
    _Atomic uint32_t words[BUCKETS][WAYS][WORDS];
};

struct tl_sharing *tl_sharing_new(struct tl_error *err)
{
    struct tl_sharing *sharing =
        mmap(NULL, sizeof(*sharing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sharing == MAP_FAILED) {
        tl_error_set(err, TL_ERR_SYSTEM, "no shared memory for clients of sessions: %s",
                     strerror(errno));
        return NULL;
    }
    crypto_shorthash_keygen(sharing->key);
    return sharing;
}

void tl_sharing_free(struct tl_sharing **sharing)
{
    if (*sharing != NULL)
        munmap(*sharing, sizeof(**sharing));
    *sharing = NULL;
}

static uint64_t hash(const struct tl_sharing *sharing, const void *bytes, size_t length)
{
    unsigned char text[crypto_shorthash_BYTES];
    uint64_t number;
    crypto_shorthash(text, bytes, length, sharing->key);
    memcpy(&number, text, sizeof(number));
    return number;
}

static uint32_t hash_32(const struct tl_sharing *sharing, const void *bytes, size_t length)
{
    uint32_t number = (uint32_t)hash(sharing, bytes, length);
    return number != 0 ? number : 1;
}

/* How long after the other; 0 if before it: another process may have seen the session later. */
static uint32_t since(uint32_t now, uint32_t then)
{
    uint32_t difference = now - then;
    return difference <= INT32_MAX ? difference : 0;
}

/* ---- the table ---- */

static uint32_t word(_Atomic uint32_t words[WORDS], size_t offset)
{
    return atomic_load_explicit(&words[offset / sizeof(uint32_t)], memory_order_relaxed);
}

static void load(_Atomic uint32_t words[WORDS], struct session *session)
{
    uint32_t copy[WORDS] = {0};
    for (size_t i = 0; i < WORDS; i++)
        copy[i] = atomic_load_explicit(&words[i], memory_order_relaxed);
    memcpy(session, copy, sizeof(*session));
}

static void store(_Atomic uint32_t words[WORDS], const struct session *session)
{
    uint32_t copy[WORDS];
    memcpy(copy, session, sizeof(copy));
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&words[i], copy[i], memory_order_relaxed);
}

/* Finds the session, or makes it in the place of the one that was not checked for the longest time.
 * Returns where it is. */
static _Atomic uint32_t *find(struct tl_sharing *sharing, uint64_t hashed, uint32_t now,
                              struct session *session)
{
    _Atomic uint32_t(*bucket)[WORDS] = sharing->words[hashed % BUCKETS];
    const struct session fresh = {.key = (uint32_t)hashed,
                                  .check = (uint32_t)(hashed >> 32),
                                  .window = now,
                                  .fast_window = now};
    size_t oldest = 0;
    uint32_t longest = 0;
    for (size_t i = 0; i < WAYS; i++) {
        uint32_t last = word(bucket[i], offsetof(struct session, last));
        if (last != 0 && word(bucket[i], offsetof(struct session, key)) == fresh.key &&
            word(bucket[i], offsetof(struct session, check)) == fresh.check) {
            load(bucket[i], session);
            return bucket[i];
        }
        uint32_t quiet = last != 0 ? since(now, last) : UINT32_MAX;
        if (quiet > longest) {
            oldest = i;
            longest = quiet;
        }
    }
    *session = fresh;
    return bucket[oldest];
}

/* ---- clients ---- */

static struct client make_client(const struct tl_sharing *sharing, const struct tl_address *address,
                                 const char *agent, uint32_t now)
{
    const struct tl_prefix network = tl_prefix_of(address, NETWORK_IPV4, NETWORK_IPV6);
    uint32_t hashed = hash_32(sharing, &network, sizeof(network));
    bool ipv4 = tl_address_is_ipv4(address);
    if (agent == NULL)
        agent = "";
    return (struct client){.agent = hash_32(sharing, agent, strlen(agent)),
                           .ipv4 = ipv4 ? hashed : 0,
                           .ipv6 = ipv4 ? 0 : hashed,
                           .first = now,
                           .last = now};
}

static bool is_same(const struct client *known, const struct client *seen)
{
    if ((seen->ipv4 != 0 && seen->ipv4 == known->ipv4) ||
        (seen->ipv6 != 0 && seen->ipv6 == known->ipv6))
        return true;
    return seen->agent == known->agent && (seen->ipv4 != 0 ? known->ipv4 == 0 : known->ipv6 == 0);
}

/* Where a client that is new goes: in the place of the one not seen for the longest time, but not
 * of the first one, whom others must not push out. */
static uint32_t free_client(const struct session *session)
{
    const struct client *clients = session->clients;
    uint32_t first = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (clients[i].last == 0)
            return i;
        if (since(clients[first].first, clients[i].first) > 0)
            first = i;
    }
    uint32_t place = first == 0 ? 1 : 0;
    for (uint32_t i = 0; i < CLIENTS; i++)
        if (i != first && since(clients[place].last, clients[i].last) > 0)
            place = i;
    return place;
}

/* Others may have come in the same millisecond: this one came after them. */
static void come_later(const struct session *session, struct client *seen)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct client *client = &session->clients[i];
        if (client->last != 0 && since(client->first + 1, seen->first) > 0)
            seen->first = client->first + 1;
    }
}

/* The index of this client among those of the session. *known: it was there before. */
static uint32_t find_client(struct session *session, struct client *seen, bool *known)
{
    bool moved = false;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct client *client = &session->clients[i];
        uint32_t quiet = since(seen->last, client->last);
        if (client->last != 0 && quiet > FORGET)
            *client = (struct client){0};
        *known = client->last != 0 && is_same(client, seen);
        if (*known)
            return i;
        /* A visitor who has changed the network came first all the same. */
        if (client->last != 0 && client->agent == seen->agent && quiet > BUSY &&
            since(seen->first, client->first) > 0) {
            seen->first = client->first;
            moved = true;
        }
    }
    if (!moved)
        come_later(session, seen);
    uint32_t place = free_client(session);
    session->clients[place] = *seen;
    return place;
}

static bool is_newer(const struct session *session, uint32_t index)
{
    const struct client *own = &session->clients[index];
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct client *client = &session->clients[i];
        if (i != index && client->last != 0 && since(own->first, client->first) > 0)
            return true;
    }
    return false;
}

/* Counts a check; true when there are too many for a person. */
static bool count_check(struct session *session, uint32_t now)
{
    if (since(now, session->fast_window) > FAST_WINDOW) {
        session->fast_window = now;
        session->checks = 0;
    }
    return ++session->checks == FAST_CHECKS;
}

struct tl_sharing_sight tl_sharing_see(struct tl_sharing *sharing, const char *queue,
                                       uint64_t generation, uint64_t place,
                                       const struct tl_address *address, const char *agent,
                                       int64_t now_ms)
{
    struct tl_sharing_sight sight = {0};
    struct session session;
    const uint64_t name[3] = {hash(sharing, queue, strlen(queue)), generation, place};
    uint32_t now = (uint32_t)now_ms | 1; /* 0 is a free entry's */
    bool known;
    _Atomic uint32_t *words = find(sharing, hash(sharing, name, sizeof(name)), now, &session);
    struct client seen = make_client(sharing, address, agent, now);
    uint32_t index = find_client(&session, &seen, &known);
    struct client *client = &session.clients[index];
    client->last = now;
    client->ipv4 = seen.ipv4 != 0 ? seen.ipv4 : client->ipv4;
    client->ipv6 = seen.ipv6 != 0 ? seen.ipv6 : client->ipv6;
    if (since(now, session.window) > WINDOW) {
        session.window = now;
        session.returns = 0;
    }
    if (known && session.current != index && ++session.returns >= RETURNS) {
        sight.noticed = session.returns == RETURNS;
        session.shared = now;
    }
    session.current = index;
    session.last = now;
    sight.shared = session.shared != 0 && since(now, session.shared) < WINDOW;
    sight.newer = is_newer(&session, index);
    sight.fast = count_check(&session, now);
    store(words, &session);
    return sight;
}
