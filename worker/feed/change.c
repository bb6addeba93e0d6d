/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/feed/change.h"

static struct tl_change *new_change(enum tl_change_kind kind, const char *queue, size_t length,
                                    struct tl_error *err)
{
    struct tl_change *change = calloc(1, sizeof(*change) + length);
    if (change == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a change in the store");
        return NULL;
    }
    change->kind = kind;
    change->length = length;
    snprintf(change->queue, sizeof(change->queue), "%s", queue);
    return change;
}

void tl_change_free(struct tl_message *message)
{
    struct tl_change *change = (struct tl_change *)message;
    tl_line_free(&change->line);
    free(change->settings);
    free(change->blocks);
    free(change);
}

static bool post(struct tl_mailbox *changes, struct tl_change *change)
{
    tl_mailbox_put(changes, &change->message, sizeof(*change) + change->length);
    return true;
}

static struct tl_change *new_with_settings(enum tl_change_kind kind, const char *queue,
                                           const struct tl_queue_settings *settings,
                                           struct tl_error *err)
{
    struct tl_change *change = new_change(kind, queue, 0, err);
    if (change == NULL)
        return NULL;
    change->settings = malloc(sizeof(*settings));
    if (change->settings == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the settings of queue %s", queue);
        free(change);
        return NULL;
    }
    *change->settings = *settings;
    return change;
}

bool tl_change_post_line(struct tl_mailbox *changes, const char *queue,
                         const struct tl_queue_settings *settings, struct tl_line *line,
                         struct tl_error *err)
{
    struct tl_change *change = new_with_settings(TL_CHANGE_LINE, queue, settings, err);
    if (change == NULL) {
        tl_line_free(&line);
        return false;
    }
    change->line = line;
    return post(changes, change);
}

bool tl_change_post_settings(struct tl_mailbox *changes, const char *queue,
                             const struct tl_queue_settings *settings, struct tl_error *err)
{
    struct tl_change *change = new_with_settings(TL_CHANGE_SETTINGS, queue, settings, err);
    return change != NULL && post(changes, change);
}

bool tl_change_post_bytes(struct tl_mailbox *changes, enum tl_change_kind kind, const char *queue,
                          const void *bytes, size_t length, struct tl_error *err)
{
    struct tl_change *change = new_change(kind, queue, length, err);
    if (change == NULL)
        return false;
    if (length > 0)
        memcpy(change->bytes, bytes, length);
    return post(changes, change);
}

bool tl_change_post_gone(struct tl_mailbox *changes, const char *queue, struct tl_error *err)
{
    struct tl_change *change = new_change(TL_CHANGE_GONE, queue, 0, err);
    return change != NULL && post(changes, change);
}

bool tl_change_post_blocks(struct tl_mailbox *changes, struct tl_blocks *blocks,
                           struct tl_error *err)
{
    struct tl_change *change = new_change(TL_CHANGE_BLOCKS, "", 0, err);
    if (change == NULL) {
        free(blocks);
        return false;
    }
    change->blocks = blocks;
    return post(changes, change);
}

bool tl_change_post_number(struct tl_mailbox *changes, enum tl_change_kind kind, int64_t number,
                           struct tl_error *err)
{
    struct tl_change *change = new_change(kind, "", 0, err);
    if (change == NULL)
        return false;
    change->number = number;
    return post(changes, change);
}
