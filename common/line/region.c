/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/line/region.h"

/*
 * The window is an array of `capacity` slots (a power of two, or 0 before first use); slot i stands
 * for the block of seqs [(base + i) * 4096, (base + i + 1) * 4096). A block that holds nothing has
 * no memory of its own; one that holds something also knows how much each eighth of it holds, so
 * that a rank need not count all its bits. Whenever a seq falls outside the window, the window is
 * laid out again around all that is held, with at least an eighth of it free on either side. That
 * one step grows, slides and shrinks it. An eighth of the window must be filled before the next
 * such step, which keeps its amortised cost small.
 */
enum {
    BLOCK_SHIFT = 12,
    BLOCK_BITS = 1 << BLOCK_SHIFT,
    BLOCK_WORDS = BLOCK_BITS / 64,
    EIGHTH_WORDS = BLOCK_WORDS / 8, /* one line of a processor's cache */
    EIGHTH_BITS = BLOCK_BITS / 8,
    CAPACITY_MIN = 16,
};

#define REGION_SHIFT 26

struct block {
    uint64_t words[BLOCK_WORDS];
    uint16_t eighths[8]; /* bits set in each eighth of the words */
};

struct tl_region {
    uint64_t number;
    uint64_t base;         /* block number of slot 0 */
    size_t capacity;       /* slots */
    struct block **blocks; /* per slot; NULL when it holds nothing */
    uint16_t *counts;      /* per slot: seqs held */
    uint64_t *sums;        /* Fenwick tree over counts, 1-based: capacity + 1 entries */
    uint64_t count;
    size_t n_blocks; /* blocks that have memory */
};

/* ---- bits [low, high) of one block; high > low ---- */

static uint64_t word_mask(unsigned word, unsigned low, unsigned high)
{
    uint64_t mask = ~UINT64_C(0);
    if (word == low / 64)
        mask &= ~UINT64_C(0) << (low % 64);
    if (word == (high - 1) / 64)
        mask &= ~UINT64_C(0) >> (63 - (high - 1) % 64);
    return mask;
}

static unsigned bits_set(struct block *block, unsigned low, unsigned high)
{
    unsigned total = 0;
    for (unsigned w = low / 64; w <= (high - 1) / 64; w++) {
        uint64_t fresh = word_mask(w, low, high) & ~block->words[w];
        unsigned added = (unsigned)__builtin_popcountll(fresh);
        block->words[w] |= fresh;
        block->eighths[w / EIGHTH_WORDS] = (uint16_t)(block->eighths[w / EIGHTH_WORDS] + added);
        total += added;
    }
    return total;
}

static unsigned bits_clear(struct block *block, unsigned low, unsigned high)
{
    unsigned total = 0;
    for (unsigned w = low / 64; w <= (high - 1) / 64; w++) {
        uint64_t held = word_mask(w, low, high) & block->words[w];
        unsigned gone = (unsigned)__builtin_popcountll(held);
        block->words[w] &= ~held;
        block->eighths[w / EIGHTH_WORDS] = (uint16_t)(block->eighths[w / EIGHTH_WORDS] - gone);
        total += gone;
    }
    return total;
}

/* How many bits are set below `high`, which is less than BLOCK_BITS and may be 0. */
static unsigned bits_below(const struct block *block, unsigned high)
{
    unsigned n = 0;
    unsigned eighth = high / EIGHTH_BITS;
    for (unsigned i = 0; i < eighth; i++)
        n += block->eighths[i];
    for (unsigned w = eighth * EIGHTH_WORDS; w < high / 64; w++)
        n += (unsigned)__builtin_popcountll(block->words[w]);
    uint64_t below = (UINT64_C(1) << (high % 64)) - 1;
    return n + (unsigned)__builtin_popcountll(block->words[high / 64] & below);
}

/* The position of the set bit with 0-based rank `rank` in the block, which holds more than that. */
static unsigned bits_select(const struct block *block, unsigned rank)
{
    unsigned eighth = 0;
    for (; rank >= block->eighths[eighth]; eighth++)
        rank -= block->eighths[eighth];
    unsigned w = eighth * EIGHTH_WORDS;
    for (;; w++) {
        unsigned held = (unsigned)__builtin_popcountll(block->words[w]);
        if (rank < held)
            break;
        rank -= held;
    }
    uint64_t word = block->words[w];
    while (rank-- > 0)
        word &= word - 1;
    return w * 64 + (unsigned)__builtin_ctzll(word);
}

/* ---- the Fenwick tree over the slots' counts ---- */

static void sums_add(struct tl_region *region, size_t slot, uint64_t delta)
{
    for (size_t i = slot + 1; i <= region->capacity; i += i & (~i + 1))
        region->sums[i] += delta; /* wraps as intended when delta is a negated count */
}

/* Seqs held in slots before `slot`. */
static uint64_t sums_before(const struct tl_region *region, size_t slot)
{
    uint64_t sum = 0;
    for (size_t i = slot; i > 0; i &= i - 1)
        sum += region->sums[i];
    return sum;
}

