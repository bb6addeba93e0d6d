/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/named.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/troubles.h"

enum {
    CALM_MS = 60000, /* a trouble that comes back within it is the same one: its pause grows */
    LOG_OTHER_MS = 60000,
    LOG_SAME_MS = 600000,
    NODE_CALM_MS = 2000, /* as CALM_MS, for the trouble of a node */
    NODE_LOG_MS = 3000,  /* which is logged when it has lasted this long */
};

struct trouble {
    char queue[TL_QUEUE_NAME_MAX + 1];
    bool set_aside;
    bool logged; /* since the queue was last served */
    int64_t pause_ms;
    int64_t retry_ms;  /* try again then */
    int64_t noted_ms;  /* the last time */
    int64_t since_ms;  /* the first time since it was served */
    int64_t logged_ms; /* when the text was logged */
    char text[sizeof(((struct tl_error *)NULL)->text)];
};

struct tl_troubles {
    struct tl_named list; /* struct trouble */
    size_t n_aside;
};

struct tl_troubles *tl_troubles_new(void)
{
    return calloc(1, sizeof(struct tl_troubles));
}

void tl_troubles_free(struct tl_troubles **troubles)
{
    if (*troubles == NULL)
        return;
    for (size_t i = 0; i < (*troubles)->list.n; i++)
        free((*troubles)->list.all[i].thing);
    tl_named_free(&(*troubles)->list);
    free(*troubles);
    *troubles = NULL;
}

bool tl_error_is_of_store(const struct tl_error *err)
{
    switch (err->kind) {
    case TL_ERR_CONNECT:
    case TL_ERR_TIMEOUT:
    case TL_ERR_LOADING:
    case TL_ERR_READONLY:
    case TL_ERR_MOVED:
    case TL_ERR_MISCONF:
    case TL_ERR_OOM:
        return true;
    default:
        return false;
    }
}

bool tl_error_is_of_queue(const struct tl_error *err, const struct tl_redis *redis)
{
    if (tl_redis_is_node(redis) && (tl_error_is_of_store(err) || err->kind == TL_ERR_PROTOCOL))
        return true;
    switch (err->kind) {
    case TL_ERR_STORE:
    case TL_ERR_NOQUEUE:
    case TL_ERR_NOGROUP:
    case TL_ERR_PROTOCOL: /* a broken connection is closed */
    case TL_ERR_INVALID:
    case TL_ERR_ORDER:
        return tl_redis_connected(redis);
    default:
        return false;
    }
}

static struct trouble *find(const struct tl_troubles *troubles, const char *queue)
{
    return tl_named_find(&troubles->list, queue);
}

/* NULL when out of memory. */
static struct trouble *find_or_add(struct tl_troubles *troubles, const char *queue)
{
    struct trouble *trouble = find(troubles, queue);
    if (trouble != NULL)
        return trouble;
    trouble = malloc(sizeof(*trouble));
    if (trouble == NULL)
        return NULL;
    *trouble = (struct trouble){.noted_ms = INT64_MIN / 2, .logged_ms = INT64_MIN / 2};
    snprintf(trouble->queue, sizeof(trouble->queue), "%s", queue);
    if (tl_named_add(&troubles->list, trouble->queue, trouble))
        return trouble;
    free(trouble);
    return NULL;
}

void tl_troubles_note(struct tl_troubles *troubles, const char *queue, const struct tl_error *err,
                      int64_t now_ms)
{
    struct trouble *trouble = find_or_add(troubles, queue);
    const struct tl_log_fields fields = {.queue = queue, .error = err};
    if (trouble == NULL) {
        tl_log(TL_LOG_ERROR, &fields, "no memory to set the queue aside");
        return;
    }
    const bool node = tl_error_is_of_store(err);
    const int64_t least_ms = node ? TL_NODE_PAUSE_MS : TL_TROUBLE_PAUSE_MS;
    const int64_t most_ms = node ? TL_NODE_PAUSE_MAX_MS : TL_TROUBLE_PAUSE_MAX_MS;
    const int64_t calm_ms = node ? NODE_CALM_MS : CALM_MS;
    bool same = now_ms - trouble->noted_ms < trouble->pause_ms + calm_ms;
    trouble->pause_ms = same && trouble->pause_ms >= least_ms ? trouble->pause_ms * 2 : least_ms;
    if (trouble->pause_ms > most_ms)
        trouble->pause_ms = most_ms;
    trouble->retry_ms = now_ms + trouble->pause_ms;
    trouble->noted_ms = now_ms;
    if (!trouble->set_aside)
        trouble->since_ms = now_ms;
    troubles->n_aside += trouble->set_aside ? 0 : 1;
    trouble->set_aside = true;
    int64_t since_ms = now_ms - trouble->logged_ms;
    bool known = strcmp(trouble->text, err->text) == 0 && trouble->logged;
    snprintf(trouble->text, sizeof(trouble->text), "%s", err->text);
    if (node && now_ms - trouble->since_ms < NODE_LOG_MS)
        return;
    if (since_ms < (known ? LOG_SAME_MS : LOG_OTHER_MS))
        return;
    trouble->logged = true;
    trouble->logged_ms = now_ms;
    /* NOQUEUE alone: the queue is being deleted or was not created yet. */
    tl_log(err->kind == TL_ERR_NOQUEUE ? TL_LOG_WARN : TL_LOG_ERROR, &fields,
           "this queue is not served, the others are; trying it again");
}

