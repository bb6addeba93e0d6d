/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/config/file_settings.h"
#include "common/store/file_queues.h"
#include "common/store/queue.h"
#include "common/store/retired.h"

struct file_queue {
    struct tl_queue_config config;
    bool away;     /* an operator deleted it */
    bool compared; /* with the store */
};

struct tl_file_queues {
    const char *key_prefix;
    const struct tl_actor *actor;
    struct file_queue *list;
    size_t n;
};

struct tl_file_queues *tl_file_queues_new(const char *key_prefix, const struct tl_config *config,
                                          const struct tl_actor *actor)
{
    struct tl_file_queues *self = calloc(1, sizeof(*self));
    struct file_queue *list = calloc(config->n_queues + 1, sizeof(*list));
    if (self == NULL || list == NULL) {
        free(self);
        free(list);
        return NULL;
    }
    *self = (struct tl_file_queues){
        .key_prefix = key_prefix, .actor = actor, .list = list, .n = config->n_queues};
    for (size_t i = 0; i < self->n; i++)
        list[i].config = config->queues[i];
    return self;
}

void tl_file_queues_free(struct tl_file_queues **file)
{
    if (*file != NULL)
        free((*file)->list);
    free(*file);
    *file = NULL;
}

size_t tl_file_queues_count(const struct tl_file_queues *file)
{
    return file->n;
}

const char *tl_file_queues_name(const struct tl_file_queues *file, size_t i)
{
    return file->list[i].config.name;
}

static struct file_queue *find(const struct tl_file_queues *file, const char *queue)
{
    for (size_t i = 0; i < file->n; i++)
        if (strcmp(file->list[i].config.name, queue) == 0)
            return &file->list[i];
    return NULL;
}

const struct tl_queue_settings *tl_file_queues_settings(const struct tl_file_queues *file,
                                                        const char *queue)
{
    const struct file_queue *found = find(file, queue);
    return found != NULL ? &found->config.settings : NULL;
}

bool tl_file_queues_away(const struct tl_file_queues *file, const char *queue)
{
    const struct file_queue *found = find(file, queue);
    return found != NULL && found->away;
}

bool tl_file_queues_missing(struct tl_file_queues *file, char (*names)[TL_QUEUE_NAME_MAX + 1],
                            size_t n)
{
    bool missing = false;
    for (size_t i = 0; i < file->n; i++) {
        struct file_queue *queue = &file->list[i];
        bool listed = tl_queue_find_name(names, n, queue->config.name, NULL);
        queue->away = queue->away && !listed;
        missing = missing || (!listed && !queue->away);
    }
    return missing;
}

bool tl_file_queues_make(struct tl_file_queues *file, struct tl_redis *redis, size_t i,
                         const struct tl_queue_settings *in_force, struct tl_error *err)
{
    struct file_queue *queue = &file->list[i];
    const char *prefix = file->key_prefix, *name = queue->config.name;
    if (queue->away) /* also when the store has lost the mark */
        return true;
    if (!tl_retired_read(redis, prefix, name, &queue->away, err))
        return false;
    if (queue->away)
        tl_retired_warn(name);
    else if (in_force != NULL)
        return tl_queue_bring_back(redis, prefix, name, in_force, file->actor, NULL, err);
    else
        return tl_queue_ensure(redis, prefix, name, &queue->config.settings, file->actor, NULL,
                               err);
    return true;
}

void tl_file_queues_compare(struct tl_file_queues *file, const char *queue,
                            const struct tl_queue_settings *stored)
{
    struct file_queue *found = find(file, queue);
    if (found == NULL || found->compared)
        return;
    tl_file_settings_log(&found->config, stored);
    found->compared = true;
}
