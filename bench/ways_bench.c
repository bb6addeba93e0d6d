/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways people build waiting lines, measured beside each other and beside Tellerline: one run,
 * one client, one server. Started by bench/run, which gives it servers and sizes (BENCH_REDIS,
 * BENCH_REDIS_PID, BENCH_POSTGRES, BENCH_POSTGRES_PID, BENCH_SIZES, BENCH_BUDGET, BENCH_QUICK,
 * BENCH_BIN, BENCH_TMP).
 *
 *     ways_bench [--join] [part of a way's name]...
 *
 * --join: joins alone, which then end when they are as durable as BENCH_DURABILITY says.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>

#include "emit.h"
#include "ways/pipe.h"
#include "ways/polling.h"
#include "ways/usage.h"

#define GROUP       "ways"
#define LIMIT       "plain Redis"
#define SIZES_MAX   8
#define SAMPLES_MAX 20000
#define JOIN_TARGET 0.5 /* of plain variadic ZADD */

struct settings {
    uint64_t sizes[SIZES_MAX];
    size_t n_sizes;
    double budget_s;
    bool quick;
    bool join; /* nothing else */
    char **only;
    int n_only;
};

/* One way with n waiting. */
struct cell {
    const struct settings *settings;
    const struct way *way;
    void *actor;
    uint64_t n;
    uint64_t left; /* still waiting: the first n - left have been admitted */
    uint64_t random;
};

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static uint64_t random_next(uint64_t *state)
{
    /* xorshift64* (S. Vigna, 2016) */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which the share `part` of the n values lie; sorts them. */
static double quantile(double *values, size_t n, double part)
{
    qsort(values, n, sizeof(*values), by_value);
    size_t rank = (size_t)ceil(part * (double)n);
    return values[rank > 0 ? rank - 1 : 0];
}

/* A figure of this cell, compared with the limit, to be completed by the caller. */
static struct tl_figure figure_of(const struct cell *cell, const char *metric, double value,
                                  const char *unit, bool lower_is_better)
{
    return (struct tl_figure){.group = GROUP,
                              .metric = metric,
                              .name = cell->way->name,
                              .n = cell->n,
                              .value = value,
                              .unit = unit,
                              .lower_is_better = lower_is_better,
                              .ours = cell->way->ours,
                              .baseline = strcmp(cell->way->name, LIMIT) != 0 ? LIMIT : NULL};
}

/* ---- joining ---- */

static double store_bytes(const struct cell *cell)
{
    return cell->way->bytes != NULL ? cell->way->bytes(cell->actor) : usage_redis_bytes();
}

static void emit_cost(const struct cell *cell, double cpu_s, double bytes)
{
    struct tl_figure cpu = figure_of(cell, "join: store CPU", cpu_s * 1e6 / (double)cell->n,
                                     "ms per 1,000 visitors", true);
    struct tl_figure memory =
        figure_of(cell, "memory in the store", bytes / (double)cell->n, "bytes per visitor", true);
    if (cell->way->postgres)
        memory.note = "table and indexes on disk, as its buffers hold them";
    tl_emit_figure(&cpu);
    tl_emit_figure(&memory);
}

/* What cannot be measured because the line could not be filled. */
static void emit_unfilled(const struct cell *cell)
{
    static const char *const metrics[] = {"position, p50", "positions", "admission of 1,400",
                                          "expiry of 1,400"};
    char why[96];
    snprintf(why, sizeof(why), "the line could not be filled in %.0f s", cell->settings->budget_s);
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        struct tl_figure none = figure_of(cell, metrics[i], NAN,
                                          i == 1   ? "positions per second"
                                          : i == 0 ? "µs"
                                                   : "ms",
                                          i != 1);
        none.skip = why;
        tl_emit_figure(&none);
    }
}

/* Lets all n join. False when that takes longer than the budget. */
static bool fill(struct cell *cell)
{
    uint64_t done = 0;
    double bytes = store_bytes(cell);
    double cpu = usage_cpu_s(cell->way->postgres);
    double start = now_s();
    double took = 0;
    while (done < cell->n && took <= cell->settings->budget_s) {
        uint64_t chunk = cell->n / 10 > 10000 ? cell->n / 10 : 10000;
        chunk = cell->n - done < chunk ? cell->n - done : chunk;
        cell->way->join(cell->actor, done + 1, chunk);
        done += chunk;
        took = now_s() - start;
    }
    if (!cell->way->postgres)
        usage_wait_durable();
    took = now_s() - start;
    struct tl_figure join =
        figure_of(cell, "join", (double)done / took, "visitors per second", false);
    if (cell->way->ours)
        join.target = JOIN_TARGET;
    if (done < cell->n) {
        join.over_s = took;
        join.done = done;
        join.of = cell->n;
    }
    tl_emit_figure(&join);
    cell->left = done;
    if (done == cell->n)
        emit_cost(cell, usage_cpu_s(cell->way->postgres) - cpu, store_bytes(cell) - bytes);
    else
        emit_unfilled(cell);
    return done == cell->n;
}

/* ---- positions ---- */

/* Looks up one visitor at a time; returns the median in seconds. */
static double latency(struct cell *cell)
{
    static double times[SAMPLES_MAX];
    char note[96];
    size_t samples = 0;
    uint64_t wrong = 0;
    double start = now_s();
    double slice = cell->settings->quick ? 0.2 : 1.5;
    double commands = usage_redis_commands();
    for (double spent = 0; samples < SAMPLES_MAX &&
                           (spent < slice || (samples < 5 && spent < cell->settings->budget_s));
         spent = now_s() - start) {
        uint64_t visitor = 1 + random_next(&cell->random) % cell->n;
        uint64_t answer;
        double before = now_s();
        cell->way->positions(cell->actor, &visitor, 1, &answer);
        times[samples++] = now_s() - before;
        wrong += answer != visitor;
    }
    commands = usage_redis_commands() - commands;
    double p50 = quantile(times, samples, 0.5);
    snprintf(note, sizeof(note), "only %zu look-ups", samples);
    struct tl_figure middle = figure_of(cell, "position, p50", p50 * 1e6, "µs", true);
    middle.wrong = wrong;
    middle.note = samples < 100 ? note : NULL;
    struct tl_figure tail =
        figure_of(cell, "position, p99", quantile(times, samples, 0.99) * 1e6, "µs", true);
    struct tl_figure asked = figure_of(cell, "position: Redis commands", commands / (double)samples,
                                       "commands per look-up", true);
    tl_emit_figure(&middle);
    tl_emit_figure(&tail);
    if (!cell->way->postgres)
        tl_emit_figure(&asked);
    return p50;
}

/* Look-ups per second, pipelined. */
static void throughput(struct cell *cell, double p50)
{
    uint64_t visitors[100];
    uint64_t answers[100];
    size_t batch = p50 > 0.1 ? 1 : p50 > 0.002 ? 10 : 100;
    uint64_t done = 0;
    uint64_t wrong = 0;
    double slice = cell->settings->quick ? 0.2 : 1.5;
    double start = now_s();
    double spent = 0;
    while (spent < slice) {
        for (size_t i = 0; i < batch; i++)
            visitors[i] = 1 + random_next(&cell->random) % cell->n;
        cell->way->positions(cell->actor, visitors, batch, answers);
        for (size_t i = 0; i < batch; i++)
            wrong += answers[i] != visitors[i];
        done += batch;
        spent = now_s() - start;
    }
    struct tl_figure rate =
        figure_of(cell, "positions", (double)done / spent, "positions per second", false);
    rate.wrong = wrong;
    if (cell->way->ours)
        rate.note = "one core of a worker, HTTP not included";
    tl_emit_figure(&rate);
}

/* ---- admission and expiry ---- */

static void wait_until_due(void)
{
    way_sleep_ms(WAY_TTL_MS + 20);
}

/* Runs the design's expiry until it finds nothing more to do, at most for `expected` sessions. */
static void expire_all(struct cell *cell, uint64_t expected)
{
    uint64_t ended = 0;
    uint64_t n = 1;
    while (n > 0 && ended < expected) {
        n = cell->way->expire(cell->actor, UINT64_MAX);
        ended += n;
    }
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Rounds of letting in as many as there is room for, and ending all of them. */
static void rounds(struct cell *cell)
{
    double admission[3];
    double expiry[3];
    size_t wanted = cell->settings->quick ? 2 : 3;
    size_t n = 0;
    uint64_t wrong_in = 0;
    uint64_t wrong_out = 0;
    double began = now_s();
    while (n < wanted && cell->left > 0 && (n == 0 || now_s() - began < cell->settings->budget_s)) {
        uint64_t expected = cell->left < WAY_CAPACITY ? cell->left : WAY_CAPACITY;
        double start = now_s();
        uint64_t admitted = cell->way->admit(cell->actor);
        admission[n] = now_s() - start;
        wrong_in += difference(admitted, expected);
        cell->left -= admitted;
        wait_until_due();
        start = now_s();
        expire_all(cell, admitted);
        expiry[n++] = now_s() - start;
        wrong_out += (uint64_t)llabs(cell->way->counted(cell->actor));
    }
    if (n == 0)
        return;
    struct tl_figure in =
        figure_of(cell, "admission of 1,400", quantile(admission, n, 0.5) * 1e3, "ms", true);
    struct tl_figure out =
        figure_of(cell, "expiry of 1,400", quantile(expiry, n, 0.5) * 1e3, "ms", true);
    in.wrong = wrong_in;
    out.wrong = wrong_out;
    tl_emit_figure(&in);
    tl_emit_figure(&out);
}

/* ---- what goes wrong ---- */

struct admitter {
    const struct way *way;
    void *actor;
    pthread_barrier_t *start;
    uint64_t admitted;
};

static void *admit_at_once(void *context)
{
    struct admitter *self = context;
    pthread_barrier_wait(self->start);
    self->admitted = self->way->admit(self->actor);
    return NULL;
}

/* Two admitters at the same moment: how many more are let in than there is room for, at worst. */
static void race(struct cell *cell)
{
    pthread_barrier_t start;
    uint64_t worst = 0;
    pthread_barrier_init(&start, NULL, 2);
    void *second = cell->way->open();
    /* Leaves enough visitors in line for one more round of another actor. */
    for (int i = 0; i < 3 && cell->left >= 3 * WAY_CAPACITY; i++) {
        struct admitter both[2] = {
            {.way = cell->way, .actor = cell->actor, .start = &start},
            {.way = cell->way, .actor = second, .start = &start},
        };
        pthread_t thread;
        if (pthread_create(&thread, NULL, admit_at_once, &both[1]) != 0)
            way_die("no thread");
        admit_at_once(&both[0]);
        pthread_join(thread, NULL);
        uint64_t admitted = both[0].admitted + both[1].admitted;
        if (admitted > WAY_CAPACITY && admitted - WAY_CAPACITY > worst)
            worst = admitted - WAY_CAPACITY;
        cell->left -= admitted;
        wait_until_due();
        expire_all(cell, admitted);
    }
    cell->way->close(second);
    pthread_barrier_destroy(&start);
    struct tl_figure over = figure_of(cell, "let in above capacity, two admitters at once",
                                      (double)worst, "visitors", true);
    over.baseline = NULL;
    over.wrong = worst;
    over.note = "worst round; capacity 1,400";
    tl_emit_figure(&over);
}

/* Whatever ends sessions is killed after 700 of 1,400 and back 200 ms later. */
static void killed(struct cell *cell)
{
    int64_t before = cell->way->counted(cell->actor);
    uint64_t admitted = cell->way->admit(cell->actor);
    wait_until_due();
    cell->way->expire(cell->actor, WAY_CAPACITY / 2);
    cell->way->restart(cell->actor);
    expire_all(cell, admitted);
    int64_t drift = cell->way->counted(cell->actor) - before;
    if (admitted != WAY_CAPACITY)
        way_die("%s: %" PRIu64 " admitted instead of 1,400 before the restart", cell->way->name,
                admitted);
    struct tl_figure wrong =
        figure_of(cell, "slots counted wrong after a restart", (double)llabs(drift), "slots", true);
    wrong.baseline = NULL;
    wrong.wrong = (uint64_t)llabs(drift);
    wrong.note = drift > 0   ? "lost: held by nobody, for ever"
                 : drift < 0 ? "given out twice: too many are let in from now on"
                             : NULL;
    tl_emit_figure(&wrong);
}

static void trouble(struct cell *cell)
{
    if (cell->left >= 3 * WAY_CAPACITY) {
        race(cell);
        killed(cell);
        return;
    }
    struct tl_figure none =
        figure_of(cell, "slots counted wrong after a restart", NAN, "slots", true);
    none.baseline = NULL;
    none.skip = "too few wait for it";
    tl_emit_figure(&none);
}

/* ---- the run ---- */

static bool chosen(const struct settings *settings, const char *name)
{
    for (int i = 0; i < settings->n_only; i++) {
        if (strcasestr(name, settings->only[i]) != NULL)
            return true;
    }
    return settings->n_only == 0;
}

static void measure_cell(const struct settings *settings, const struct way *way, uint64_t n)
{
    struct cell cell = {.settings = settings, .way = way, .n = n, .random = 20261121};
    if (way->postgres && getenv("BENCH_POSTGRES") == NULL) {
        struct tl_figure none = figure_of(&cell, "join", NAN, "visitors per second", false);
        none.skip = "no PostgreSQL";
        tl_emit_figure(&none);
        return;
    }
    cell.actor = way->open();
    way->setup(cell.actor);
    if (fill(&cell) && way->positions != NULL && !settings->join) {
        if (way->settle != NULL)
            way->settle(cell.actor, n);
        throughput(&cell, latency(&cell));
        rounds(&cell);
        if (n == settings->sizes[0])
            trouble(&cell);
    }
    way->close(cell.actor);
}

#ifndef TELLERLINE_BENCH_PQ
static void say_what_is_left_out(uint64_t n)
{
    struct tl_figure none = {.group = GROUP,
                             .metric = "join",
                             .name = "PostgreSQL table",
                             .n = n,
                             .unit = "visitors per second",
                             .skip = "built without libpq"};
    tl_emit_figure(&none);
}
#endif

static void measure_all(const struct settings *settings)
{
    /* The limit, which all are compared with, first and last: a machine does not stay the same. */
    static const struct way *const ways[] = {
        &way_limit,       &way_single,    &way_stream, &way_ours,
#ifdef TELLERLINE_BENCH_PQ
        &way_relational,
#endif
        &way_token_state, &way_set_hash,  &way_notify, &way_log,
        &way_range_scan,  &way_token_key, &way_limit};
    const size_t n_ways = sizeof(ways) / sizeof(ways[0]);
    uint64_t of = settings->n_sizes * (n_ways + 1);
    uint64_t done = 0;
    for (size_t i = 0; i < n_ways; i++)
        tl_emit_about(GROUP, ways[i]->name, ways[i]->what, ways[i]->source);
    polling_about(GROUP);
    for (size_t size = 0; size < settings->n_sizes; size++) {
#ifndef TELLERLINE_BENCH_PQ
        say_what_is_left_out(settings->sizes[size]);
#endif
        for (size_t i = 0; i < n_ways; i++, done++) {
            if (!chosen(settings, ways[i]->name))
                continue;
            tl_emit_progress(done, of, "%" PRIu64 " waiting: %s", settings->sizes[size],
                             ways[i]->name);
            measure_cell(settings, ways[i], settings->sizes[size]);
        }
        tl_emit_progress(done++, of, "%" PRIu64 " waiting: polling", settings->sizes[size]);
        if (chosen(settings, "polling"))
            polling_measure(GROUP, settings->sizes[size], settings->quick ? 1.0 : 5.0);
    }
    tl_emit_progress(of, of, "done");
}

static void read_sizes(struct settings *settings, const char *text)
{
    while (text != NULL && *text != '\0' && settings->n_sizes < SIZES_MAX) {
        char *end;
        settings->sizes[settings->n_sizes] = strtoull(text, &end, 10);
        if (end == text || settings->sizes[settings->n_sizes] == 0)
            way_die("BENCH_SIZES is a list of numbers");
        settings->n_sizes++;
        text = *end == ',' ? end + 1 : end;
    }
    if (settings->n_sizes == 0)
        way_die("BENCH_SIZES (how many wait, such as 10000,100000) is not set");
}

int main(int argc, char **argv)
{
    const char *budget = getenv("BENCH_BUDGET");
    const char *quick = getenv("BENCH_QUICK");
    struct settings settings = {.budget_s = budget != NULL ? strtod(budget, NULL) : 30,
                                .quick = quick != NULL && strcmp(quick, "1") == 0,
                                .join = argc > 1 && strcmp(argv[1], "--join") == 0,
                                .only = argv + 1,
                                .n_only = argc - 1};
    if (settings.join) {
        settings.only++;
        settings.n_only--;
    }
    read_sizes(&settings, getenv("BENCH_SIZES"));
    measure_all(&settings);
    return 0;
}
