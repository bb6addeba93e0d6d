/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "worker/report/queue_counts.h"

enum state { FREE, CLAIMED, NAMED };

struct slot {
    _Atomic int state;                /* enum state; a claimed slot is being named */
    char name[TL_QUEUE_NAME_MAX + 1]; /* written once, before `state` says so */
    _Atomic int64_t counts[TL_QUEUE_COUNTS];
};

struct tl_queue_counts {
    size_t size; /* of all of it */
    uint64_t named;
    uint32_t n_slots;
    _Atomic uint64_t claimed;
    struct slot slots[]; /* an open hash table, half full at most; behind it that of the others */
};

static const struct {
    const char *name, *help;
} rows[TL_QUEUE_COUNTS] = {
#define COUNT(handle, name, help) {name, help},
#include "worker/report/queue_counts.def"
#undef COUNT
};

struct tl_queue_counts *tl_queue_counts_new(uint64_t named, struct tl_error *err)
{
    uint32_t n_slots = 2 * (uint32_t)named + 1;
    size_t size = sizeof(struct tl_queue_counts) + ((size_t)n_slots + 1) * sizeof(struct slot);
    struct tl_queue_counts *counts =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED) {
        tl_error_set(err, TL_ERR_SYSTEM, "no shared memory for the counts of queues: %s",
                     strerror(errno));
        return NULL;
    }
    counts->size = size;
    counts->named = named;
    counts->n_slots = n_slots;
    struct slot *other = &counts->slots[n_slots];
    snprintf(other->name, sizeof(other->name), "%s", TL_QUEUE_COUNTS_OTHER);
    atomic_store(&other->state, NAMED);
    return counts;
}

void tl_queue_counts_free(struct tl_queue_counts **counts)
{
    if (*counts != NULL)
        munmap(*counts, (*counts)->size);
    *counts = NULL;
}

/* Names a free slot, unless as many are named as may be. Two processes that meet a queue for the
 * first time at once may both name a slot: the writer adds them up. */
static bool claim(struct tl_queue_counts *counts, struct slot *slot, const char *queue)
{
    int free_state = FREE;
    if (atomic_fetch_add(&counts->claimed, 1) >= counts->named ||
        !atomic_compare_exchange_strong(&slot->state, &free_state, CLAIMED)) {
        atomic_fetch_sub(&counts->claimed, 1);
        return false;
    }
    snprintf(slot->name, sizeof(slot->name), "%s", queue);
    atomic_store(&slot->state, NAMED);
    return true;
}

static struct slot *slot_of(struct tl_queue_counts *counts, const char *queue, uint32_t stream)
{
    struct slot *other = &counts->slots[counts->n_slots];
    for (uint32_t i = 0; i < counts->n_slots; i++) {
        struct slot *slot = &counts->slots[(stream + i) % counts->n_slots];
        int state = atomic_load(&slot->state);
        if (state == NAMED && strcmp(slot->name, queue) == 0)
            return slot;
        if (state == FREE)
            return claim(counts, slot, queue) ? slot : other;
    }
    return other;
}

uint32_t tl_queue_counts_stream(const char *queue)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    for (; *queue != '\0'; queue++)
        hash = (hash ^ (unsigned char)*queue) * UINT32_C(16777619);
    return hash;
}

void tl_queue_counts_add(struct tl_queue_counts *counts, const char *queue, uint32_t stream,
                         enum tl_queue_count kind, uint64_t n)
{
    if (counts != NULL && n > 0)
        atomic_fetch_add_explicit(&slot_of(counts, queue, stream)->counts[kind], (int64_t)n,
                                  memory_order_relaxed);
}

