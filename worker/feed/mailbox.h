/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to one thread, in the order in which they were put. The reader is the loop, which calls
 * back for every message, or a thread that waits for them.
 *
 * A message is any struct that begins with a struct tl_message. The mailbox has it from
 * tl_mailbox_put until the reader takes it over.
 */
#ifndef TL_MAILBOX_H
#define TL_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"

struct tl_message {
    struct tl_message *next;
    size_t bytes; /* as given to tl_mailbox_put */
};

/* First in, first out. A zeroed one is empty. */
struct tl_messages {
    struct tl_message *first, *last;
};
void tl_messages_add(struct tl_messages *messages, struct tl_message *message);
struct tl_message *tl_messages_take(struct tl_messages *messages); /* the first one, or NULL */

struct tl_mailbox;

/* Takes over a message on the loop's thread. */
typedef void tl_deliver(void *context, struct tl_message *message);

/* bytes_max: writers wait while more than this is not delivered. loop: the reader, with `deliver`;
 * NULL: a thread. NULL on failure, with err set. */
struct tl_mailbox *tl_mailbox_new(uv_loop_t *loop, size_t bytes_max, tl_deliver *deliver,
                                  void *context, struct tl_error *err);
/* From any thread: writers no longer wait, and a reader's wait ends. */
void tl_mailbox_close(struct tl_mailbox *box);
/* Moves what was not delivered to the end of the list. No other thread may use the mailbox
 * now. A loop must run one more turn to close the handle. NULL behind the pointer is allowed. */
void tl_mailbox_free(struct tl_mailbox **box, struct tl_messages *left);

/* From any thread. Waits while more than bytes_max are undelivered, until the reader has taken them
 * or the mailbox is closed. `bytes` is the size of this message. */
void tl_mailbox_put(struct tl_mailbox *box, struct tl_message *message, size_t bytes);

/* For a reader that is a thread: waits for messages until this time (tl_clock_ms) and moves them
 * to the end of the list. False once the mailbox is closed. */
bool tl_mailbox_wait(struct tl_mailbox *box, int64_t until_ms, struct tl_messages *messages);

#endif
