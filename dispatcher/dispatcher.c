#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/role/keeper.h"
#include "common/store/reply.h"
#include "common/store/script.h"

#include "dispatcher/apply.h"
#include "dispatcher/dispatcher.h"
#include "dispatcher/lag.h"

/* What to read at a time: so many commands, in entries as large as the last ones were. Between two
 * reads the store waits for us, which many small entries would make it do often; with large ones a
 * read must not take long enough to lose a lease. */
#define READ_COMMANDS    20000
#define READ_ENTRIES_MIN 64
#define READ_ENTRIES_MAX TL_APPLY_ENTRIES_MAX
/* How often a holder looks for pending entries that it did not read itself: a former holder that
 * woke up late may have fetched (but could not apply) some. */
#define PENDING_CHECK_MS 1000
#define BLOCK_MAX_MS     500
#define LAG_EVERY_MS     1000
#define LOG_EVERY_MS     60000

const struct tl_metric_desc tl_dispatcher_metrics[TL_DISPATCHER_METRICS] = {
    [TL_DISPATCHER_BATCHES] = {"tellerline_dispatcher_batches_total", "Ingest batches applied.",
                               TL_COUNTER},
    [TL_DISPATCHER_REPEATED] = {"tellerline_dispatcher_repeated_total",
                                "Batches recognised as sent twice and ignored.", TL_COUNTER},
    [TL_DISPATCHER_COMMANDS] = {"tellerline_dispatcher_commands_total",
                                "Commands in the batches applied.", TL_COUNTER},
    [TL_DISPATCHER_POISON] = {"tellerline_dispatcher_poison_total",
                              "Ingest entries set aside because they made no sense.", TL_COUNTER},
    [TL_DISPATCHER_LOST] = {"tellerline_dispatcher_lost_total",
                            "Ingest entries whose payload was gone before they were applied.",
                            TL_COUNTER},
    [TL_DISPATCHER_TAKEOVERS] = {"tellerline_dispatcher_takeovers_total", "Leases taken.",
                                 TL_COUNTER},
    [TL_DISPATCHER_QUEUES] = {"tellerline_dispatcher_queues",
                              "Queues this process holds the lease of.", TL_GAUGE},
    [TL_DISPATCHER_UNAPPLIED] = {"tellerline_dispatcher_ingest_unapplied",
                                 "Ingest entries of these queues that are not yet applied.",
                                 TL_GAUGE},
    [TL_DISPATCHER_AGE] = {"tellerline_dispatcher_ingest_age_milliseconds",
                           "Age of the oldest of them.", TL_GAUGE},
    [TL_DISPATCHER_APPLY_TIME] = {"tellerline_dispatcher_apply_seconds",
                                  "From reading some ingest entries to having them applied.",
                                  TL_HISTOGRAM},
};

/* What is known of one queue whose lease is held. */
struct work {
    bool pending;                   /* look at what is pending before reading on */
    bool behind;                    /* entries may be there that are not applied */
    char applied[TL_STREAM_ID_MAX]; /* id of the last entry applied; "" for none */
    bool trim;                      /* `applied` has moved since the last trim */
};

struct dispatcher {
    struct tl_daemon *daemon;
    struct tl_keeper keeper;
    struct tl_apply *apply;
    struct tl_args args;
    struct tl_script lag_script;
    struct tl_log_limit lag_log;
    int64_t lag_due_ms;
    int64_t pending_due_ms; /* when to look for pending entries in any case */
    uint64_t epoch;         /* of the connection */
    uint64_t read_entries;  /* at a time */
};

static bool acquired(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct dispatcher *self = context;
    struct work *work = calloc(1, sizeof(*work));
    if (work == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    work->pending = work->behind = true;
    held->work = work;
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_DISPATCHER_TAKEOVERS, 1);
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_DISPATCHER_QUEUES, 1);
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    tl_log(TL_LOG_INFO, &fields, "lease taken, fence %llu", (unsigned long long)held->fence);
    return true;
}

static void lost(void *context, struct tl_held_queue *held)
{
    struct dispatcher *self = context;
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_DISPATCHER_QUEUES, -1);
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    tl_log(TL_LOG_INFO, &fields, "lease given up");
    free(held->work);
    held->work = NULL;
}

