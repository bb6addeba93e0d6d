/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the order index costs per operation, beside the two plain ways to do the same job: a sorted
 * array of seqs (rank by binary search, removal by memmove) and a bitmap (rank by counting from the
 * front). All three do the same operations in the same run, so the figures compare whatever the
 * machine.
 *
 *     order_bench            1,000,000 and 10,000,000 places
 *     order_bench 250000     as many as given
 *     order_bench --json     as JSON lines for bench/run, which says with BENCH_QUICK=1 to leave
 *                            out the larger size
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/line/order.h"

#include "emit.h"

enum {
    OPERATIONS = 1000000,
    SLOW_OPERATIONS = 2000, /* where one operation reads or moves the whole line */
};

static bool json;
static uint64_t checksum; /* of every answer, printed, so that no work can be left out */

static uint64_t random_next(uint64_t *state)
{
    /* xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators",
     * 2016) */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

/* One contender: places are 1 to n, inserted in order as visitors join. */
struct contender {
    const char *name;
    void *(*make)(uint64_t n);
    void (*insert)(void *state, uint64_t seq);
    uint64_t (*rank)(void *state, uint64_t seq);
    uint64_t (*remove)(void *state, uint64_t seq);
    size_t (*bytes)(void *state);
    void (*drop)(void *state);
    size_t ranks;
    size_t removes;
    bool ours;
};

static void *checked(void *memory)
{
    if (memory == NULL) {
        fputs("order_bench: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* ---- the order index ---- */

static void *index_make(uint64_t n)
{
    (void)n;
    return checked(calloc(1, sizeof(struct tl_order)));
}

static void index_insert(void *state, uint64_t seq)
{
    if (tl_order_insert(state, seq, 1) != 1)
        checked(NULL);
}

static uint64_t index_rank(void *state, uint64_t seq)
{
    return tl_order_rank(state, seq);
}

static uint64_t index_remove(void *state, uint64_t seq)
{
    return tl_order_remove(state, seq, 1);
}

static size_t index_bytes(void *state)
{
    return tl_order_bytes(state);
}

static void index_drop(void *state)
{
    tl_order_clear(state);
    free(state);
}

/* ---- a sorted array ---- */

struct array {
    size_t count;
    uint64_t seqs[];
};

static void *array_make(uint64_t n)
{
    return checked(calloc(1, sizeof(struct array) + n * sizeof(uint64_t)));
}

static void array_insert(void *state, uint64_t seq)
{
    struct array *array = state;
    array->seqs[array->count++] = seq;
}

static uint64_t array_rank(void *state, uint64_t seq)
{
    const struct array *array = state;
    size_t low = 0;
    size_t high = array->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (array->seqs[middle] < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t array_remove(void *state, uint64_t seq)
{
    struct array *array = state;
    size_t at = array_rank(state, seq);
    if (at == array->count || array->seqs[at] != seq)
        return 0;
    array->count--;
    memmove(&array->seqs[at], &array->seqs[at + 1], (array->count - at) * sizeof(uint64_t));
    return 1;
}

static size_t array_bytes(void *state)
{
    const struct array *array = state;
    return sizeof(*array) + array->count * sizeof(uint64_t);
}

/* ---- a bitmap ---- */

struct bitmap {
    size_t words;
    uint64_t bits[];
};

static void *bitmap_make(uint64_t n)
{
    size_t words = n / 64 + 1;
    struct bitmap *bitmap = checked(calloc(1, sizeof(*bitmap) + words * sizeof(uint64_t)));
    bitmap->words = words;
    return bitmap;
}

static void bitmap_insert(void *state, uint64_t seq)
{
    struct bitmap *bitmap = state;
    bitmap->bits[seq / 64] |= UINT64_C(1) << (seq % 64);
}

static uint64_t bitmap_rank(void *state, uint64_t seq)
{
    const struct bitmap *bitmap = state;
    uint64_t rank = 0;
    for (size_t w = 0; w < seq / 64; w++)
        rank += (uint64_t)__builtin_popcountll(bitmap->bits[w]);
    uint64_t below = (UINT64_C(1) << (seq % 64)) - 1;
    return rank + (uint64_t)__builtin_popcountll(bitmap->bits[seq / 64] & below);
}

static uint64_t bitmap_remove(void *state, uint64_t seq)
{
    struct bitmap *bitmap = state;
    uint64_t bit = UINT64_C(1) << (seq % 64);
    bool held = (bitmap->bits[seq / 64] & bit) != 0;
    bitmap->bits[seq / 64] &= ~bit;
    return held;
}

static size_t bitmap_bytes(void *state)
{
    const struct bitmap *bitmap = state;
    return sizeof(*bitmap) + bitmap->words * sizeof(uint64_t);
}

/* ---- measuring ---- */

static double per_operation(int64_t since_us, size_t operations)
{
    return 1000.0 * (double)(tl_clock_us() - since_us) / (double)operations;
}

static void print(const struct contender *who, uint64_t n, double insert, double rank,
                  double removal, double bytes)
{
    if (!json) {
        printf("%-14s %10" PRIu64 " %10.1f %12.1f %12.1f %12.2f\n", who->name, n, insert, rank,
               removal, bytes / 1e6);
        return;
    }
    const struct {
        const char *metric, *unit;
        double value;
    } figures[] = {{"look-up of a position", "ns", rank},
                   {"removal from anywhere", "ns", removal},
                   {"join at the end", "ns", insert},
                   {"memory", "bytes per visitor", bytes / (double)n}};
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        struct tl_figure figure = {.group = "order",
                                   .metric = figures[i].metric,
                                   .name = who->name,
                                   .n = n,
                                   .value = figures[i].value,
                                   .unit = figures[i].unit,
                                   .lower_is_better = true,
                                   .ours = who->ours,
                                   .baseline = who->ours ? NULL : "order index"};
        tl_emit_figure(&figure);
    }
}

static void measure(const struct contender *who, uint64_t n)
{
    if (json)
        tl_emit_progress(0, 0, "%" PRIu64 " places: %s", n, who->name);
    uint64_t random = 20261121;
    void *state = who->make(n);

    int64_t start = tl_clock_us();
    for (uint64_t seq = 1; seq <= n; seq++)
        who->insert(state, seq);
    double insert = per_operation(start, n);
    size_t bytes = who->bytes(state);

    start = tl_clock_us();
    for (size_t i = 0; i < who->ranks; i++)
        checksum += who->rank(state, 1 + random_next(&random) % n);
    double rank = per_operation(start, who->ranks);

    start = tl_clock_us();
    for (size_t i = 0; i < who->removes; i++)
        checksum += who->remove(state, 1 + random_next(&random) % n);
    double removal = per_operation(start, who->removes);

    who->drop(state);
    print(who, n, insert, rank, removal, (double)bytes);
}

int main(int argc, char **argv)
{
    static const struct contender contenders[] = {
        {"order index", index_make, index_insert, index_rank, index_remove, index_bytes, index_drop,
         OPERATIONS, OPERATIONS, true},
        {"sorted array", array_make, array_insert, array_rank, array_remove, array_bytes, free,
         OPERATIONS, SLOW_OPERATIONS, false},
        {"plain bitmap", bitmap_make, bitmap_insert, bitmap_rank, bitmap_remove, bitmap_bytes, free,
         SLOW_OPERATIONS, OPERATIONS, false},
    };
    uint64_t sizes[] = {1000000, 10000000};
    size_t n_sizes = 2;
    const char *quick = getenv("BENCH_QUICK");
    json = argc > 1 && strcmp(argv[1], "--json") == 0;
    if (json) {
        n_sizes = quick != NULL && strcmp(quick, "1") == 0 ? 1 : 2;
    } else if (argc > 1) {
        char *end;
        errno = 0;
        sizes[0] = strtoull(argv[1], &end, 10);
        n_sizes = 1;
        if (errno != 0 || *end != '\0' || sizes[0] == 0 || sizes[0] > UINT32_MAX) {
            fprintf(stderr, "usage: %s [--json | places, 1 to %" PRIu32 "]\n", argv[0], UINT32_MAX);
            return 2;
        }
    }
    if (!json)
        printf("%-14s %10s %10s %12s %12s %12s\n", "", "places", "insert ns", "rank ns",
               "remove ns", "MB");
    for (size_t size = 0; size < n_sizes; size++) {
        for (size_t i = 0; i < sizeof(contenders) / sizeof(contenders[0]); i++)
            measure(&contenders[i], sizes[size]);
    }
    fprintf(json ? stderr : stdout, "checksum %" PRIu64 "\n", checksum);
    return 0;
}
