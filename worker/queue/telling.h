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
#include <stddef.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/base/metrics.h"
#include "worker/queue/queue.h"
#include "worker/queue/subscriber_table.h"

/* Bytes that are enough for any view, with the longest target_url, the longest notice and a pass.
 */
#define TL_VIEW_MAX 16384

/* The first places in the line are told of each step at once. */
#define TL_TELLING_FRONT 20

/* What is told of the place of a ticket. */
struct tl_told {
    struct tl_queue *queue;
    const struct tl_ticket *ticket;
    const struct tl_line_view *state; /* of the place */
    bool give_ticket;                 /* the view carries the ticket */
    const char *language;             /* the visitor's, or NULL */
};
/* Writes the view as JSON (TL_VIEW_MAX bytes). Returns its length. */
typedef size_t tl_write_view(void *context, const struct tl_told *told, int64_t now_ms, char *text);

/* The same for all subscribers. */
struct tl_telling {
    struct tl_metrics *metrics;
    void *context; /* for write_view */
    tl_write_view *write_view;
};

/* The name of the event that tells a place in this state. */
const char *tl_telling_event_name(tl_place place, enum tl_line_status status);
/* The ticket of the subscriber's place. */
struct tl_ticket tl_telling_ticket(const struct tl_subscriber *subscriber);
/* Is the client to be told this state now? Not if it knows, or was told a similar one lately. */
bool tl_telling_due(const struct tl_subscriber *subscriber, const struct tl_line_view *state,
                    int64_t now_ms);
/* Does the next view carry the ticket? */
bool tl_telling_gives_ticket(const struct tl_subscriber *subscriber,
                             const struct tl_line_view *state, int64_t now_ms);
/* The client knows this state. */
void tl_telling_note(struct tl_subscriber *subscriber, const struct tl_line_view *state,
                     int64_t now_ms);

/* The rest is for streams; false when the stream is to be dropped. */

/* Sends an event. data is JSON. */
bool tl_telling_event(const struct tl_telling *telling, struct tl_subscriber *subscriber,
                      const char *event, const char *data, size_t length, int64_t now_ms);
/* Sends the view of the place. A stream that is still sending the last event is skipped. */
bool tl_telling_view(const struct tl_telling *telling, struct tl_subscriber *subscriber,
                     const struct tl_line_view *state, int64_t now_ms);
/* Sends the notice or a heartbeat when one is due. */
bool tl_telling_maintain(const struct tl_telling *telling, struct tl_subscriber *subscriber,
                         int64_t now_ms);

#endif
