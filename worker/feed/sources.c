/* The queues that the follower knows. */
#include <stdlib.h>
#include <string.h>

#include "common/config/queue_settings.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/snapshot.h"
#include "worker/feed/sources.h"

/* The longest value of a setting, as text: all lanes, or an address. */
enum { SETTING_MAX = 2048 };

/* Queues looked at in one round: with more, each has its turn every few rounds, so that a thousand
 * idle queues cost the store no more than these. */
enum { LOOKS_A_ROUND = 32 };

static bool no_memory(struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOMEM, "no memory for what happened in the store");
}

bool tl_follower_post_number(struct tl_follower *follower, enum tl_message_kind kind,
                             int64_t number, struct tl_error *err)
{
    struct tl_message *message = tl_message_new(kind, NULL, 0);
    if (message == NULL)
        return no_memory(err);
    message->number = number;
    tl_mailbox_put(follower->box, message);
    return true;
}

/* line may be NULL: settings only. Takes the line over in any case. */
static bool post_settings(struct tl_follower *follower, const struct tl_source *source,
                          struct tl_line *line, struct tl_error *err)
{
    struct tl_message *message =
        tl_message_new(line != NULL ? TL_MESSAGE_LINE : TL_MESSAGE_SETTINGS, source->keys.queue, 0);
    struct tl_queue_settings *copy = malloc(sizeof(*copy));
    if (message == NULL || copy == NULL) {
        free(message);
        free(copy);
        tl_line_free(&line);
        return no_memory(err);
    }
    *copy = source->settings;
    message->settings = copy;
    message->line = line;
    tl_mailbox_put(follower->box, message);
    return true;
}

/* What the operator says to everybody in the queue. */
static bool post_notice(struct tl_follower *follower, struct tl_redis *redis,
                        const struct tl_source *source, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "HGET", source->keys.names[TL_KEY_STATE], "notice", NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    size_t length;
    const char *text = tl_reply_string(reply, &length);
    struct tl_message *message = tl_message_new(TL_MESSAGE_NOTICE, source->keys.queue, length);
    if (message != NULL && length > 0)
        memcpy(message->bytes, text, length);
    tl_reply_free(reply);
    if (message == NULL)
        return no_memory(err);
    tl_mailbox_put(follower->box, message);
    return true;
}

/* ---- queues ---- */

struct tl_source *tl_sources_find(const struct tl_follower *follower, const char *queue)
{
    for (size_t i = 0; i < follower->n; i++) {
        if (strcmp(follower->sources[i]->keys.queue, queue) == 0)
            return follower->sources[i];
    }
    return NULL;
}

/* The i-th queue from the one whose turn it is. */
static struct tl_source *in_turn(const struct tl_follower *follower, size_t i)
{
    return follower->sources[(follower->turn + i) % follower->n];
}

static bool add_source(struct tl_follower *follower, const char *queue, struct tl_error *err)
{
    struct tl_source *source = calloc(1, sizeof(*source));
    struct tl_source **sources = reallocarray(NULL, follower->n + 1, sizeof(struct tl_source *));
    if (source == NULL || sources == NULL) {
        free(source);
        free(sources);
        return no_memory(err);
    }
    tl_keys_init(&source->keys, follower->settings.key_prefix, queue);
    source->listed = true;
    pthread_mutex_lock(&follower->mutex);
    if (follower->n > 0)
        memcpy(sources, follower->sources, follower->n * sizeof(struct tl_source *));
    free(follower->sources);
    follower->sources = sources;
    follower->sources[follower->n++] = source;
    pthread_mutex_unlock(&follower->mutex);
    return true;
}

static bool drop_source(struct tl_follower *follower, size_t i, struct tl_error *err)
{
    struct tl_source *source = follower->sources[i];
    struct tl_message *message = tl_message_new(TL_MESSAGE_GONE, source->keys.queue, 0);
    if (message == NULL)
        return no_memory(err);
    tl_mailbox_put(follower->box, message);
    tl_tail_forget(follower->tail, &source->keys);
    pthread_mutex_lock(&follower->mutex);
    follower->sources[i] = follower->sources[--follower->n];
    pthread_mutex_unlock(&follower->mutex);
    free(source);
    return true;
}

/* Adds the names that are new, and notes which of the known are among them. names is sorted. */
static bool compare(struct tl_follower *follower, char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n,
                    struct tl_error *err)
{
    bool *known = calloc(n > 0 ? n : 1, sizeof(*known));
    if (known == NULL)
        return no_memory(err);
    for (size_t i = 0; i < follower->n; i++) {
        struct tl_source *source = follower->sources[i];
        size_t at;
        source->listed = tl_queue_find_name(names, n, source->keys.queue, &at);
        if (source->listed)
            known[at] = true;
    }
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = known[i] || add_source(follower, names[i], err);
    free(known);
    return ok;
}

bool tl_sources_list(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    if (!tl_queue_list(redis, follower->settings.key_prefix, &names, &n, err))
        return false;
    for (size_t i = 0; i < follower->n_configured; i++) {
        if (!tl_queue_find_name(names, n, follower->configured[i].name, NULL))
            follower->ensure = true;
    }
    bool ok = compare(follower, names, n, err);
    free(names);
    for (size_t i = follower->n; ok && i > 0; i--) {
        if (!follower->sources[i - 1]->listed)
            ok = drop_source(follower, i - 1, err);
    }
    return ok;
}

