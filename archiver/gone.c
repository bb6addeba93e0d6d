/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archiver/archiver.h"
#include "common/base/grow.h"

void tl_archiver_add_gone(struct tl_archiver *self, const char *name)
{
    for (size_t i = 0; i < self->n_gone; i++)
        if (strcmp(self->gone[i]->held.keys.queue, name) == 0)
            return;
    struct tl_gone_queue **list =
        tl_grow(self->gone, &self->gone_capacity, self->n_gone + 1, sizeof(struct tl_gone_queue *));
    struct tl_gone_queue *gone = calloc(1, sizeof(*gone));
    self->gone = list != NULL ? list : self->gone;
    if (list == NULL || gone == NULL) {
        free(gone);
        return;
    }
    tl_keys_init(&gone->held.keys, self->config->redis.key_prefix, name);
    gone->held.state = &gone->queue;
    snprintf(gone->queue.written, sizeof(gone->queue.written), "0-0");
    list[self->n_gone++] = gone;
}

static void remove_gone(struct tl_archiver *self, size_t i)
{
    tl_archiver_let_go(&self->gone[i]->queue);
    free(self->gone[i]);
    self->gone[i] = self->gone[--self->n_gone];
}

bool tl_archiver_read_gone(struct tl_archiver *self, int64_t now_ms, struct tl_error *err)
{
    for (size_t i = self->n_gone; self->usable && !tl_archiver_is_full(self) && i-- > 0;) {
        struct tl_gone_queue *gone = self->gone[i];
        const struct tl_held_queue *held = &gone->held;
        bool is_there = false;
        gone->held.redis = tl_store_of(self->process->store, held->keys.queue);
        bool ok = tl_entries_queue_exists(held, &is_there, err) &&
                  (is_there || tl_archiver_read(self, &gone->held, now_ms, err));
        if (!ok && !tl_error_is_of_queue(err, held->redis))
            return false;
        /* Its node is away, its slot moves, or PostgreSQL rolled back: the next turn asks again. */
        if (!ok &&
            (tl_error_is_of_store(err) || (self->refused && self->database.postgres.may_pass)))
            continue;
        if (!ok) /* the next connection to PostgreSQL looks for it again */
            tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = held->keys.queue, .error = err},
                   "the rest of the record of a deleted queue cannot be read");
        if (!ok || is_there || (self->usable && tl_reply_count(gone->queue.reply) == 0))
            remove_gone(self, i);
    }
    return true;
}

bool tl_archiver_trim_gone(struct tl_archiver *self, struct tl_error *err)
{
    for (size_t i = 0; i < self->n_gone; i++) {
        struct tl_archived_queue *queue = &self->gone[i]->queue;
        bool ok = tl_entries_drop(&self->gone[i]->held, queue->taken, err);
        queue->known = (struct tl_archive_part){0};
        tl_archiver_let_go(queue); /* what is left is read again, and skipped: it was written */
        if (!ok && !tl_error_is_of_queue(err, self->gone[i]->held.redis))
            return false;
    }
    return true;
}

void tl_archiver_free_gone(struct tl_archiver *self)
{
    while (self->n_gone > 0)
        remove_gone(self, self->n_gone - 1);
    free(self->gone);
}