void *tl_dispatcher_start(struct tl_daemon *daemon, struct tl_error *err)
{
    const struct tl_config *config = tl_daemon_config(daemon);
    struct dispatcher *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the dispatcher");
        return NULL;
    }
    self->daemon = daemon;
    self->read_entries = READ_ENTRIES_MIN;
    const struct tl_keeper_settings keeper = {.roster = {.role = "dispatcher",
                                                         .fenced = true,
                                                         .context = self,
                                                         .acquired = acquired,
                                                         .lost = lost}};
    self->apply = tl_apply_new(config->streams.events_length);
    if (self->apply == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the dispatcher");
    else if (tl_keeper_init(&self->keeper, daemon, &keeper, err))
        return self;
    tl_dispatcher_stop(self);
    return NULL;
}

void tl_dispatcher_stop(void *state)
{
    struct dispatcher *self = state;
    tl_keeper_deinit(&self->keeper);
    tl_apply_free(&self->apply);
    tl_args_free(&self->args);
    free(self);
}

/* The held queue of this stream. The search starts at *at and moves it: the store answers in the
 * order of the command. */
static struct tl_held_queue *find_held(const struct dispatcher *self, const char *key, size_t *at)
{
    size_t n = tl_roster_count(self->keeper.roster);
    for (size_t k = 0; k < n; k++) {
        size_t i = (*at + k) % n;
        struct tl_held_queue *held = tl_roster_at(self->keeper.roster, i);
        if (strcmp(held->keys.names[TL_KEY_INGEST], key) == 0) {
            *at = i;
            return held;
        }
    }
    return NULL;
}

/* After any error: everything read so far and not applied is pending, so it is read again from
 * there. */
static void mark_pending(struct dispatcher *self)
{
    for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++) {
        struct work *work = tl_roster_at(self->keeper.roster, i)->work;
        work->pending = work->behind = true;
    }
}

static void report(struct dispatcher *self, const struct tl_apply_counts *counts,
                   int64_t started_us)
{
    struct tl_metrics *metrics = tl_daemon_metrics(self->daemon);
    tl_metrics_add(metrics, TL_DISPATCHER_BATCHES, (int64_t)counts->applied);
    tl_metrics_add(metrics, TL_DISPATCHER_REPEATED, (int64_t)counts->repeated);
    tl_metrics_add(metrics, TL_DISPATCHER_COMMANDS, (int64_t)counts->commands);
    tl_metrics_add(metrics, TL_DISPATCHER_POISON, (int64_t)counts->poison);
    tl_metrics_add(metrics, TL_DISPATCHER_LOST, (int64_t)counts->lost);
    tl_metrics_observe(metrics, TL_DISPATCHER_APPLY_TIME, tl_clock_us() - started_us);
}

/* How many entries the next read takes, after these. */
static uint64_t read_size(const struct tl_apply_counts *counts)
{
    uint64_t commands = counts->commands > 0 ? counts->commands : 1;
    uint64_t entries = READ_COMMANDS * counts->applied / commands;
    return entries < READ_ENTRIES_MIN   ? READ_ENTRIES_MIN
           : entries > READ_ENTRIES_MAX ? READ_ENTRIES_MAX
                                        : entries;
}

/* Applies the entries of one stream, [id, [field, value]] each, in pipelines. */
static bool apply_stream(struct dispatcher *self, struct tl_held_queue *held,
                         const struct tl_reply *entries, struct tl_error *err)
{
    struct tl_redis *redis = tl_keeper_redis(&self->keeper, held->keys.queue);
    struct work *work = held->work;
    struct tl_apply_counts counts = {0};
    int64_t started_us = tl_clock_us();
    size_t n = tl_reply_count(entries);
    work->behind = true;
    size_t i = 0;
    bool ok = true;
    while (ok && i < n) {
        size_t last = i;
        for (size_t k = 0; ok && k < TL_APPLY_ENTRIES_MAX && i < n; k++, i++) {
            const struct tl_reply *entry = tl_reply_at(entries, i);
            const struct tl_reply *payload = tl_reply_at(tl_reply_at(entry, 1), 1);
            size_t length;
            const char *bytes = tl_reply_string(payload, &length);
            ok = tl_apply_add(self->apply, redis, &held->keys, held->fence,
                              tl_reply_string(tl_reply_at(entry, 0), NULL),
                              payload != NULL ? bytes : NULL, length, err);
            last = i;
        }
        struct tl_error why = {0};
        if (!tl_apply_settle(self->apply, redis, &counts, &why)) {
            if (ok)
                *err = why;
            ok = false;
        } else if (ok) {
            snprintf(work->applied, sizeof(work->applied), "%s",
                     tl_reply_string(tl_reply_at(tl_reply_at(entries, last), 0), NULL));
            work->trim = true;
        }
    }
    report(self, &counts, started_us);
    self->read_entries = read_size(&counts);
    return ok;
}

