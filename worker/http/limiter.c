#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include <sodium.h>

#include "common/base/prefix.h"
#include "worker/http/limiter.h"

enum {
    WAYS = 8, /* slots of a bucket: one cache line */
    BUCKETS = 1 << 17,
    NETWORKS = 1 << 16,
    TAKEN_MAX = BUCKETS * WAYS / 16, /* slots of one network */
    WIDER = 16,                      /* times the allowance: of a /48, of a network */
    NETWORK_IPV4 = 16,               /* bits */
    NETWORK_IPV6 = 32,
};

/* A count is one word, which changes in one step:
 *   slot     time, mark of the prefix, count
 *   network  time, slots taken, count of those without a slot
 * time: when the window ends, in seconds; a word whose window is over counts as empty. The mark is
 * a part of the keyed hash: two prefixes of a bucket have the same once in millions. */
enum {
    FIELD_BITS = 22,
    FIELD_MAX = (1 << FIELD_BITS) - 1,
    TIME_MAX = (1 << (64 - 2 * FIELD_BITS)) - 1,
    LIVE_S = 120, /* no window ends later than so */
};

struct tl_limiter {
    unsigned char key[crypto_shorthash_KEYBYTES]; /* random, so that no client can choose addresses
                                                     that collide */
    _Alignas(64) _Atomic uint64_t slots[BUCKETS][WAYS];
    _Atomic uint64_t networks[NETWORKS];
};

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "counts would need locks");

static const int64_t windows_s[TL_LIMITER_KINDS] = {
    [TL_LIMITER_JOINS] = 60, [TL_LIMITER_SHARES] = 1,   [TL_LIMITER_FORGERIES] = 60,
    [TL_LIMITER_WAITS] = 60, [TL_LIMITER_FEEDBACK] = 1, [TL_LIMITER_SIGN_INS] = 60,
    [TL_LIMITER_PAGES] = 1,  [TL_LIMITER_MOVES] = 60,
};

/* ---- words ---- */

static uint64_t pack(uint64_t time, uint64_t upper, uint64_t count)
{
    return time << 2 * FIELD_BITS | upper << FIELD_BITS | count;
}

static uint64_t time_of(uint64_t word)
{
    return word >> 2 * FIELD_BITS;
}

static uint64_t upper_of(uint64_t word)
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
    uint64_t now;  /* seconds, as in a word */
    uint64_t time; /* when this window ends */
    _Atomic uint64_t *network;
    uint64_t network_most;
};

static bool is_over(const struct call *call, uint64_t word)
{
    uint64_t rest = (time_of(word) - call->now) & TIME_MAX;
    return word == 0 || rest == 0 || rest > LIVE_S;
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
                        .now = (uint64_t)now_s & TIME_MAX,
                        .time = (uint64_t)((now_s / window_s + 1) * window_s) & TIME_MAX,
                        .network_most = most < FIELD_MAX / WIDER ? most * WIDER : FIELD_MAX};
    const struct tl_prefix network = tl_prefix_of(address, NETWORK_IPV4, NETWORK_IPV6);
    call.network = &limiter->networks[hash(&call, &network) % NETWORKS];
    return call;
}

/* The slot of this prefix, or NULL; then *empty is one that is free, or NULL. */
static _Atomic uint64_t *find(const struct call *call, uint64_t hashed, _Atomic uint64_t **empty)
{
    _Atomic uint64_t *bucket = call->limiter->slots[hashed % BUCKETS];
    *empty = NULL;
    for (size_t i = 0; i < WAYS; i++) {
        uint64_t word = atomic_load(&bucket[i]);
        if (is_over(call, word))
            *empty = *empty != NULL ? *empty : &bucket[i];
        else if (upper_of(word) == hashed >> (64 - FIELD_BITS))
            return &bucket[i];
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
        uint64_t taken = (over ? 0 : upper_of(word)) + slots;
        uint64_t shared = (over ? 0 : count_of(word)) + count;
        if (taken > TAKEN_MAX || shared > call->network_most)
            return false;
        if (atomic_compare_exchange_weak(call->network, &word, pack(call->time, taken, shared)))
            return true;
    }
}

/* Counts one in a slot that was found. *lost: it belongs to another prefix by now. */
static bool add_to_slot(const struct call *call, _Atomic uint64_t *slot, uint64_t mark,
                        uint64_t most, bool *lost)
{
    uint64_t word = atomic_load(slot);
    for (;;) {
        *lost = is_over(call, word) || upper_of(word) != mark;
        if (*lost || count_of(word) >= most)
            return false;
        if (atomic_compare_exchange_weak(slot, &word, word + 1))
            return true;
    }
}

static bool count_one(const struct call *call, const struct tl_prefix *prefix, uint64_t most)
{
    const uint64_t hashed = hash(call, prefix), mark = hashed >> (64 - FIELD_BITS);
    bool has_room = false;
    for (;;) {
        _Atomic uint64_t *empty;
        _Atomic uint64_t *slot = find(call, hashed, &empty);
        bool lost;
        if (slot != NULL) {
            bool counted = add_to_slot(call, slot, mark, most, &lost);
            if (counted || !lost)
                return counted;
            continue;
        }
        has_room = has_room || (empty != NULL && add_to_network(call, 1, 0));
        if (!has_room || empty == NULL)
            return add_to_network(call, 0, 1);
        uint64_t word = atomic_load(empty);
        if (is_over(call, word) &&
            atomic_compare_exchange_strong(empty, &word, pack(call->time, mark, 1)))
            return true;
    }
}

static bool may_count(const struct call *call, const struct tl_prefix *prefix, uint64_t most)
{
    _Atomic uint64_t *empty;
    _Atomic uint64_t *slot = find(call, hash(call, prefix), &empty);
    uint64_t network = atomic_load(call->network);
    if (slot != NULL)
        return count_of(atomic_load(slot)) < most;
    return is_over(call, network) || (empty != NULL && upper_of(network) < TAKEN_MAX) ||
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
