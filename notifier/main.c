/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notifier: tells the webhooks of the configuration what happens to queues. It reads what the
 * other programs write into the journal of a queue, and slows none of them.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/config/webhook_table.h"
#include "common/role/role_main.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "notifier/alarm.h"
#include "notifier/feed.h"

enum {
    LOOK_MS = 1000,   /* between two looks at a queue */
    RENEW_MS = 20000, /* at least this often by the function, which keeps the journal alive */
};

static const struct tl_metric_desc metric_rows[TL_NOTIFIER_METRICS + TL_ROLE_METRICS] = {
    [TL_NOTIFIER_TOLD] = {"tellerline_webhooks_told_total", "Events delivered to webhooks.",
                          TL_COUNTER},
    [TL_NOTIFIER_LOST] = {"tellerline_webhooks_lost_total",
                          "Events lost because a webhook did not answer for too long.", TL_COUNTER},
    [TL_NOTIFIER_POSTS] = {"tellerline_webhooks_requests_total", "Requests to webhooks that ended.",
                           TL_COUNTER},
    [TL_NOTIFIER_FAILED] = {"tellerline_webhooks_requests_failed_total",
                            "Requests to webhooks that failed and are repeated.", TL_COUNTER},
    [TL_NOTIFIER_POST_TIME] = {"tellerline_webhooks_request_seconds", "One request to a webhook.",
                               TL_HISTOGRAM},
    [TL_NOTIFIER_LOOKS] = {"tellerline_webhooks_looks_total", "Calls of the function look.",
                           TL_COUNTER},
    [TL_NOTIFIER_WEBHOOKS] = {"tellerline_webhooks", "Configured webhooks.", TL_GAUGE},
    [TL_NOTIFIER_FAILING] = {"tellerline_webhooks_failing", "Webhooks that fail.", TL_GAUGE},
    [TL_NOTIFIER_FAILING_SECONDS] = {"tellerline_webhook_failing_seconds",
                                     "How long the webhook that fails longest has failed.",
                                     TL_GAUGE},
    [TL_NOTIFIER_METRICS] = TL_ROLE_METRIC_ROWS("notifier"),
};

/* The state of one held queue. */
struct queue {
    size_t n_feeds;
    struct tl_feed *feeds; /* of the webhooks that watch it */
    bool looked;           /* what follows is known */
    uint64_t generation, event, journaled;
    int64_t store_ms, store_at_ms; /* the store's clock at this local time */
    int64_t look_ms;               /* local monotonic: the next look... */
    int64_t script_ms;             /* ...and the next one by the function, whatever happens */
};

struct notifier {
    struct tl_process *process;
    const struct tl_config *config;
    struct tl_fetcher *fetcher;
    struct tl_args args;
    struct tl_store_watch watch;
    size_t n_webhooks;
    struct tl_webhook webhooks[TL_WEBHOOKS_MAX];
    struct tl_alarm alarms[TL_WEBHOOKS_MAX];
};

/* ---- queues acquired and lost ---- */

