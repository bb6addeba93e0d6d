/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/metrics.h"
#include "common/base/text.h"

/* Upper bounds of the histogram buckets, inclusive, as compared and as exported. */
struct bound {
    int64_t value;
    const char *text;
};

enum {
    N_BOUNDS = 17,           /* of each kind of histogram */
    SUM_CELL = N_BOUNDS + 1, /* after one cell per bound and one for +Inf */
    HISTOGRAM_CELLS,
};

static const struct bound latencies[N_BOUNDS] = {
    {50, "0.00005"}, {100, "0.0001"},  {200, "0.0002"}, {500, "0.0005"}, {1000, "0.001"},
    {2000, "0.002"}, {5000, "0.005"},  {10000, "0.01"}, {20000, "0.02"}, {50000, "0.05"},
    {100000, "0.1"}, {200000, "0.2"},  {500000, "0.5"}, {1000000, "1"},  {2000000, "2"},
    {5000000, "5"},  {10000000, "10"},
};

#define SECONDS(n) (INT64_C(n) * 1000000)
static const struct bound waits[N_BOUNDS] = {
    {SECONDS(1), "1"},         {SECONDS(2), "2"},         {SECONDS(5), "5"},
    {SECONDS(10), "10"},       {SECONDS(20), "20"},       {SECONDS(30), "30"},
    {SECONDS(60), "60"},       {SECONDS(120), "120"},     {SECONDS(300), "300"},
    {SECONDS(600), "600"},     {SECONDS(900), "900"},     {SECONDS(1200), "1200"},
    {SECONDS(1800), "1800"},   {SECONDS(3600), "3600"},   {SECONDS(7200), "7200"},
    {SECONDS(14400), "14400"}, {SECONDS(28800), "28800"},
};

static const struct bound sizes[N_BOUNDS] = {
    {1, "1"},           {2, "2"},           {5, "5"},         {10, "10"},       {20, "20"},
    {50, "50"},         {100, "100"},       {200, "200"},     {500, "500"},     {1000, "1000"},
    {2000, "2000"},     {5000, "5000"},     {10000, "10000"}, {20000, "20000"}, {50000, "50000"},
    {100000, "100000"}, {200000, "200000"},
};

/* By type; NULL for what is no histogram. */
static const struct bound *const bounds_of[] = {
    [TL_HISTOGRAM] = latencies, [TL_HISTOGRAM_LONG] = waits, [TL_HISTOGRAM_SIZE] = sizes};

/* All of it is in the caller's memory. The pointers hold in forked children too, where shared
 * memory and the static table keep their addresses. */
struct tl_metrics {
    const struct tl_metric_desc *table;
    size_t n;
    _Atomic int64_t *cells;
    size_t first[]; /* per row: index of its first cell */
};

/* Of the cache. */
#define LINE ((size_t)64)

static size_t round_up(size_t bytes)
{
    return (bytes + LINE - 1) & ~(LINE - 1);
}

static size_t cells_of(enum tl_metric_type type)
{
    return bounds_of[type] != NULL ? HISTOGRAM_CELLS : 1;
}

/* ---- one block ---- */

size_t tl_metrics_size(const struct tl_metric_desc *table, size_t n)
{
    size_t cells = 0;
    for (size_t i = 0; i < n; i++)
        cells += cells_of(table[i].type);
    return round_up(sizeof(struct tl_metrics) + n * sizeof(size_t)) +
           round_up(cells * sizeof(_Atomic int64_t));
}

struct tl_metrics *tl_metrics_init(void *memory, const struct tl_metric_desc *table, size_t n)
{
    struct tl_metrics *metrics = memory;
    size_t next = 0;
    metrics->table = table;
    metrics->n = n;
    metrics->cells =
        (void *)((unsigned char *)memory + round_up(sizeof(*metrics) + n * sizeof(size_t)));
    for (size_t i = 0; i < n; i++) {
        metrics->first[i] = next;
        next += cells_of(table[i].type);
    }
    return metrics;
}

struct tl_metrics *tl_metrics_new(const struct tl_metric_desc *table, size_t n)
{
    size_t size = tl_metrics_size(table, n);
    void *memory = aligned_alloc(LINE, size);
    if (memory == NULL)
        return NULL;
    memset(memory, 0, size);
    return tl_metrics_init(memory, table, n);
}

static int64_t cell_get(const struct tl_metrics *metrics, size_t handle, size_t cell)
{
    assert(handle < metrics->n);
    return atomic_load_explicit(&metrics->cells[metrics->first[handle] + cell],
                                memory_order_relaxed);
}

static void cell_add(struct tl_metrics *metrics, size_t handle, size_t cell, int64_t delta)
{
    assert(handle < metrics->n);
    atomic_fetch_add_explicit(&metrics->cells[metrics->first[handle] + cell], delta,
                              memory_order_relaxed);
}

