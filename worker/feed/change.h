/* What the follower's thread posts to the loop: one change in the store. */
#ifndef TL_CHANGE_H
#define TL_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/line/line.h"
#include "worker/feed/mailbox.h"

enum tl_change_kind {
    TL_CHANGE_LINE,
    TL_CHANGE_ENTRY,
    TL_CHANGE_SETTINGS,
    TL_CHANGE_NOTICE,
    TL_CHANGE_GONE,
    TL_CHANGE_LISTED,
    TL_CHANGE_CLOCK,
    TL_CHANGE_STORE,
};

struct tl_change {
    struct tl_message message;
    enum tl_change_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];  /* "" for LISTED, CLOCK and STORE */
    struct tl_queue_settings *settings; /* LINE, SETTINGS; freed with the change */
    struct tl_line *line;               /* LINE; freed with the change unless taken */
    int64_t number;                     /* CLOCK, STORE */
    size_t length;                      /* ENTRY, NOTICE: bytes that follow */
    unsigned char bytes[];
};

/* Frees the change with this message: for the mailbox. */
void tl_change_free(struct tl_message *message);

/* Each posts a change to the mailbox, and fails without memory. */
bool tl_change_post_line(struct tl_mailbox *changes, const char *queue,
                         const struct tl_queue_settings *settings, struct tl_line *line,
                         struct tl_error *err); /* takes the line in any case */
bool tl_change_post_settings(struct tl_mailbox *changes, const char *queue,
                             const struct tl_queue_settings *settings, struct tl_error *err);
/* ENTRY or NOTICE. */
bool tl_change_post_bytes(struct tl_mailbox *changes, enum tl_change_kind kind, const char *queue,
                          const void *bytes, size_t length, struct tl_error *err);
bool tl_change_post_gone(struct tl_mailbox *changes, const char *queue, struct tl_error *err);
/* LISTED, CLOCK or STORE. */
bool tl_change_post_number(struct tl_mailbox *changes, enum tl_change_kind kind, int64_t number,
                           struct tl_error *err);

#endif