/* The sum over all slots of this name, if slot i is the first of them; else -1. */
static int64_t sum_of(const struct tl_queue_counts *counts, size_t i, enum tl_queue_count kind)
{
    int64_t sum = 0;
    if (atomic_load(&counts->slots[i].state) != NAMED)
        return -1;
    for (size_t other = 0; other <= counts->n_slots; other++) {
        if (atomic_load(&counts->slots[other].state) != NAMED ||
            strcmp(counts->slots[other].name, counts->slots[i].name) != 0)
            continue;
        if (other < i)
            return -1;
        sum += atomic_load(&counts->slots[other].counts[kind]);
    }
    return sum;
}

/* Which share of the waits told came true within the range told, since the start. */
static void write_eta_ratios(const struct tl_queue_counts *counts, const char *label,
                             struct tl_text *out)
{
    tl_text_append(
        out, "# HELP tellerline_queue_eta_inside_ratio Share of the estimates that came true, "
             "since the worker started\n"
             "# TYPE tellerline_queue_eta_inside_ratio gauge\n");
    for (size_t i = 0; i <= counts->n_slots; i++) {
        int64_t judged = sum_of(counts, i, TL_QUEUE_ETA_JUDGED);
        if (judged <= 0)
            continue;
        int64_t outside =
            sum_of(counts, i, TL_QUEUE_ETA_EARLY) + sum_of(counts, i, TL_QUEUE_ETA_LATE);
        tl_text_append(out, "tellerline_queue_eta_inside_ratio{%s,queue=\"%s\"} %.4f\n", label,
                       counts->slots[i].name, (double)(judged - outside) / (double)judged);
    }
}

void tl_queue_counts_write(const struct tl_queue_counts *counts, const char *label,
                           struct tl_text *out)
{
    for (size_t row = 0; row < TL_QUEUE_COUNTS; row++) {
        tl_text_append(out, "# HELP %s %s\n# TYPE %s counter\n", rows[row].name, rows[row].help,
                       rows[row].name);
        for (size_t i = 0; i <= counts->n_slots; i++) {
            int64_t sum = sum_of(counts, i, (enum tl_queue_count)row);
            bool written = i < counts->n_slots ? sum >= 0 : sum > 0;
            if (written)
                tl_text_append(out, "%s{%s,queue=\"%s\"} %lld\n", rows[row].name, label,
                               counts->slots[i].name, (long long)sum);
        }
    }
    write_eta_ratios(counts, label, out);
}

/* ---- tallies ---- */

uint32_t tl_hitters_add(struct tl_hitters *hitters, const struct tl_prefix *prefix, uint32_t stream,
                        int64_t now_ms)
{
    struct tl_hitter *least = &hitters->list[0];
    if (now_ms - hitters->window_ms >= TL_HITTERS_WINDOW_MS)
        *hitters = (struct tl_hitters){.window_ms = now_ms};
    hitters->total++;
    for (size_t i = 0; i < hitters->n; i++) {
        struct tl_hitter *hitter = &hitters->list[i];
        if (hitter->stream == stream && tl_prefix_equal(&hitter->prefix, prefix))
            return ++hitter->count - hitter->error;
        if (hitter->count < least->count)
            least = hitter;
    }
    if (hitters->n < TL_HITTERS)
        least = &hitters->list[hitters->n++];
    /* The one that it replaces may have been this network before. */
    *least = (struct tl_hitter){
        .prefix = *prefix, .stream = stream, .count = least->count + 1, .error = least->count};
    return 1;
}

struct tl_tally *tl_tallies_of(struct tl_tallies *tallies, const char *queue, uint32_t stream)
{
    for (size_t i = 0; i < tallies->n; i++) {
        struct tl_tally *tally = &tallies->list[i];
        if (tally->stream == stream && strcmp(tally->queue, queue) == 0)
            return tally;
    }
    if (tallies->n == TL_TALLIES)
        return NULL;
    struct tl_tally *fresh = &tallies->list[tallies->n++];
    *fresh = (struct tl_tally){.stream = stream};
    snprintf(fresh->queue, sizeof(fresh->queue), "%s", queue);
    return fresh;
}