/* *n gets how many entries there were. */
static bool apply_reply(struct dispatcher *self, const struct tl_reply *reply, size_t *n,
                        struct tl_error *err)
{
    size_t at = 0;
    *n = 0;
    for (size_t i = 0; i < tl_reply_count(reply); i++) {
        const struct tl_reply *stream = tl_reply_at(reply, i);
        const struct tl_reply *entries = tl_reply_at(stream, 1);
        struct tl_held_queue *held =
            find_held(self, tl_reply_string(tl_reply_at(stream, 0), NULL), &at);
        if (held == NULL)
            continue;
        if (tl_reply_count(entries) == 0) /* only where pending entries were asked for */
            ((struct work *)held->work)->pending = false;
        else if (!apply_stream(self, held, entries, err))
            return false;
        *n += tl_reply_count(entries);
    }
    return true;
}

/* Begins the command that reads on in streams: they and where to begin in them are to be added. */
static struct tl_args *begin_read(struct dispatcher *self)
{
    tl_args_reset(&self->args);
    tl_args_strs(&self->args, "XREADGROUP", "GROUP", TL_INGEST_GROUP, TL_INGEST_CONSUMER, "COUNT",
                 NULL);
    tl_args_uint(&self->args, self->read_entries);
    return &self->args;
}

/* One read of what is pending, of all queues that are marked so; *n gets how many entries it was.
 */
static bool read_pending(struct dispatcher *self, size_t *n, struct tl_error *err)
{
    struct tl_args *args = begin_read(self);
    size_t streams = 0;
    tl_args_str(args, "STREAMS");
    for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++) {
        const struct tl_held_queue *held = tl_roster_at(self->keeper.roster, i);
        if (!((const struct work *)held->work)->pending)
            continue;
        tl_args_str(args, held->keys.names[TL_KEY_INGEST]);
        streams++;
    }
    *n = 0;
    if (streams == 0)
        return true;
    for (size_t i = 0; i < streams; i++)
        tl_args_str(args, "0");
    struct tl_reply *reply = tl_redis_call(tl_keeper_redis(&self->keeper, NULL), args, err);
    bool ok = reply != NULL && apply_reply(self, reply, n, err);
    tl_reply_free(reply);
    return ok;
}

/* Applies what was delivered to somebody but never acknowledged, oldest first, until nothing is
 * left. */
static bool read_all_pending(struct dispatcher *self, int64_t now_ms, struct tl_error *err)
{
    if (now_ms >= self->pending_due_ms) {
        for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++)
            ((struct work *)tl_roster_at(self->keeper.roster, i)->work)->pending = true;
        self->pending_due_ms = now_ms + PENDING_CHECK_MS;
    }
    size_t n = 1;
    bool ok = true;
    while (ok && n > 0 && !tl_daemon_stopping(self->daemon))
        ok = read_pending(self, &n, err);
    return ok;
}

/* Drops applied entries from the stream. Entries are applied in order, so everything up to the last
 * one is. */
static bool trim(struct dispatcher *self, struct tl_error *err)
{
    for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->keeper.roster, i);
        struct work *work = held->work;
        if (!work->trim)
            continue;
        tl_args_reset(&self->args);
        tl_args_strs(&self->args, "XTRIM", held->keys.names[TL_KEY_INGEST], "MINID", "~",
                     work->applied, NULL);
        if (!tl_redis_do(tl_keeper_redis(&self->keeper, held->keys.queue), &self->args, err))
            return false;
        work->trim = false;
    }
    return true;
}

/* Waits for new entries of all queues held, until block_ms have passed, and applies them. */
static bool read_on(struct dispatcher *self, int64_t block_ms, struct tl_error *err)
{
    size_t n = tl_roster_count(self->keeper.roster);
    struct tl_args *args = begin_read(self);
    tl_args_str(args, "BLOCK");
    tl_args_int(args, block_ms);
    tl_args_str(args, "STREAMS");
    for (size_t i = 0; i < n; i++)
        tl_args_str(args, tl_roster_at(self->keeper.roster, i)->keys.names[TL_KEY_INGEST]);
    for (size_t i = 0; i < n; i++)
        tl_args_str(args, ">");
    struct tl_reply *reply =
        tl_redis_call_blocking(tl_keeper_redis(&self->keeper, NULL), args, block_ms, err);
    size_t entries;
    bool ok = reply != NULL && apply_reply(self, reply, &entries, err);
    tl_reply_free(reply);
    return ok;
}

