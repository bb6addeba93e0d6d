#include <stdlib.h>
#include <string.h>

#include "common/line/order.h"

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

#define SPAN_MAX (UINT64_C(1) << 32)
#define SEQ_END  (UINT64_C(1) << 63) /* seqs stay below it, so that no sum of them wraps */

struct block {
    uint64_t words[BLOCK_WORDS];
    uint16_t eighths[8]; /* bits set in each eighth of the words */
};

struct tl_order {
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

static void sums_add(struct tl_order *order, size_t slot, uint64_t delta)
{
    for (size_t i = slot + 1; i <= order->capacity; i += i & (~i + 1))
        order->sums[i] += delta; /* wraps as intended when delta is a negated count */
}

/* Seqs held in slots before `slot`. */
static uint64_t sums_before(const struct tl_order *order, size_t slot)
{
    uint64_t sum = 0;
    for (size_t i = slot; i > 0; i &= i - 1)
        sum += order->sums[i];
    return sum;
}

/* The slot that holds the seq with rank *rank (< count); leaves in *rank its rank within that slot.
 */
static size_t sums_find(const struct tl_order *order, uint64_t *rank)
{
    size_t slot = 0;
    for (size_t step = order->capacity / 2; step > 0; step /= 2) {
        if (order->sums[slot + step] <= *rank) {
            slot += step;
            *rank -= order->sums[slot];
        }
    }
    return slot;
}

static void sums_rebuild(struct tl_order *order)
{
    for (size_t i = 1; i <= order->capacity; i++)
        order->sums[i] = order->counts[i - 1];
    for (size_t i = 1; i <= order->capacity; i++) {
        size_t parent = i + (i & (~i + 1));
        if (parent <= order->capacity)
            order->sums[parent] += order->sums[i];
    }
}

/* ---- the window ---- */

static bool window_covers(const struct tl_order *order, uint64_t first_block, uint64_t last_block)
{
    return first_block >= order->base && last_block < order->base + order->capacity;
}

/* Would everything held and [first, last] together span at most SPAN_MAX seqs? */
static bool span_fits(const struct tl_order *order, uint64_t first, uint64_t last)
{
    uint64_t held;
    if (tl_order_select(order, 0, &held) && held < first)
        first = held;
    if (order->count > 0 && tl_order_select(order, order->count - 1, &held) && held > last)
        last = held;
    return last - first < SPAN_MAX;
}

/* Gives the window the slots [base, base + capacity), which must cover all that is held. */
static bool window_move(struct tl_order *order, uint64_t base, size_t capacity)
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
    for (size_t i = 0; i < order->capacity; i++) {
        if (order->blocks[i] == NULL)
            continue;
        size_t slot = (size_t)(order->base + i - base);
        blocks[slot] = order->blocks[i];
        counts[slot] = order->counts[i];
    }
    free(order->blocks);
    free(order->counts);
    free(order->sums);
    order->base = base;
    order->capacity = capacity;
    order->blocks = blocks;
    order->counts = counts;
    order->sums = sums;
    sums_rebuild(order);
    return true;
}

/* Lays the window out around all that is held and the blocks from first to last. */
static bool window_place(struct tl_order *order, uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < order->capacity; i++) {
        if (order->blocks[i] == NULL)
            continue;
        uint64_t block = order->base + i;
        first = block < first ? block : first;
        last = block > last ? block : last;
    }
    uint64_t needed = last - first + 1;
    size_t capacity = CAPACITY_MIN;
    while (capacity - capacity / 4 < needed)
        capacity *= 2;
    uint64_t slack = (capacity - needed) / 2;
    return window_move(order, first - (slack < first ? slack : first), capacity);
}

static void slot_release(struct tl_order *order, size_t slot)
{
    free(order->blocks[slot]);
    order->blocks[slot] = NULL;
    order->n_blocks--;
}

/* Gives memory to every slot in [first, last] that has none; on failure, takes it back. */
static bool slots_acquire(struct tl_order *order, size_t first, size_t last)
{
    for (size_t slot = first; slot <= last; slot++) {
        if (order->blocks[slot] != NULL)
            continue;
        order->blocks[slot] = calloc(1, sizeof(struct block));
        if (order->blocks[slot] != NULL) {
            order->n_blocks++;
            continue;
        }
        for (size_t i = first; i < slot; i++) {
            if (order->counts[i] == 0)
                slot_release(order, i);
        }
        return false;
    }
    return true;
}

/* ---- the interface ---- */

struct tl_order *tl_order_new(void)
{
    return calloc(1, sizeof(struct tl_order));
}

void tl_order_clear(struct tl_order *order)
{
    for (size_t i = 0; i < order->capacity; i++)
        free(order->blocks[i]);
    free(order->blocks);
    free(order->counts);
    free(order->sums);
    memset(order, 0, sizeof(*order));
}

void tl_order_free(struct tl_order **order)
{
    if (*order == NULL)
        return;
    tl_order_clear(*order);
    free(*order);
    *order = NULL;
}