static bool take(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct notifier *self = context;
    struct queue *queue = held->state;
    queue->feeds = calloc(self->n_webhooks, sizeof(*queue->feeds));
    if (queue->feeds == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the webhooks of a queue");
    for (size_t i = 0; i < self->n_webhooks; i++)
        if (tl_webhook_watches(self->webhooks[i].config, held->keys.queue))
            tl_feed_init(&queue->feeds[queue->n_feeds++], &self->webhooks[i]);
    return true;
}

static void drop(void *context, struct tl_held_queue *held)
{
    struct queue *queue = held->state;
    (void)context;
    for (size_t i = 0; i < queue->n_feeds; i++)
        tl_feed_deinit(&queue->feeds[i]);
    free(queue->feeds);
}

static void outdated(void *context, struct tl_held_queue *held)
{
    struct queue *queue = held->state;
    (void)context;
    queue->looked = false;
    queue->look_ms = 0;
}

/* ---- looking at a queue ---- */

/* The arguments say what the journal is to hold, "" when no webhook watches the queue. */
static void begin_look(struct notifier *self, const struct tl_held_queue *held)
{
    const struct queue *queue = held->state;
    struct tl_args *args = &self->args;
    uint64_t thresholds[TL_WEBHOOKS_MAX];
    size_t n_thresholds = 0;
    char wish[32] = "";
    bool all = false;
    for (size_t i = 0; i < queue->n_feeds; i++) {
        const struct tl_webhook_config *config = queue->feeds[i].webhook->config;
        all = all || tl_webhook_wants(config, TL_WEBHOOK_ADMITTED);
        if (tl_webhook_wants(config, TL_WEBHOOK_THRESHOLD))
            thresholds[n_thresholds++] = config->threshold;
    }
    if (queue->n_feeds > 0)
        snprintf(wish, sizeof(wish), "%s:%llu", all ? "all" : "some",
                 (unsigned long long)self->config->retention.webhooks_entries);
    tl_call_begin(args, TL_FN_LOOK, &held->keys);
    tl_args_str(args, wish);
    tl_args_int(args, self->config->retention.webhooks_ms);
    tl_args_uint(args, queue->generation);
    tl_args_uint(args, n_thresholds);
    for (size_t i = 0; i < n_thresholds; i++)
        tl_args_uint(args, thresholds[i]);
    for (size_t i = 0; i < queue->n_feeds; i++)
        tl_args_str(args, queue->feeds[i].webhook->config->name);
}

static bool look(struct notifier *self, const struct tl_held_queue *held, struct tl_error *err)
{
    struct queue *queue = held->state;
    begin_look(self, held);
    struct tl_reply *reply = tl_call(held->redis, &self->args, err);
    if (reply == NULL)
        return false;
    int64_t now_ms = tl_clock_ms();
    queue->generation = tl_reply_number(reply, TL_LOOK_GENERATION);
    queue->event = tl_reply_number(reply, TL_LOOK_EVENT);
    queue->journaled = tl_reply_number(reply, TL_LOOK_JOURNALED);
    queue->store_ms = tl_reply_signed(reply, TL_LOOK_NOW);
    queue->store_at_ms = now_ms;
    int64_t again_ms = tl_reply_signed(reply, TL_LOOK_AGAIN);
    queue->script_ms = now_ms + (again_ms > 0 && again_ms < RENEW_MS ? again_ms : RENEW_MS);
    const struct tl_reply *cursors = tl_reply_at(reply, TL_LOOK_CURSORS);
    for (size_t i = 0; i < queue->n_feeds; i++)
        tl_feed_place(&queue->feeds[i], tl_reply_text(cursors, i));
    tl_reply_free(reply);
    queue->looked = true;
    tl_metrics_add(self->process->metrics, TL_NOTIFIER_LOOKS, 1);
    return true;
}

static bool look_when_due(struct notifier *self, const struct tl_held_queue *held, int64_t now_ms,
                          struct tl_error *err)
{
    struct queue *queue = held->state;
    bool due = now_ms >= queue->look_ms;
    bool by_script = !queue->looked || (queue->n_feeds > 0 && now_ms >= queue->script_ms);
    if (!by_script && queue->n_feeds > 0 && due) { /* a cheap look: is there any need? */
        struct tl_state state;
        if (!tl_state_read(held->redis, &held->keys, TL_STATE_EVENT, &state, err))
            return false;
        by_script = state.generation != queue->generation || state.event != queue->event;
    }
    if (by_script && !look(self, held, err))
        return false;
    if (by_script || due)
        queue->look_ms = now_ms + LOOK_MS;
    return true;
}

static bool serve(void *context, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms,
                  struct tl_error *err)
{
    struct notifier *self = context;
    struct queue *queue = held->state;
    if (!look_when_due(self, held, now_ms, err))
        return false;
    if (queue->n_feeds == 0)
        return true;
    const struct tl_feed_world world = {.redis = held->redis,
                                        .keys = &held->keys,
                                        .args = &self->args,
                                        .generation = queue->generation,
                                        .journaled = queue->journaled,
                                        .store_ms = queue->store_ms + now_ms - queue->store_at_ms,
                                        .kept_ms = self->config->retention.webhooks_ms};
    for (size_t i = 0; i < queue->n_feeds; i++)
        if (!tl_feed_serve(&queue->feeds[i], &world, now_ms, due_ms, err))
            return false;
    int64_t next_ms = queue->look_ms < queue->script_ms ? queue->look_ms : queue->script_ms;
    *due_ms = next_ms < *due_ms ? next_ms : *due_ms;
    return true;
}

/* ---- the turn ---- */

/* When did the webhook begin to fail, as one of its queues or its last request says? 0: it does
 * not.
 */
static int64_t fails_since(const struct notifier *self, const struct tl_webhook *webhook)
{
    int64_t since_ms = webhook->failing ? webhook->failing_since_ms : 0;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        const struct queue *queue = tl_roster_at(self->process->roster, i)->state;
        for (size_t j = 0; j < queue->n_feeds; j++) {
            const struct tl_feed *feed = &queue->feeds[j];
            if (feed->webhook == webhook && feed->failing_since_ms != 0 &&
                (since_ms == 0 || feed->failing_since_ms < since_ms))
                since_ms = feed->failing_since_ms;
        }
    }
    return since_ms;
}

