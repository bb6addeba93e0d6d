/*
 * Telling visitors of a queue what changed: over event streams, and to requests that wait for a
 * change (long poll).
 *
 * Whoever is admitted, ends, or stands in front hears of it at once, from the event that did it.
 * All others are looked at in turn by one shared timer, the whole crowd about twice a second, and
 * hear of a new position unless they were told one so shortly before that it would only tire them:
 * the further back, the longer that is. Looking at somebody costs no command to the store, and
 * counts as their sign of life.
 */
#ifndef TL_PUSH_H
#define TL_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/wire/events.h"
#include "worker/http/server.h"

struct tl_room;
struct tl_push;

struct tl_push *tl_push_new(struct tl_room *room); /* NULL when out of memory */
/* Ends all streams and answers all waiting requests. */
void tl_push_free(struct tl_push **push);

/* Turns the request into an event stream of the ticket's visitor and sends the first event. The
 * place must be known. False when out of memory: then the request is still to be answered. */
bool tl_push_stream(struct tl_push *push, struct tl_request *request,
                    const struct tl_ticket *ticket, int64_t now_ms);
/* Holds the request until the ticket's place changes, or until deadline_ms, and answers it with the
 * view. */
bool tl_push_wait(struct tl_push *push, struct tl_request *request, const struct tl_ticket *ticket,
                  int64_t now_ms, int64_t deadline_ms);

/* Holds a join for whom there is room until the visitor has been called, so that the answer is
 * "active" at once; for a quarter of a second at most. The answer carries the ticket. */
bool tl_push_wait_for_admission(struct tl_push *push, struct tl_request *request,
                                const struct tl_ticket *ticket, int64_t now_ms);

/* After the line has taken an entry: tells those it concerns. */
void tl_push_entry(struct tl_push *push, const struct tl_event_entry *entry, int64_t now_ms);
/* Every tick: looks at some of the crowd, so that all had their turn after ROUND_MS. */
void tl_push_sweep(struct tl_push *push, int64_t now_ms);
/* From now on asks everybody to come back elsewhere, spread over until_ms. */
void tl_push_drain(struct tl_push *push, int64_t now_ms, int64_t until_ms);

/* Streams and waiting requests. */
size_t tl_push_count(const struct tl_push *push);

#endif
