/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include <sodium.h>

#include "common/base/net.h"
#include "worker/http/limiter.h"

enum {
    WAYS = 8, /* slots of a bucket: one cache line */
    BUCKETS = 1 << 17,
    NETWORKS = 1 << 16,
    TAKEN_MAX = BUCKETS * WAYS / 16, /* slots of one network */
    WIDER = 16,                      /* times the allowance: of a /48, of a network */
    AT_ONCE = 3,                     /* a part of the joins and pages of a minute: one third */
    NETWORK_IPV4 = 16,               /* bits */
    NETWORK_IPV6 = 32,
};

/* A count is one word, which changes in one step:
 *   slot     mark of the prefix, time
 *   network  time, slots taken, count of those without a slot
 * The mark is a part of the keyed hash: two prefixes of a bucket have the same once in millions.
 * The time of a slot, in microseconds, is when its whole allowance will be there again: each one
 * that is counted moves it by what one costs, and none may move it further than the burst from now.
 * The time of a network, in seconds, is when its window ends; then the word counts as empty. */
enum {
    FIELD_BITS = 22,
    FIELD_MAX = (1 << FIELD_BITS) - 1,
    TIME_MAX = (1 << (64 - 2 * FIELD_BITS)) - 1,
    LIVE_S = 120, /* no window ends later than so, and no slot is empty for longer */
};
#define SLOT_TIME_MAX ((UINT64_C(1) << (64 - FIELD_BITS)) - 1)

struct tl_limiter {
    unsigned char key[crypto_shorthash_KEYBYTES]; /* random, so that no client can choose addresses
                                                     that collide */
    _Alignas(64) _Atomic uint64_t slots[BUCKETS][WAYS];
    _Atomic uint64_t networks[NETWORKS];
};

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "counts would need locks");

static const int64_t windows_s[TL_LIMITER_KINDS] = {
    [TL_LIMITER_JOINS] = 60,   [TL_LIMITER_SHARES] = 1,    [TL_LIMITER_INVITES] = 60,
    [TL_LIMITER_PASSES] = 60,  [TL_LIMITER_TOKENS] = 60,   [TL_LIMITER_WAITS] = 60,
    [TL_LIMITER_FEEDBACK] = 1, [TL_LIMITER_SIGN_INS] = 60, [TL_LIMITER_SESSIONS] = 60,
    [TL_LIMITER_REPEATS] = 60, [TL_LIMITER_VIEWS] = 60,    [TL_LIMITER_PAGES] = 1,
    [TL_LIMITER_MOVES] = 60,   [TL_LIMITER_TRAIL] = 1,
};

/* ---- words of networks ---- */

static uint64_t pack(uint64_t time, uint64_t upper, uint64_t count)
{
    return time << 2 * FIELD_BITS | upper << FIELD_BITS | count;
}

static uint64_t taken_of(uint64_t word)
{
    return word >> FIELD_BITS & FIELD_MAX;
}

static uint64_t count_of(uint64_t word)
{
    return word & FIELD_MAX;
}

/* What one call works with. */
struct call {
    struct tl_limiter *limiter;
    enum tl_limiter_kind kind;
    uint64_t now_us; /* as in a slot */
    uint64_t now;    /* seconds, as in a network's word */
    uint64_t time;   /* when this window ends */
    _Atomic uint64_t *network;
    uint64_t network_most;
};

static bool is_over(const struct call *call, uint64_t word)
{
    uint64_t rest = ((word >> 2 * FIELD_BITS) - call->now) & TIME_MAX;
    return word == 0 || rest == 0 || rest > LIVE_S;
}

/* ---- words of slots ---- */

static uint64_t mark_of(uint64_t word)
{
    return word >> (64 - FIELD_BITS);
}

/* How long it takes until the whole allowance is there again. */
static uint64_t rest_us(const struct call *call, uint64_t word)
{
    uint64_t rest = (word - call->now_us) & SLOT_TIME_MAX;
    return rest <= (uint64_t)LIVE_S * 1000000 ? rest : 0;
}