static void count_failing(const struct notifier *self, int64_t now_ms)
{
    struct tl_metrics *metrics = self->process->metrics;
    int64_t failing = 0, longest_ms = 0;
    for (size_t i = 0; i < self->n_webhooks; i++) {
        int64_t since_ms = fails_since(self, &self->webhooks[i]);
        failing += since_ms != 0;
        if (since_ms != 0 && now_ms - since_ms > longest_ms)
            longest_ms = now_ms - since_ms;
    }
    tl_metrics_set(metrics, TL_NOTIFIER_FAILING, failing);
    tl_metrics_set(metrics, TL_NOTIFIER_FAILING_SECONDS, longest_ms / 1000);
}

static bool turn(void *context, int64_t now_ms, struct tl_error *err)
{
    struct notifier *self = context;
    struct tl_process *process = self->process;
    int64_t due_ms = INT64_MAX;
    bool ok =
        tl_process_refresh(process, now_ms, err) && tl_process_serve(process, now_ms, &due_ms, err);
    now_ms = tl_clock_ms();
    tl_alarm_watch(self->alarms, self->n_webhooks, &self->watch, ok,
                   tl_roster_count(process->roster) > 0, now_ms);
    for (size_t i = 0; i < self->n_webhooks; i++)
        tl_alarm_serve(&self->alarms[i], process->id, self->config->retention.webhooks_ms, now_ms);
    count_failing(self, now_ms);
    if (!ok)
        return false;
    struct pollfd either[] = {{.fd = process->signals->fd, .events = POLLIN},
                              {.fd = tl_fetcher_fd(self->fetcher), .events = POLLIN}};
    (void)poll(either, 2, (int)tl_process_wait_ms(process, due_ms, now_ms)); /* half a second */
    tl_fetcher_seen(self->fetcher);
    return true;
}

/* ---- start and stop ---- */

static bool load_webhooks(struct notifier *self, struct tl_error *err)
{
    struct tl_metrics *metrics = self->process->metrics;
    for (size_t i = 0; i < self->config->n_webhooks; i++) {
        const struct tl_webhook_config *config = &self->config->webhooks[i];
        struct tl_webhook *webhook = &self->webhooks[i];
        *webhook =
            (struct tl_webhook){.config = config, .fetcher = self->fetcher, .metrics = metrics};
        if (!tl_webhook_load(webhook, err))
            return tl_error_prefix(err, "webhook %s", config->name);
        tl_alarm_init(&self->alarms[i], webhook);
        self->n_webhooks++;
    }
    tl_metrics_set(metrics, TL_NOTIFIER_WEBHOOKS, (int64_t)self->n_webhooks);
    return true;
}

static bool open_notifier(void *context, struct tl_process *process, struct tl_error *err)
{
    struct notifier *self = context;
    self->process = process;
    self->config = process->config;
    if (self->config->n_webhooks == 0) {
        process->idle = "no webhooks are configured";
        tl_info("no webhooks are configured: there is nothing to do");
        return true;
    }
    self->fetcher =
        tl_fetcher_new(TL_WEBHOOKS_MAX * (TL_WEBHOOK_POSTS_MAX + 1), err); /* and an alarm */
    return self->fetcher != NULL && load_webhooks(self, err);
}

static void close_notifier(void *context)
{
    struct notifier *self = context;
    for (size_t i = 0; i < self->n_webhooks; i++)
        tl_alarm_deinit(&self->alarms[i]);
    sodium_memzero(self->webhooks, sizeof(self->webhooks)); /* with their secrets */
    tl_fetcher_free(&self->fetcher);
    tl_args_free(&self->args);
}

static const struct tl_role role = {
    .name = "notifier",
    .summary = "Sends the webhooks of the configuration.",
    .admin = offsetof(struct tl_config, admin.notifier),
    .size = sizeof(struct notifier),
    .queue_size = sizeof(struct queue),
    .metrics = metric_rows,
    .n_metrics = TL_NOTIFIER_METRICS,
    .open = open_notifier,
    .close = close_notifier,
    .turn = turn,
    .take = take,
    .drop = drop,
    .outdated = outdated,
    .serve = serve,
};

int main(int argc, char **argv)
{
    return tl_role_main(&role, argc, argv);
}
