#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>

#include "common/base/metrics.h"
#include "common/base/text.h"

/* Upper bounds of the histogram buckets, inclusive, as compared and as exported. */
static const struct {
    int64_t microseconds;
    const char *seconds;
} bounds[] = {
    {50, "0.00005"}, {100, "0.0001"},  {200, "0.0002"}, {500, "0.0005"}, {1000, "0.001"},
    {2000, "0.002"}, {5000, "0.005"},  {10000, "0.01"}, {20000, "0.02"}, {50000, "0.05"},
    {100000, "0.1"}, {200000, "0.2"},  {500000, "0.5"}, {1000000, "1"},  {2000000, "2"},
    {5000000, "5"},  {10000000, "10"},
};

enum {
    N_BOUNDS = sizeof(bounds) / sizeof(bounds[0]),
    SUM_CELL = N_BOUNDS + 1, /* after one cell per bound and one for +Inf */
    HISTOGRAM_CELLS,
};

/* All of it is in the caller's memory. The pointers hold in forked children too, where shared
 * memory and the static table keep their addresses. */
struct tl_metrics {
    const struct tl_metric_desc *table;
    size_t n;
    size_t *first; /* per row: index of its first cell */
    _Atomic int64_t *cells;
};

static size_t round_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static size_t cells_of(enum tl_metric_type type)
{
    return type == TL_HISTOGRAM ? HISTOGRAM_CELLS : 1;
}

/* ---- one block ---- */

size_t tl_metrics_size(const struct tl_metric_desc *table, size_t n)
{
    size_t cells = 0;
    for (size_t i = 0; i < n; i++)
        cells += cells_of(table[i].type);
    return round_up(sizeof(struct tl_metrics)) + round_up(n * sizeof(size_t)) +
           round_up(cells * sizeof(_Atomic int64_t));
}

struct tl_metrics *tl_metrics_init(void *memory, const struct tl_metric_desc *table, size_t n)
{
    unsigned char *bytes = memory;
    struct tl_metrics *metrics = memory;
    metrics->table = table;
    metrics->n = n;
    bytes += round_up(sizeof(*metrics));
    metrics->first = (void *)bytes;
    bytes += round_up(n * sizeof(size_t));
    metrics->cells = (void *)bytes;
    size_t next = 0;
    for (size_t i = 0; i < n; i++) {
        metrics->first[i] = next;
        next += cells_of(table[i].type);
    }
    return metrics;
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

void tl_metrics_observe(struct tl_metrics *metrics, size_t handle, int64_t microseconds)
{
    size_t bucket = 0;
    while (bucket < N_BOUNDS && microseconds > bounds[bucket].microseconds)
        bucket++;
    cell_add(metrics, handle, bucket, 1);
    /* The sum must not fall, even when the caller measured a negative time. */
    cell_add(metrics, handle, SUM_CELL, microseconds > 0 ? microseconds : 0);
}

int64_t tl_metrics_get(const struct tl_metrics *metrics, size_t handle)
{
    if (metrics->table[handle].type != TL_HISTOGRAM)
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
    const char *label; /* may be empty */
    struct tl_text *out;
};

static int64_t cell_total(const struct exposition *exposition, size_t handle, size_t cell)
{
    int64_t total = 0;
    for (size_t i = 0; i < exposition->n_blocks; i++)
        total += cell_get(exposition->blocks[i], handle, cell);
    return total;
}

/* Buckets are written cumulatively, and _count is the last of them, so that both agree even while
 * other threads continue to count. */
static void write_histogram(const struct exposition *exposition, size_t handle)
{
    const char *name = exposition->blocks[0]->table[handle].name;
    const char *label = exposition->label;
    struct tl_text *out = exposition->out;
    const char *comma = label[0] == '\0' ? "" : ",";
    const char *open = label[0] == '\0' ? "" : "{";
    const char *close = label[0] == '\0' ? "" : "}";
    int64_t count = 0;
    for (size_t bucket = 0; bucket < SUM_CELL; bucket++) {
        count += cell_total(exposition, handle, bucket);
        tl_text_append(out, "%s_bucket{%s%sle=\"%s\"} %" PRId64 "\n", name, label, comma,
                       bucket < N_BOUNDS ? bounds[bucket].seconds : "+Inf", count);
    }
    int64_t sum = cell_total(exposition, handle, SUM_CELL);
    tl_text_append(out, "%s_sum%s%s%s %" PRId64 ".%06" PRId64 "\n", name, open, label, close,
                   sum / 1000000, sum % 1000000);
    tl_text_append(out, "%s_count%s%s%s %" PRId64 "\n", name, open, label, close, count);
}

void tl_metrics_write(struct tl_metrics *const *blocks, size_t n_blocks, const char *label,
                      struct tl_text *out)
{
    static const char *const type_names[] = {
        [TL_COUNTER] = "counter",
        [TL_GAUGE] = "gauge",
        [TL_HISTOGRAM] = "histogram",
    };
    if (n_blocks == 0)
        return;
    const struct exposition exposition = {blocks, n_blocks, label, out};
    for (size_t i = 0; i < blocks[0]->n; i++) {
        const struct tl_metric_desc *row = &blocks[0]->table[i];
        tl_text_append(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name,
                       type_names[row->type]);
        if (row->type == TL_HISTOGRAM) {
            write_histogram(&exposition, i);
            continue;
        }
        int64_t value = cell_total(&exposition, i, 0);
        if (label[0] == '\0')
            tl_text_append(out, "%s %" PRId64 "\n", row->name, value);
        else
            tl_text_append(out, "%s{%s} %" PRId64 "\n", row->name, label, value);
    }
}
