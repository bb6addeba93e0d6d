/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one subscriber is told, and when: events over its stream, and what the client knows already.
 * Decides nothing about who is told; subscribers.c does.
 *
 * now_ms is local monotonic time everywhere.
 */
#ifndef TL_TELLING_H
#define TL_TELLING_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/queue/queue.h"
#include "worker/visit/subscriber_table.h"

/* The first places in the line are told of each step at once. */
#define TL_TELLING_FRONT 20

/* Is the client to be told this state now? Not if it knows, or was told a similar one lately. */
bool tl_telling_due(const struct tl_subscriber *subscriber, const struct tl_line_view *state,
                    int64_t now_ms);
/* Does the next view carry the ticket? */
bool tl_telling_gives_ticket(const struct tl_subscriber *subscriber,
                             const struct tl_line_view *state, int64_t now_ms);
/* The client knows this state. */
void tl_telling_note(struct tl_subscriber *subscriber, const struct tl_line_view *state,
                     int64_t now_ms);

/* The rest is for streams, and does nothing while one is still sending the last event. False when
 * the stream is to be dropped. */

/* Sends an event. data is JSON. */
bool tl_telling_event(struct tl_subscriber *subscriber, const char *event, const char *data,
                      int64_t now_ms);
/* Sends the view of the place. */
bool tl_telling_view(struct tl_subscriber *subscriber, const struct tl_line_view *state,
                     int64_t now_ms);
/* Sends when the client is to reconnect: in min_ms, and up to spread_ms more at random. */
bool tl_telling_retry(struct tl_subscriber *subscriber, unsigned min_ms, unsigned spread_ms);
/* Sends the notice or a heartbeat when one is due. */
bool tl_telling_maintain(struct tl_subscriber *subscriber, int64_t now_ms);

#endif
