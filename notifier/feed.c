/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "notifier/feed.h"

enum {
    BACKOFF_BASE_MS = 1000,
    BACKOFF_LIMIT_MS = 300000,
    BATCH_MS = 1000, /* after a request: admissions are gathered so long */
};

void tl_feed_init(struct tl_feed *feed, struct tl_hook *hook)
{
    *feed = (struct tl_feed){.hook = hook};
    tl_backoff_init(&feed->backoff, BACKOFF_BASE_MS, BACKOFF_LIMIT_MS);
}

void tl_feed_deinit(struct tl_feed *feed)
{
    tl_hook_break_off(feed->hook, &feed->post);
}

void tl_feed_place(struct tl_feed *feed, const struct tl_cursor *cursor)
{
    if (feed->post != NULL)
        return;
    feed->cursor = *cursor;
    feed->placed = true;
}

/* What the store is to know. */
struct report {
    const struct tl_cursor *cursor; /* NULL: it stays */
    uint64_t told, lost;
    long status;
    const char *problem; /* "": none */
};

static bool report(struct tl_feed *feed, const struct tl_feed_world *world,
                   const struct report *said, struct tl_error *err)
{
    struct tl_args *args = world->args;
    char cursor[TL_CURSOR_ID_MAX + 24] = "";
    if (said->cursor != NULL)
        snprintf(cursor, sizeof(cursor), "%s %" PRIu64, said->cursor->id, said->cursor->n);
    tl_call_begin(args, TL_FN_TOLD, world->keys);
    tl_args_strs(args, feed->hook->config->name, cursor, NULL);
    tl_args_uint(args, said->told);
    tl_args_uint(args, said->lost);
    tl_args_int(args, said->status);
    tl_args_str(args, said->problem);
    struct tl_reply *reply = tl_call(world->redis, args, err);
    if (reply == NULL)
        return false;
    int64_t store_ms = tl_reply_signed(reply, 0);
    int64_t since_ms = tl_reply_signed(reply, 1);
    tl_reply_free(reply);
    feed->failing_since_ms = since_ms > 0 ? tl_clock_ms() - (store_ms - since_ms) : 0;
    if (said->cursor != NULL)
        feed->cursor = *said->cursor;
    struct tl_metrics *metrics = feed->hook->metrics;
    tl_metrics_add(metrics, TL_NOTIFIER_TOLD, (int64_t)said->told);
    tl_metrics_add(metrics, TL_NOTIFIER_LOST, (int64_t)said->lost);
    if (said->lost > 0)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = world->keys->queue},
               "%" PRIu64 " events are lost to hook %s, which did not answer for too long",
               said->lost, feed->hook->config->name);
    return true;
}

/* The text of a stranger: only what every terminal and JSON can show. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/* The request under way is over, or none is. */
static bool settle(struct tl_feed *feed, const struct tl_feed_world *world, int64_t now_ms,
                   struct tl_error *err)
{
    struct tl_post_result result;
    if (!tl_hook_result(feed->hook, &feed->post, now_ms, &result))
        return true;
    make_printable(result.problem);
    struct report said = {.status = result.status, .problem = result.problem};
    if (result.accepted) {
        said.cursor = &feed->sent_until;
        said.told = feed->sent_events;
        said.lost = feed->sent_lost;
        tl_backoff_reset(&feed->backoff);
        feed->due_ms = feed->sent_all ? now_ms + BATCH_MS : now_ms;
    } else {
        feed->due_ms = now_ms + tl_backoff_next(&feed->backoff, randombytes_random());
    }
    return report(feed, world, &said, err);
}

static bool tell(struct tl_feed *feed, const struct tl_feed_world *world, int64_t now_ms,
                 struct tl_error *err)
{
    struct tl_hook_batch batch;
    const struct tl_batch_wish wish = {.hook = feed->hook->config,
                                       .keys = world->keys,
                                       .generation = world->generation,
                                       .from = feed->cursor,
                                       .oldest_ms = world->store_ms - world->kept_ms};
    if (!tl_hook_batch_read(world->redis, &wish, &batch, err))
        return false;
    bool ok = true;
    if (batch.body != NULL) {
        feed->sent_until = batch.until;
        feed->sent_events = batch.events;
        feed->sent_lost = batch.lost;
        feed->sent_all = !batch.more;
        feed->post = tl_hook_post(feed->hook, batch.id, batch.body, batch.length, err);
        ok = feed->post != NULL;
    } else if (strcmp(batch.until.id, feed->cursor.id) != 0) { /* nothing to tell this hook */
        ok = report(feed, world, &(struct report){.cursor = &batch.until, .problem = ""}, err);
        feed->due_ms = batch.more ? now_ms : now_ms + BATCH_MS;
    } else { /* the journal is gone, or was trimmed to its end */
        feed->due_ms = now_ms + BATCH_MS;
    }
    free(batch.body);
    return ok;
}

bool tl_feed_serve(struct tl_feed *feed, const struct tl_feed_world *world, int64_t now_ms,
                   int64_t *due_ms, struct tl_error *err)
{
    if (!settle(feed, world, now_ms, err))
        return false;
    bool wanted = feed->placed && feed->post == NULL && feed->cursor.n != world->journaled;
    if (wanted && now_ms >= feed->due_ms && feed->hook->under_way < TL_HOOK_POSTS_MAX &&
        !tell(feed, world, now_ms, err))
        return false;
    if (wanted && feed->post == NULL && feed->due_ms < *due_ms)
        *due_ms = feed->due_ms;
    return true;
}