/* What is allowed: what each one costs, and what they may cost at once. */
struct allowance {
    uint64_t cost_us, burst_us;
};

static struct allowance allowance(enum tl_limiter_kind kind, uint64_t most)
{
    const uint64_t window_us = (uint64_t)windows_s[kind] * 1000000;
    bool parted = kind == TL_LIMITER_JOINS || kind == TL_LIMITER_VIEWS;
    uint64_t at_once = parted && most > AT_ONCE ? most / AT_ONCE : most;
    uint64_t evenly = at_once < most ? most - at_once : most;
    uint64_t cost_us = window_us > evenly ? window_us / evenly : 1;
    return (struct allowance){.cost_us = cost_us, .burst_us = at_once * cost_us};
}

static bool fits(const struct call *call, uint64_t word, const struct allowance *allowance)
{
    return rest_us(call, word) + allowance->cost_us <= allowance->burst_us;
}

/* The word with one more. */
static uint64_t counted(const struct call *call, uint64_t word, uint64_t mark,
                        const struct allowance *allowance)
{
    uint64_t time = call->now_us + rest_us(call, word) + allowance->cost_us;
    return mark << (64 - FIELD_BITS) | (time & SLOT_TIME_MAX);
}

/* ---- finding a count ---- */

static uint64_t hash(const struct call *call, const struct tl_prefix *prefix)
{
    unsigned char text[sizeof(*prefix) + 1];
    unsigned char bytes[crypto_shorthash_BYTES];
    uint64_t result;
    memcpy(text, prefix, sizeof(*prefix));
    text[sizeof(*prefix)] = (unsigned char)call->kind;
    crypto_shorthash(bytes, text, sizeof(text), call->limiter->key);
    memcpy(&result, bytes, sizeof(result));
    return result;
}

static struct call begin(struct tl_limiter *limiter, enum tl_limiter_kind kind,
                         const struct tl_address *address, uint64_t most, int64_t now_ms)
{
    int64_t now_s = now_ms / 1000;
    int64_t window_s = windows_s[kind];
    struct call call = {.limiter = limiter,
                        .kind = kind,
                        .now_us = (uint64_t)now_ms * 1000,
                        .now = (uint64_t)now_s & TIME_MAX,
                        .time = (uint64_t)((now_s / window_s + 1) * window_s) & TIME_MAX,
                        .network_most = most < FIELD_MAX / WIDER ? most * WIDER : FIELD_MAX};
    const struct tl_prefix network = tl_prefix_of(address, NETWORK_IPV4, NETWORK_IPV6);
    call.network = &limiter->networks[hash(&call, &network) % NETWORKS];
    return call;
}

/* The slot of this prefix, or NULL; then *empty is one that is free, or NULL. A slot stays its
 * prefix's until another one takes it. */
static _Atomic uint64_t *find(const struct call *call, uint64_t hashed, _Atomic uint64_t **empty)
{
    _Atomic uint64_t *bucket = call->limiter->slots[hashed % BUCKETS];
    *empty = NULL;
    for (size_t i = 0; i < WAYS; i++) {
        uint64_t word = atomic_load(&bucket[i]);
        if (mark_of(word) == mark_of(hashed))
            return &bucket[i];
        if (*empty == NULL && rest_us(call, word) == 0)
            *empty = &bucket[i];
    }
    return NULL;
}

/* ---- counting ---- */

/* Adds to a network's word, unless the field would exceed its limit. */
static bool add_to_network(const struct call *call, uint64_t slots, uint64_t count)
{
    uint64_t word = atomic_load(call->network);
    for (;;) {
        bool over = is_over(call, word);
        uint64_t taken = (over ? 0 : taken_of(word)) + slots;
        uint64_t shared = (over ? 0 : count_of(word)) + count;
        if (taken > TAKEN_MAX || shared > call->network_most)
            return false;
        if (atomic_compare_exchange_weak(call->network, &word, pack(call->time, taken, shared)))
            return true;
    }
}

