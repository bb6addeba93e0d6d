/* What the events thread posts to the loop: an ordered list between two threads, bounded in bytes.
 */
#ifndef TL_MAILBOX_H
#define TL_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/config/config.h"
#include "common/line/line.h"
#include "common/wire/names.h"

enum tl_message_kind {
    TL_MESSAGE_LINE,
    TL_MESSAGE_ENTRY,
    TL_MESSAGE_SETTINGS,
    TL_MESSAGE_NOTICE,
    TL_MESSAGE_GONE,
    TL_MESSAGE_LISTED,
    TL_MESSAGE_CLOCK,
    TL_MESSAGE_STORE,
};

struct tl_message {
    struct tl_message *next;
    enum tl_message_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];
    struct tl_line *line;               /* LINE; freed with the message unless taken */
    struct tl_queue_settings *settings; /* LINE, SETTINGS */
    int64_t number;                     /* CLOCK, STORE */
    size_t length;                      /* ENTRY, NOTICE: bytes that follow */
    unsigned char bytes[];
};

struct tl_mailbox;

/* deliver is called on the loop's thread for each message, in order; the message is freed
 * afterwards. */
struct tl_mailbox *tl_mailbox_new(uv_loop_t *loop, void *context,
                                  void (*deliver)(void *context, struct tl_message *message));
/* After close no more posts are waited for; free closes the handle, which takes one more turn of
 * the loop. */
void tl_mailbox_close(struct tl_mailbox *box);
void tl_mailbox_free(struct tl_mailbox **box);

/* A new message with room for n bytes, or NULL. */
struct tl_message *tl_message_new(enum tl_message_kind kind, const char *queue, size_t n);
void tl_message_free(struct tl_message *message);
/* Posts (from the other thread), and waits while the loop is far behind. The message is the box's.
 */
void tl_mailbox_put(struct tl_mailbox *box, struct tl_message *message);

#endif