static bool take_flag(struct tl_follower *follower, bool *flag)
{
    pthread_mutex_lock(&follower->mutex);
    bool was = *flag;
    *flag = false;
    pthread_mutex_unlock(&follower->mutex);
    return was;
}

/* Builds the line and posts it; from then on its events are followed. A queue that is just being
 * deleted is no failure: the next round finds out. */
static bool rebuild(struct tl_follower *follower, struct tl_redis *redis, struct tl_source *source,
                    struct tl_error *err)
{
    struct tl_tail_head head;
    struct tl_error problem = {0};
    (void)take_flag(follower, &source->rebuild);
    struct tl_line *line = NULL;
    if (tl_queue_load(redis, &source->keys, &source->settings, &problem))
        line = tl_snapshot(redis, &source->keys, &head, &problem);
    if (line == NULL) {
        if (problem.kind == TL_ERR_NOQUEUE) {
            tl_tail_forget(follower->tail, &source->keys);
            source->posted = false;
            return true;
        }
        *err = problem;
        return tl_error_prefix(err, "loading queue %s", source->keys.queue);
    }
    source->generation = tl_line_generation(line);
    source->posted = true;
    return post_settings(follower, source, line, err) &&
           post_notice(follower, redis, source, err) &&
           tl_tail_follow(follower->tail, &source->keys, &head, err);
}

static bool same_settings(const struct tl_queue_settings *a, const struct tl_queue_settings *b)
{
    char value_a[SETTING_MAX];
    char value_b[SETTING_MAX];
    const char *name;
    for (size_t i = 0; tl_queue_settings_get(a, i, &name, value_a, sizeof(value_a)); i++) {
        if (!tl_queue_settings_get(b, i, &name, value_b, sizeof(value_b)) ||
            strcmp(value_a, value_b) != 0)
            return false;
    }
    return true;
}

/* Queues that were found since the last round. */
static bool load_new(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err)
{
    for (size_t i = 0; i < follower->n; i++) {
        struct tl_source *source = follower->sources[i];
        if (!source->posted && !rebuild(follower, redis, source, err))
            return false;
    }
    return true;
}

static bool reload_settings(struct tl_follower *follower, struct tl_redis *redis,
                            struct tl_source *source, struct tl_error *err)
{
    struct tl_queue_settings settings;
    struct tl_error problem = {0};
    if (!tl_queue_load(redis, &source->keys, &settings, &problem)) {
        *err = problem;
        return problem.kind == TL_ERR_NOQUEUE;
    }
    if (same_settings(&settings, &source->settings))
        return true;
    source->settings = settings;
    return post_settings(follower, source, NULL, err);
}

/* Was this queue made anew, were its settings changed by hand? */
static bool judge(struct tl_follower *follower, struct tl_redis *redis, struct tl_source *source,
                  const struct tl_queue_info *look, struct tl_error *err)
{
    if (!source->posted || look->generation != source->generation)
        return rebuild(follower, redis, source, err);
    if (same_settings(&look->settings, &source->settings))
        return true;
    source->settings = look->settings;
    return post_settings(follower, source, NULL, err);
}

/* One pipeline of looks at the n queues from `first` on, in a ring. All answers are taken before
 * any is acted upon. */
static bool look_at(struct tl_follower *follower, struct tl_redis *redis, size_t n,
                    struct tl_queue_info *looks, struct tl_error *problems, struct tl_error *err)
{
    size_t asked = 0;
    bool ok = true;
    while (ok && asked < n) {
        ok = tl_queue_info_send(redis, &in_turn(follower, asked)->keys, err);
        asked += ok ? 1 : 0;
    }
    for (size_t i = 0; i < asked; i++) {
        const struct tl_keys *keys = &in_turn(follower, i)->keys;
        (void)tl_queue_info_receive(redis, keys, &looks[i], &problems[i]);
    }
    return ok;
}

bool tl_sources_check(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err)
{
    struct tl_queue_info looks[LOOKS_A_ROUND];
    struct tl_error problems[LOOKS_A_ROUND] = {0};
    size_t n = follower->n < LOOKS_A_ROUND ? follower->n : LOOKS_A_ROUND;
    if (!load_new(follower, redis, err) || !look_at(follower, redis, n, looks, problems, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct tl_source *source = in_turn(follower, i);
        if (problems[i].kind == TL_ERR_NOQUEUE) {
            follower->ensure = true; /* listed, but gone */
        } else if (problems[i].kind != TL_OK) {
            *err = problems[i];
            return false;
        } else if (!judge(follower, redis, source, &looks[i], err)) {
            return false;
        }
    }
    follower->turn = n > 0 ? (follower->turn + n) % follower->n : 0;
    return true;
}

/* What the loop asked for since the last turn. */
bool tl_sources_serve(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err)
{
    for (size_t i = 0; i < follower->n; i++) {
        struct tl_source *source = follower->sources[i];
        if (take_flag(follower, &source->rebuild) && !rebuild(follower, redis, source, err)) {
            tl_follower_rebuild(follower, source->keys.queue);
            return false;
        }
        if (take_flag(follower, &source->reload) && !reload_settings(follower, redis, source, err))
            return false;
    }
    return true;
}