int64_t tl_troubles_due(const struct tl_troubles *troubles, int64_t now_ms)
{
    int64_t due_ms = INT64_MAX;
    for (size_t i = 0; troubles->n_aside > 0 && i < troubles->list.n; i++) {
        const struct trouble *trouble = troubles->list.all[i].thing;
        if (trouble->set_aside && trouble->retry_ms > now_ms && trouble->retry_ms < due_ms)
            due_ms = trouble->retry_ms;
    }
    return due_ms;
}

bool tl_troubles_resting(const struct tl_troubles *troubles, const char *queue, int64_t now_ms)
{
    const struct trouble *trouble = troubles->n_aside > 0 ? find(troubles, queue) : NULL;
    return trouble != NULL && trouble->set_aside && now_ms < trouble->retry_ms;
}

int64_t tl_troubles_lasted_ms(const struct tl_troubles *troubles, const char *queue, int64_t now_ms)
{
    const struct trouble *trouble = troubles->n_aside > 0 ? find(troubles, queue) : NULL;
    return trouble != NULL && trouble->set_aside ? now_ms - trouble->since_ms : 0;
}

void tl_troubles_retry(struct tl_troubles *troubles, const char *queue)
{
    for (size_t i = 0; i < troubles->list.n; i++) {
        struct trouble *trouble = troubles->list.all[i].thing;
        if (queue == NULL || strcmp(trouble->queue, queue) == 0)
            trouble->retry_ms = INT64_MIN;
    }
}

bool tl_troubles_end(struct tl_troubles *troubles, const char *queue, int64_t now_ms)
{
    struct trouble *trouble = troubles->n_aside > 0 ? find(troubles, queue) : NULL;
    if (trouble == NULL || !trouble->set_aside)
        return false;
    trouble->set_aside = false;
    trouble->noted_ms = now_ms;
    troubles->n_aside--;
    if (trouble->logged)
        tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = queue}, "the queue is served again");
    trouble->logged = false;
    return true;
}

void tl_troubles_forget(struct tl_troubles *troubles, const char *queue)
{
    struct trouble *trouble = find(troubles, queue);
    if (trouble == NULL)
        return;
    troubles->n_aside -= trouble->set_aside ? 1 : 0;
    free(tl_named_remove(&troubles->list, queue));
}

size_t tl_troubles_count(const struct tl_troubles *troubles)
{
    return troubles->n_aside;
}

void tl_troubles_describe(const struct tl_troubles *troubles, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < troubles->list.n && length + 1 < size; i++) {
        const struct trouble *trouble = troubles->list.all[i].thing;
        if (!trouble->set_aside)
            continue;
        int n = snprintf(text + length, size - length, "%s%s: %s",
                         length == 0 ? "not served: " : "; ", trouble->queue, trouble->text);
        length += n > 0 ? (size_t)n : 0;
    }
}

/* ---- mending ---- */

/* Returns { what was mended, what is wrong }. */
static struct tl_reply *run(struct tl_redis *redis, const struct tl_keys *keys, const char *how,
                            const struct tl_queue_settings *settings, const struct tl_actor *actor,
                            struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_MEND, keys);
    tl_args_strs(&args, how, TL_EVENTS_KEPT, NULL);
    if (settings != NULL)
        tl_queue_append_settings(settings, &args);
    tl_actor_append(actor, &args);
    return tl_call_once(redis, &args, err);
}

bool tl_queue_examine(struct tl_redis *redis, const struct tl_keys *keys, char wrong[320],
                      struct tl_error *err)
{
    struct tl_reply *reply = run(redis, keys, "look", NULL, &(struct tl_actor){0}, err);
    if (reply == NULL)
        return false;
    snprintf(wrong, 320, "%s", tl_reply_text(reply, 1));
    tl_reply_free(reply);
    return true;
}

bool tl_queue_set_aside(struct tl_troubles *troubles, struct tl_redis *redis,
                        const struct tl_keys *keys, const struct tl_mend_offer *offer,
                        struct tl_error *err, int64_t now_ms)
{
    struct tl_error problem = {0};
    if (tl_error_is_of_store(err)) { /* there is nothing to mend in its data */
        tl_troubles_note(troubles, keys->queue, err, now_ms);
        return true;
    }
    struct tl_reply *reply = run(redis, keys, offer->from_memory ? "memory" : "file",
                                 offer->settings, offer->actor, &problem);
    const char *mended = tl_reply_text(reply, 0);
    const char *wrong = tl_reply_text(reply, 1);
    if (wrong[0] != '\0' || mended[0] != '\0')
        tl_error_set(err, TL_ERR_STORE, "%s", wrong[0] != '\0' ? wrong : mended);
    /* A worker's own user of the store may not mend: the other programs do. */
    bool is_absent =
        err->kind == TL_ERR_NOQUEUE && (reply != NULL || problem.kind == TL_ERR_DENIED);
    tl_reply_free(reply);
    if (is_absent)
        return false;
    tl_troubles_note(troubles, keys->queue, err, now_ms);
    return true;
}
