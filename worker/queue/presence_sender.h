/* SPDX-License-Identifier: Apache-2.0 */
/* Sends which waiting visitors of a queue were seen (worker/queue/presence.h), as SEEN commands. */
#ifndef TL_PRESENCE_SENDER_H
#define TL_PRESENCE_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/feed/outbox.h"

struct tl_presence_sender;

/* The outbox is borrowed. NULL when out of memory. */
struct tl_presence_sender *tl_presence_sender_new(struct tl_outbox *outbox);
void tl_presence_sender_free(struct tl_presence_sender **sender);

/* Marks a visitor as seen. */
void tl_presence_sender_mark(struct tl_presence_sender *sender, uint64_t seq);
/* Forgets who was seen, after the queue was created again. */
void tl_presence_sender_forget(struct tl_presence_sender *sender);
/* Call every tick while the store is up: sends what is due. waiting: does anyone wait? */
void tl_presence_sender_tick(struct tl_presence_sender *sender, int64_t waiting_ttl_ms,
                             bool waiting, int64_t now_ms);
/* Sends the rest, and a farewell if anything was ever sent; nothing from then on. False when there
 * was no memory for the farewell. */
bool tl_presence_sender_farewell(struct tl_presence_sender *sender);

#endif
