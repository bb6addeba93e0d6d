#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/http/limiter.h"

enum { SLOTS = 1 << 17, ADDRESSES_MAX = SLOTS / 2, MINUTE_MS = 60000 };

struct slot {
    struct tl_address site;
    uint32_t minute; /* to which count belongs; another one means that the slot is free */
    uint32_t count;
};

struct tl_limiter {
    uint64_t per_minute;
    unsigned char key[crypto_shorthash_KEYBYTES]; /* random, so that no client can choose addresses
                                                     that collide */
    uint32_t minute;
    size_t n;
    struct slot *slots;
};

struct tl_limiter *tl_limiter_new(uint64_t per_minute)
{
    struct tl_limiter *limiter = calloc(1, sizeof(*limiter));
    if (limiter == NULL)
        return NULL;
    limiter->per_minute = per_minute;
    crypto_shorthash_keygen(limiter->key);
    if (per_minute > 0 && (limiter->slots = calloc(SLOTS, sizeof(*limiter->slots))) == NULL) {
        free(limiter);
        return NULL;
    }
    return limiter;
}

void tl_limiter_free(struct tl_limiter **limiter)
{
    if (*limiter != NULL)
        free((*limiter)->slots);
    free(*limiter);
    *limiter = NULL;
}

/* The slot of this address, or the free one where it would go. */
static struct slot *slot_of(const struct tl_limiter *limiter, const struct tl_address *site)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t index;
    crypto_shorthash(hash, site->bytes, sizeof(site->bytes), limiter->key);
    memcpy(&index, hash, sizeof(index));
    for (index %= SLOTS;; index = (index + 1) % SLOTS) { /* half of the slots are free */
        struct slot *slot = &limiter->slots[index];
        if (slot->minute != limiter->minute || memcmp(&slot->site, site, sizeof(*site)) == 0)
            return slot;
    }
}

bool tl_limiter_allow(struct tl_limiter *limiter, const struct tl_address *site, int64_t now_ms)
{
    uint32_t minute = (uint32_t)(now_ms / MINUTE_MS) + 1; /* 0 is the empty slot's */
    if (limiter->per_minute == 0)
        return true;
    if (minute != limiter->minute) {
        limiter->minute = minute;
        limiter->n = 0;
    }
    struct slot *slot = slot_of(limiter, site);
    if (slot->minute != minute) {
        if (limiter->n >= ADDRESSES_MAX)
            return true;
        limiter->n++;
        *slot = (struct slot){.site = *site, .minute = minute};
    }
    if (slot->count >= limiter->per_minute)
        return false;
    slot->count++;
    return true;
}