/* The slot that holds the seq with rank *rank (< count); leaves in *rank its rank within that slot.
 */
static size_t sums_find(const struct tl_region *region, uint64_t *rank)
{
    size_t slot = 0;
    for (size_t step = region->capacity / 2; step > 0; step /= 2) {
        if (region->sums[slot + step] <= *rank) {
            slot += step;
            *rank -= region->sums[slot];
        }
    }
    return slot;
}

static void sums_rebuild(struct tl_region *region)
{
    for (size_t i = 1; i <= region->capacity; i++)
        region->sums[i] = region->counts[i - 1];
    for (size_t i = 1; i <= region->capacity; i++) {
        size_t parent = i + (i & (~i + 1));
        if (parent <= region->capacity)
            region->sums[parent] += region->sums[i];
    }
}

/* ---- the window ---- */

static bool window_covers(const struct tl_region *region, uint64_t first_block, uint64_t last_block)
{
    return first_block >= region->base && last_block < region->base + region->capacity;
}

/* Gives the window the slots [base, base + capacity), which must cover all that is held. */
static bool window_move(struct tl_region *region, uint64_t base, size_t capacity)
{
    struct block **blocks = calloc(capacity, sizeof(struct block *));
    uint16_t *counts = calloc(capacity, sizeof(*counts));
    uint64_t *sums = calloc(capacity + 1, sizeof(*sums));
    if (blocks == NULL || counts == NULL || sums == NULL) {
        free(blocks);
        free(counts);
        free(sums);
        return false;
    }
    for (size_t i = 0; i < region->capacity; i++) {
        if (region->blocks[i] == NULL)
            continue;
        size_t slot = (size_t)(region->base + i - base);
        blocks[slot] = region->blocks[i];
        counts[slot] = region->counts[i];
    }
    free(region->blocks);
    free(region->counts);
    free(region->sums);
    region->base = base;
    region->capacity = capacity;
    region->blocks = blocks;
    region->counts = counts;
    region->sums = sums;
    sums_rebuild(region);
    return true;
}

/* Lays the window out around all that is held and the blocks from first to last. */
static bool window_place(struct tl_region *region, uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < region->capacity; i++) {
        if (region->blocks[i] == NULL)
            continue;
        uint64_t block = region->base + i;
        first = block < first ? block : first;
        last = block > last ? block : last;
    }
    uint64_t needed = last - first + 1;
    size_t capacity = CAPACITY_MIN;
    while (capacity - capacity / 4 < needed)
        capacity *= 2;
    uint64_t slack = (capacity - needed) / 2;
    return window_move(region, first - (slack < first ? slack : first), capacity);
}

static void slot_release(struct tl_region *region, size_t slot)
{
    free(region->blocks[slot]);
    region->blocks[slot] = NULL;
    region->n_blocks--;
}

/* ---- the interface ---- */

uint64_t tl_region_number_of(uint64_t seq)
{
    return seq >> REGION_SHIFT;
}

uint64_t tl_region_last(uint64_t number)
{
    return ((number + 1) << REGION_SHIFT) - 1;
}

struct tl_region *tl_region_new(uint64_t number)
{
    struct tl_region *region = calloc(1, sizeof(*region));
    if (region != NULL)
        region->number = number;
    return region;
}

void tl_region_free(struct tl_region **region)
{
    struct tl_region *old = *region;
    *region = NULL;
    if (old == NULL)
        return;
    for (size_t i = 0; i < old->capacity; i++)
        free(old->blocks[i]);
    free(old->blocks);
    free(old->counts);
    free(old->sums);
    free(old);
}

uint64_t tl_region_number(const struct tl_region *region)
{
    return region->number;
}

bool tl_region_reserve(struct tl_region *region, uint64_t first, uint64_t last)
{
    uint64_t first_block = first >> BLOCK_SHIFT;
    uint64_t last_block = last >> BLOCK_SHIFT;
    if (!window_covers(region, first_block, last_block) &&
        !window_place(region, first_block, last_block))
        return false;
    for (uint64_t block = first_block; block <= last_block; block++) {
        size_t slot = (size_t)(block - region->base);
        if (region->blocks[slot] != NULL)
            continue;
        region->blocks[slot] = calloc(1, sizeof(struct block));
        if (region->blocks[slot] == NULL)
            return false;
        region->n_blocks++;
    }
    return true;
}

void tl_region_release(struct tl_region *region)
{
    for (size_t slot = 0; slot < region->capacity; slot++)
        if (region->blocks[slot] != NULL && region->counts[slot] == 0)
            slot_release(region, slot);
}