void tl_metrics_add(struct tl_metrics *metrics, size_t handle, int64_t delta)
{
    cell_add(metrics, handle, 0, delta);
}

void tl_metrics_set(struct tl_metrics *metrics, size_t handle, int64_t value)
{
    assert(handle < metrics->n);
    atomic_store_explicit(&metrics->cells[metrics->first[handle]], value, memory_order_relaxed);
}

void tl_metrics_observe(struct tl_metrics *metrics, size_t handle, int64_t value)
{
    const struct bound *bounds = bounds_of[metrics->table[handle].type];
    size_t bucket = 0;
    assert(bounds != NULL);
    while (bucket < N_BOUNDS && value > bounds[bucket].value)
        bucket++;
    cell_add(metrics, handle, bucket, 1);
    /* The sum must not fall, even when the caller measured a negative time. */
    cell_add(metrics, handle, SUM_CELL, value > 0 ? value : 0);
}

void tl_metrics_add_up(struct tl_metrics *into, const struct tl_metrics *from)
{
    for (size_t i = 0; i < from->n; i++) {
        enum tl_metric_type type = from->table[i].type;
        if (type == TL_GAUGE || type == TL_GAUGE_MAX)
            continue;
        for (size_t cell = 0; cell < cells_of(type); cell++)
            cell_add(into, i, cell, cell_get(from, i, cell));
    }
}

int64_t tl_metrics_get(const struct tl_metrics *metrics, size_t handle)
{
    if (bounds_of[metrics->table[handle].type] == NULL)
        return cell_get(metrics, handle, 0);
    int64_t observations = 0;
    for (size_t bucket = 0; bucket < SUM_CELL; bucket++)
        observations += cell_get(metrics, handle, bucket);
    return observations;
}

/* ---- Prometheus text ---- */

/* What is written, and where to: the sums over all blocks, each sample with the label. */
struct exposition {
    struct tl_metrics *const *blocks;
    size_t n_blocks;
    const char *label;
    struct tl_text *out;
};

static int64_t cell_total(const struct exposition *exposition, size_t handle, size_t cell)
{
    int64_t total = 0, most = INT64_MIN;
    for (size_t i = 0; i < exposition->n_blocks; i++) {
        int64_t value = cell_get(exposition->blocks[i], handle, cell);
        total += value;
        most = value > most ? value : most;
    }
    return exposition->blocks[0]->table[handle].type == TL_GAUGE_MAX ? most : total;
}

/* Buckets are written cumulatively, and _count is the last of them, so that both agree even while
 * other threads continue to count. */
static void write_histogram(const struct exposition *exposition, size_t handle)
{
    const struct tl_metric_desc *row = &exposition->blocks[0]->table[handle];
    const struct bound *bounds = bounds_of[row->type];
    const char *name = row->name;
    const char *label = exposition->label;
    struct tl_text *out = exposition->out;
    int64_t count = 0;
    for (size_t bucket = 0; bucket < SUM_CELL; bucket++) {
        count += cell_total(exposition, handle, bucket);
        tl_text_append(out, "%s_bucket{%s,le=\"%s\"} %" PRId64 "\n", name, label,
                       bucket < N_BOUNDS ? bounds[bucket].text : "+Inf", count);
    }
    int64_t sum = cell_total(exposition, handle, SUM_CELL);
    if (row->type == TL_HISTOGRAM_SIZE)
        tl_text_append(out, "%s_sum{%s} %" PRId64 "\n", name, label, sum);
    else
        tl_text_append(out, "%s_sum{%s} %" PRId64 ".%06" PRId64 "\n", name, label, sum / 1000000,
                       sum % 1000000);
    tl_text_append(out, "%s_count{%s} %" PRId64 "\n", name, label, count);
}

void tl_metrics_write_head(const struct tl_metric_desc *row, struct tl_text *out)
{
    const char *type = row->type == TL_COUNTER        ? "counter"
                       : bounds_of[row->type] != NULL ? "histogram"
                                                      : "gauge";
    tl_text_append(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, type);
}

void tl_metrics_write_samples(struct tl_metrics *const *blocks, size_t n_blocks, size_t handle,
                              const char *label, struct tl_text *out)
{
    if (n_blocks == 0)
        return;
    const struct exposition exposition = {blocks, n_blocks, label, out};
    const struct tl_metric_desc *row = &blocks[0]->table[handle];
    if (bounds_of[row->type] != NULL) {
        write_histogram(&exposition, handle);
        return;
    }
    tl_text_append(out, "%s{%s} %" PRId64 "\n", row->name, label,
                   cell_total(&exposition, handle, 0));
}

void tl_metrics_write(struct tl_metrics *const *blocks, size_t n_blocks, const char *label,
                      struct tl_text *out)
{
    for (size_t i = 0; n_blocks > 0 && i < blocks[0]->n; i++) {
        tl_metrics_write_head(&blocks[0]->table[i], out);
        tl_metrics_write_samples(blocks, n_blocks, i, label, out);
    }
}