/* Counts one in a slot that was found. *lost: it belongs to another prefix by now. */
static bool add_to_slot(const struct call *call, _Atomic uint64_t *slot, uint64_t mark,
                        const struct allowance *allowance, bool *lost)
{
    uint64_t word = atomic_load(slot);
    for (;;) {
        *lost = mark_of(word) != mark;
        if (*lost || !fits(call, word, allowance))
            return false;
        if (atomic_compare_exchange_weak(slot, &word, counted(call, word, mark, allowance)))
            return true;
    }
}

static bool count_one(const struct call *call, const struct tl_prefix *prefix, uint64_t most)
{
    const uint64_t hashed = hash(call, prefix), mark = mark_of(hashed);
    const struct allowance allowed = allowance(call->kind, most);
    bool has_room = false;
    for (;;) {
        _Atomic uint64_t *empty;
        _Atomic uint64_t *slot = find(call, hashed, &empty);
        bool lost;
        if (slot != NULL) {
            bool added = add_to_slot(call, slot, mark, &allowed, &lost);
            if (added || !lost)
                return added;
            continue;
        }
        has_room = has_room || (empty != NULL && add_to_network(call, 1, 0));
        if (!has_room || empty == NULL)
            return add_to_network(call, 0, 1);
        uint64_t word = atomic_load(empty);
        if (rest_us(call, word) == 0 &&
            atomic_compare_exchange_strong(empty, &word, counted(call, word, mark, &allowed)))
            return true;
    }
}

static bool may_count(const struct call *call, const struct tl_prefix *prefix, uint64_t most)
{
    const struct allowance allowed = allowance(call->kind, most);
    _Atomic uint64_t *empty;
    _Atomic uint64_t *slot = find(call, hash(call, prefix), &empty);
    uint64_t network = atomic_load(call->network);
    if (slot != NULL)
        return fits(call, atomic_load(slot), &allowed);
    return is_over(call, network) || (empty != NULL && taken_of(network) < TAKEN_MAX) ||
           count_of(network) < call->network_most;
}

bool tl_limiter_within(struct tl_limiter *limiter, enum tl_limiter_kind kind,
                       const struct tl_address *address, uint64_t most, int64_t now_ms)
{
    const struct tl_prefix customer = tl_prefix_of(address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    const struct tl_prefix site = tl_prefix_of(address, TL_PREFIX_IPV4, TL_PREFIX_IPV6_SITE);
    const struct call call = begin(limiter, kind, address, most, now_ms);
    return most == 0 ||
           (may_count(&call, &customer, most) &&
            (tl_prefix_equal(&customer, &site) || may_count(&call, &site, call.network_most)));
}

bool tl_limiter_allow(struct tl_limiter *limiter, enum tl_limiter_kind kind,
                      const struct tl_address *address, uint64_t most, int64_t now_ms)
{
    const struct tl_prefix customer = tl_prefix_of(address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    const struct tl_prefix site = tl_prefix_of(address, TL_PREFIX_IPV4, TL_PREFIX_IPV6_SITE);
    const struct call call = begin(limiter, kind, address, most, now_ms);
    bool has_site = !tl_address_is_ipv4(address);
    if (most == 0)
        return true;
    /* What the customer may not have must not count for the site, and a site that is over its
     * allowance must not fill the table with its customers. */
    return (!has_site || may_count(&call, &site, call.network_most)) &&
           count_one(&call, &customer, most) &&
           (!has_site || count_one(&call, &site, call.network_most));
}

/* ---- life ---- */

struct tl_limiter *tl_limiter_new(struct tl_error *err)
{
    struct tl_limiter *limiter = mmap(NULL, sizeof(*limiter), PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (limiter == MAP_FAILED) {
        tl_error_set(err, TL_ERR_SYSTEM, "cannot map shared memory: %s", strerror(errno));
        return NULL;
    }
    crypto_shorthash_keygen(limiter->key);
    return limiter;
}

void tl_limiter_free(struct tl_limiter **limiter)
{
    if (*limiter != NULL)
        munmap(*limiter, sizeof(**limiter));
    *limiter = NULL;
}