/* Now and then: how far the queues held are behind. A queue that was not and from which nothing has
 * come since is not asked about: reading its stream would have brought what is there. Nobody's
 * place depends on it, so what the store refuses to tell is logged and stops nothing; only a broken
 * connection does. */
static bool measure_lag(struct dispatcher *self, int64_t now_ms, struct tl_error *err)
{
    struct tl_metrics *metrics = tl_daemon_metrics(self->daemon);
    struct tl_lag lag = {0};
    unsigned suppressed;
    if (now_ms < self->lag_due_ms)
        return true;
    self->lag_due_ms = now_ms + LAG_EVERY_MS;
    for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++) {
        const struct tl_held_queue *held = tl_roster_at(self->keeper.roster, i);
        const struct tl_keys *keys = &held->keys;
        struct work *work = held->work;
        struct tl_redis *redis = tl_keeper_redis(&self->keeper, keys->queue);
        struct tl_error why = {0};
        int64_t others = lag.entries;
        if (!work->behind)
            continue;
        if (tl_lag_add(&lag, redis, &self->lag_script, keys, &self->args, &why)) {
            work->behind = lag.entries > others;
            continue;
        }
        if (!tl_redis_connected(redis)) {
            *err = why;
            return false;
        }
        const struct tl_log_fields fields = {.queue = keys->queue, .error = &why};
        if (tl_log_allow(&self->lag_log, now_ms, LOG_EVERY_MS, &suppressed))
            tl_log(TL_LOG_WARN, &fields, "cannot tell how far the line is behind");
    }
    tl_metrics_set(metrics, TL_DISPATCHER_UNAPPLIED, lag.entries);
    tl_metrics_set(metrics, TL_DISPATCHER_AGE, lag.age_ms);
    return true;
}

static bool turn(struct dispatcher *self, int64_t now_ms, struct tl_error *err)
{
    if (!tl_store_connect(self->keeper.store, err))
        return false;
    uint64_t epoch = tl_redis_epoch(tl_keeper_redis(&self->keeper, NULL));
    if (epoch != self->epoch)
        mark_pending(self);
    self->epoch = epoch;
    if (!tl_roster_round(self->keeper.roster, self->keeper.store, now_ms, err) ||
        !measure_lag(self, now_ms, err) || !read_all_pending(self, now_ms, err) || !trim(self, err))
        return false;
    int64_t block_ms = tl_roster_due(self->keeper.roster) - tl_clock_ms();
    block_ms = block_ms < 1 ? 1 : block_ms > BLOCK_MAX_MS ? BLOCK_MAX_MS : block_ms;
    if (tl_roster_count(self->keeper.roster) == 0)
        return tl_daemon_pause(self->daemon, block_ms);
    return read_on(self, block_ms, err);
}

/* Somebody deleted a consumer group. All queues are read by one command, so one that has lost its
 * group would stop the others; and the roster mends only those of the configuration. */
static void mend_groups(struct dispatcher *self)
{
    for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++) {
        const struct tl_keys *keys = &tl_roster_at(self->keeper.roster, i)->keys;
        tl_args_reset(&self->args);
        tl_args_strs(&self->args, "XGROUP", "CREATE", keys->names[TL_KEY_INGEST], TL_INGEST_GROUP,
                     "0", "MKSTREAM", NULL);
        /* Most answer that they have theirs. What else is wrong, the next turn tells. */
        (void)tl_redis_do(tl_keeper_redis(&self->keeper, keys->queue), &self->args, NULL);
    }
}

bool tl_dispatcher_turn(void *state, int64_t now_ms, struct tl_error *err)
{
    struct dispatcher *self = state;
    if (turn(self, now_ms, err))
        return true;
    if (err->kind == TL_ERR_NOGROUP)
        mend_groups(self);
    mark_pending(self);
    tl_roster_recheck_now(self->keeper.roster);
    /* Not an error: the lease moved or the script cache was flushed. */
    return err->kind == TL_ERR_STALE || err->kind == TL_ERR_NOSCRIPT;
}