uint64_t tl_region_insert(struct tl_region *region, uint64_t first, uint64_t last)
{
    size_t first_slot = (size_t)((first >> BLOCK_SHIFT) - region->base);
    size_t last_slot = (size_t)((last >> BLOCK_SHIFT) - region->base);
    uint64_t total = 0;
    for (size_t slot = first_slot; slot <= last_slot; slot++) {
        unsigned low = slot == first_slot ? (unsigned)(first % BLOCK_BITS) : 0;
        unsigned high = slot == last_slot ? (unsigned)(last % BLOCK_BITS) + 1 : BLOCK_BITS;
        unsigned added = bits_set(region->blocks[slot], low, high);
        if (added == 0)
            continue;
        region->counts[slot] = (uint16_t)(region->counts[slot] + added);
        sums_add(region, slot, added);
        total += added;
    }
    region->count += total;
    return total;
}

uint64_t tl_region_remove(struct tl_region *region, uint64_t first, uint64_t last)
{
    if (region->count == 0)
        return 0;
    uint64_t window_first = region->base << BLOCK_SHIFT;
    uint64_t window_last = window_first + ((uint64_t)region->capacity << BLOCK_SHIFT) - 1;
    first = first > window_first ? first : window_first;
    last = last < window_last ? last : window_last;
    if (first > last)
        return 0;
    size_t first_slot = (size_t)((first >> BLOCK_SHIFT) - region->base);
    size_t last_slot = (size_t)((last >> BLOCK_SHIFT) - region->base);

    uint64_t total = 0;
    for (size_t slot = first_slot; slot <= last_slot; slot++) {
        if (region->blocks[slot] == NULL)
            continue;
        unsigned low = slot == first_slot ? (unsigned)(first % BLOCK_BITS) : 0;
        unsigned high = slot == last_slot ? (unsigned)(last % BLOCK_BITS) + 1 : BLOCK_BITS;
        unsigned gone = bits_clear(region->blocks[slot], low, high);
        if (gone == 0)
            continue;
        region->counts[slot] = (uint16_t)(region->counts[slot] - gone);
        sums_add(region, slot, ~(uint64_t)gone + 1);
        total += gone;
        if (region->counts[slot] == 0)
            slot_release(region, slot);
    }
    region->count -= total;
    return total;
}

/* The slot of seq's block, when that block holds anything. */
static bool slot_of(const struct tl_region *region, uint64_t seq, size_t *slot)
{
    uint64_t block = seq >> BLOCK_SHIFT;
    if (!window_covers(region, block, block))
        return false;
    *slot = (size_t)(block - region->base);
    return region->blocks[*slot] != NULL;
}

bool tl_region_contains(const struct tl_region *region, uint64_t seq)
{
    size_t slot;
    if (!slot_of(region, seq, &slot))
        return false;
    unsigned bit = (unsigned)(seq % BLOCK_BITS);
    return (region->blocks[slot]->words[bit / 64] >> (bit % 64) & 1) != 0;
}

uint64_t tl_region_rank(const struct tl_region *region, uint64_t seq)
{
    uint64_t block = seq >> BLOCK_SHIFT;
    if (block < region->base)
        return 0;
    if (block - region->base >= region->capacity)
        return region->count;
    size_t slot = (size_t)(block - region->base);
    uint64_t rank = sums_before(region, slot);
    if (region->blocks[slot] != NULL)
        rank += bits_below(region->blocks[slot], (unsigned)(seq % BLOCK_BITS));
    return rank;
}

uint64_t tl_region_count(const struct tl_region *region)
{
    return region->count;
}

bool tl_region_select(const struct tl_region *region, uint64_t rank, uint64_t *found)
{
    if (rank >= region->count)
        return false;
    size_t slot = sums_find(region, &rank);
    unsigned bit = bits_select(region->blocks[slot], (unsigned)rank);
    *found = ((region->base + slot) << BLOCK_SHIFT) + bit;
    return true;
}

bool tl_region_next(const struct tl_region *region, uint64_t from, uint64_t *found)
{
    size_t slot;
    if (slot_of(region, from, &slot)) {
        /* The usual step of an iteration stays within one block and needs no tree. */
        const uint64_t *words = region->blocks[slot]->words;
        unsigned bit = (unsigned)(from % BLOCK_BITS);
        unsigned w = bit / 64;
        uint64_t word = words[w] & (~UINT64_C(0) << (bit % 64));
        while (word == 0 && ++w < BLOCK_WORDS)
            word = words[w];
        if (word != 0) {
            *found = (from - bit) + w * UINT64_C(64) + (unsigned)__builtin_ctzll(word);
            return true;
        }
    }
    return tl_region_select(region, tl_region_rank(region, from), found);
}

bool tl_region_small(const struct tl_region *region)
{
    return region->capacity <= CAPACITY_MIN;
}

size_t tl_region_bytes(const struct tl_region *region)
{
    size_t per_slot = sizeof(*region->blocks) + sizeof(*region->counts) + sizeof(*region->sums);
    size_t window = region->capacity == 0 ? 0 : region->capacity * per_slot + sizeof(*region->sums);
    return sizeof(*region) + window + region->n_blocks * sizeof(struct block);
}