int64_t tl_order_insert(struct tl_order *order, uint64_t first, uint64_t count)
{
    if (count == 0)
        return 0;
    if (count > SPAN_MAX || first > SEQ_END - count)
        return -1;
    uint64_t last = first + count - 1;
    uint64_t first_block = first >> BLOCK_SHIFT;
    uint64_t last_block = last >> BLOCK_SHIFT;
    bool covered = window_covers(order, first_block, last_block);
    /* A window no longer than the span allowed cannot break it. */
    if ((!covered || order->capacity > SPAN_MAX / BLOCK_BITS) && !span_fits(order, first, last))
        return -1;
    if (!covered && !window_place(order, first_block, last_block))
        return -1;
    size_t first_slot = (size_t)(first_block - order->base);
    size_t last_slot = (size_t)(last_block - order->base);
    if (!slots_acquire(order, first_slot, last_slot))
        return -1;

    uint64_t total = 0;
    for (size_t slot = first_slot; slot <= last_slot; slot++) {
        unsigned low = slot == first_slot ? (unsigned)(first % BLOCK_BITS) : 0;
        unsigned high = slot == last_slot ? (unsigned)(last % BLOCK_BITS) + 1 : BLOCK_BITS;
        unsigned added = bits_set(order->blocks[slot], low, high);
        if (added == 0)
            continue;
        order->counts[slot] = (uint16_t)(order->counts[slot] + added);
        sums_add(order, slot, added);
        total += added;
    }
    order->count += total;
    return (int64_t)total;
}

uint64_t tl_order_remove(struct tl_order *order, uint64_t first, uint64_t count)
{
    if (count == 0 || order->count == 0)
        return 0;
    uint64_t last = count - 1 > UINT64_MAX - first ? UINT64_MAX : first + count - 1;
    uint64_t window_first = order->base << BLOCK_SHIFT;
    uint64_t window_last = window_first + ((uint64_t)order->capacity << BLOCK_SHIFT) - 1;
    first = first > window_first ? first : window_first;
    last = last < window_last ? last : window_last;
    if (first > last)
        return 0;
    size_t first_slot = (size_t)((first >> BLOCK_SHIFT) - order->base);
    size_t last_slot = (size_t)((last >> BLOCK_SHIFT) - order->base);

    uint64_t total = 0;
    for (size_t slot = first_slot; slot <= last_slot; slot++) {
        if (order->blocks[slot] == NULL)
            continue;
        unsigned low = slot == first_slot ? (unsigned)(first % BLOCK_BITS) : 0;
        unsigned high = slot == last_slot ? (unsigned)(last % BLOCK_BITS) + 1 : BLOCK_BITS;
        unsigned gone = bits_clear(order->blocks[slot], low, high);
        if (gone == 0)
            continue;
        order->counts[slot] = (uint16_t)(order->counts[slot] - gone);
        sums_add(order, slot, ~(uint64_t)gone + 1);
        total += gone;
        if (order->counts[slot] == 0)
            slot_release(order, slot);
    }
    order->count -= total;
    if (order->count == 0 && order->capacity > CAPACITY_MIN)
        tl_order_clear(order);
    return total;
}

/* The slot of seq's block, when that block holds anything. */
static bool slot_of(const struct tl_order *order, uint64_t seq, size_t *slot)
{
    uint64_t block = seq >> BLOCK_SHIFT;
    if (!window_covers(order, block, block))
        return false;
    *slot = (size_t)(block - order->base);
    return order->blocks[*slot] != NULL;
}

bool tl_order_contains(const struct tl_order *order, uint64_t seq)
{
    size_t slot;
    if (!slot_of(order, seq, &slot))
        return false;
    unsigned bit = (unsigned)(seq % BLOCK_BITS);
    return (order->blocks[slot]->words[bit / 64] >> (bit % 64) & 1) != 0;
}

uint64_t tl_order_rank(const struct tl_order *order, uint64_t seq)
{
    uint64_t block = seq >> BLOCK_SHIFT;
    if (block < order->base)
        return 0;
    if (block - order->base >= order->capacity)
        return order->count;
    size_t slot = (size_t)(block - order->base);
    uint64_t rank = sums_before(order, slot);
    if (order->blocks[slot] != NULL)
        rank += bits_below(order->blocks[slot], (unsigned)(seq % BLOCK_BITS));
    return rank;
}

uint64_t tl_order_count(const struct tl_order *order)
{
    return order->count;
}

bool tl_order_select(const struct tl_order *order, uint64_t rank, uint64_t *found)
{
    if (rank >= order->count)
        return false;
    size_t slot = sums_find(order, &rank);
    unsigned bit = bits_select(order->blocks[slot], (unsigned)rank);
    *found = ((order->base + slot) << BLOCK_SHIFT) + bit;
    return true;
}

bool tl_order_next(const struct tl_order *order, uint64_t from, uint64_t *found)
{
    size_t slot;
    if (slot_of(order, from, &slot)) {
        /* The usual step of an iteration stays within one block and needs no tree. */
        const uint64_t *words = order->blocks[slot]->words;
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
    return tl_order_select(order, tl_order_rank(order, from), found);
}

size_t tl_order_bytes(const struct tl_order *order)
{
    size_t per_slot = sizeof(*order->blocks) + sizeof(*order->counts) + sizeof(*order->sums);
    size_t window = order->capacity == 0 ? 0 : order->capacity * per_slot + sizeof(*order->sums);
    return sizeof(*order) + window + order->n_blocks * sizeof(struct block);
}
