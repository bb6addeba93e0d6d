/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One queue as a worker process knows it: its settings, its line (built from a snapshot, kept true
 * by events), the presence of its visitors, and the commands on their way to the store. Answers
 * every question about a place from memory. Knows nothing of HTTP, threads or subscribers.
 *
 * now_ms is local monotonic time everywhere.
 */
#ifndef TL_LOCAL_QUEUE_H
#define TL_LOCAL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/config/config.h"
#include "common/config/mode.h"
#include "common/line/line.h"
#include "common/store/state.h"
#include "worker/feed/outbox.h"
#include "worker/queue/env.h"
#include "worker/queue/eta.h"
#include "worker/queue/notice.h"
#include "worker/queue/promises.h"

struct tl_local_queue;
struct tl_subscribers;

/* env must outlive the queue. NULL when out of memory. */
struct tl_local_queue *tl_local_queue_new(const struct tl_queue_env *env, const char *name);
/* Settles all pending commands. Clears the caller's pointer; NULL behind it is allowed. */
void tl_local_queue_free(struct tl_local_queue **queue);

/* ---- what is known ---- */

const char *tl_local_queue_name(const struct tl_local_queue *queue);
const struct tl_queue_settings *tl_local_queue_settings(const struct tl_local_queue *queue);
/* Is there a line? The functions below that say so need one. */
bool tl_local_queue_loaded(const struct tl_local_queue *queue);
/* The line, borrowed until the next turn of the loop; NULL: there is none. */
struct tl_line *tl_local_queue_line(const struct tl_local_queue *queue);
/* What the store says of a recovery from a loss. */
void tl_local_queue_set_recovery(struct tl_local_queue *queue, const struct tl_recovery *recovery);
/* Was the queue deleted from the store? Pending commands are then answered so. */
bool tl_local_queue_deleted(const struct tl_local_queue *queue);
uint64_t tl_local_queue_generation(const struct tl_local_queue *queue); /* needs a line */
/* The number of the last event applied. Needs a line. */
uint64_t tl_local_queue_event(const struct tl_local_queue *queue);
uint64_t tl_local_queue_waiting(const struct tl_local_queue *queue); /* needs a line */
uint64_t tl_local_queue_active(const struct tl_local_queue *queue);  /* needs a line */
/* The front of a lane, for a ticket: no place up to this seq waits any more; 0: not known. Needs a
 * line. */
uint64_t tl_local_queue_lane_front(const struct tl_local_queue *queue, unsigned lane);
/* Does the queue recover from a loss of its data? */
bool tl_local_queue_recovering(const struct tl_local_queue *queue);
/* The generation in which a place of the line was given: the present or the lost one. Needs a line.
 */
uint64_t tl_local_queue_origin(const struct tl_local_queue *queue, tl_place place);
/* Memory of the line. */
size_t tl_local_queue_bytes(const struct tl_local_queue *queue);
/* Since when the line is full, as the store says, in Unix ms; 0: it is not. */
int64_t tl_local_queue_full_since_ms(const struct tl_local_queue *queue);
/* Is admission possible now, by the mode, the time and the phase? */
bool tl_local_queue_open(const struct tl_local_queue *queue, int64_t now_ms);
/* What the store says of the queue's draw. */
const struct tl_draw_record *tl_local_queue_draw(const struct tl_local_queue *queue);
/* Are those who wait yet to be drawn? Then nobody is admitted, and nobody has a position. */
bool tl_local_queue_drawing(const struct tl_local_queue *queue);
/* Is what is known of the line old, because the store has not been heard of for a while? */
bool tl_local_queue_stale(const struct tl_local_queue *queue, int64_t now_ms);
/* What the operator says (worker/queue/notice.h). Valid as long as the queue. */
const struct tl_notice *tl_local_queue_notice(const struct tl_local_queue *queue);

/* The state of a place, from the line or from an earlier answer of the store. *known is false when
 * the store must be asked. Needs a line. */
struct tl_line_view tl_local_queue_look(const struct tl_local_queue *queue, tl_place place,
                                        bool *known);
/* Is there capacity left for this waiting place, so that the admitter will admit it in a moment?
 * False by rate: only the store knows what its budget allows. */
bool tl_local_queue_about_to_admit(const struct tl_local_queue *queue, tl_place place,
                                   int64_t now_ms);
/* Has the store said that the session at this place is claimed, as far as this process knows? Until
 * then its deadline is that of the claim, although one may be on its way. */
bool tl_local_queue_claimed(const struct tl_local_queue *queue, tl_place place);
/* Does only a claim that was granted open the gate for the session at this place, and is none
 * known? Then the outcome of a RENEW has to be waited for. Needs a line. */
bool tl_local_queue_must_claim(const struct tl_local_queue *queue, tl_place place);
/* The wait until this position is admitted. False when there is nothing honest to say; *reason: why
 * not, or why it is longer than it was (worker/queue/eta.h). */
bool tl_local_queue_estimate(const struct tl_local_queue *queue, uint64_t position, int64_t now_ms,
                             struct tl_eta_range *range, enum tl_eta_reason *reason);
/* How many visitors were admitted during the last minute; false: not all of it was seen. */
bool tl_local_queue_admitted(const struct tl_local_queue *queue, int64_t now_ms, uint64_t *count);
/* What was told about waits, against what came true. */
struct tl_promises *tl_local_queue_promises(const struct tl_local_queue *queue);

/* ---- what changes ---- */

/* Replaces the line; takes ownership. A new generation also forgets what was known of places. */
void tl_local_queue_set_line(struct tl_local_queue *queue, struct tl_line *line, int64_t now_ms);
void tl_local_queue_set_settings(struct tl_local_queue *queue,
                                 const struct tl_queue_settings *settings, int64_t now_ms);
/* The turns of the lanes, as the store has them, after the settings were read again. Needs a line.
 */
void tl_local_queue_set_turns(struct tl_local_queue *queue, const struct tl_turns_state *turns);
/* length 0 removes the notice. */
void tl_local_queue_set_notice(struct tl_local_queue *queue, const char *text, size_t length);
void tl_local_queue_set_deleted(struct tl_local_queue *queue);
/* Applies one entry of the events stream. */
void tl_local_queue_apply(struct tl_local_queue *queue, const void *payload, size_t length,
                          int64_t now_ms);
/* The visitor at this place asks, or is told: marks a waiting one as present; claims the session of
 * an active one. It extends none, or a forgotten tab would keep its session. */
void tl_local_queue_touch(struct tl_local_queue *queue, const char *visitor, tl_place place,
                          const struct tl_line_view *view, int64_t now_ms);
/* The visitor uses the session at this place, as the site says: claims it, or extends it where
 * sessions slide. */
void tl_local_queue_use(struct tl_local_queue *queue, const char *visitor, tl_place place,
                        const struct tl_line_view *view, int64_t now_ms);
/* The store's answer about a place the line does not know; reason 0: the store does not know it
 * either. */
void tl_local_queue_remember_end(struct tl_local_queue *queue, tl_place place, unsigned reason);
/* The process ends: sends the presence not yet sent, and a farewell if it ever sent any. From then
 * on it sends none. */
void tl_local_queue_farewell(struct tl_local_queue *queue);
/* Call every tick: sends presence when it is due, and forgets old ends. */
void tl_local_queue_tick(struct tl_local_queue *queue, int64_t now_ms);

/* ---- commands: see worker/feed/outbox.h ---- */

struct tl_outbox *tl_local_queue_outbox(struct tl_local_queue *queue);

/* ---- the event streams and long polls of this queue, attached by the owner of both ---- */

void tl_local_queue_attach(struct tl_local_queue *queue, struct tl_subscribers *subscribers);
struct tl_subscribers *tl_local_queue_subscribers(const struct tl_local_queue *queue);

/* ---- places that come back after a loss ---- */

/* If the ticket is of the lost generation and its place has come back, or its visitor was moved to
 * another lane: makes it one of the present place, marked as outdated, and returns true. Needs a
 * line. */
bool tl_local_queue_adopt(const struct tl_local_queue *queue, struct tl_ticket *ticket);
/* Is the ticket of a later generation, of which this process has yet to learn? Needs a line. */
bool tl_local_queue_behind(struct tl_local_queue *queue, const struct tl_ticket *ticket,
                           int64_t now_ms);
/* Is the place of this ticket lost, and can it come back, as far as is known? It is of another
 * generation, or the store has lost the end of this one. Needs a line. */
bool tl_local_queue_may_return(const struct tl_local_queue *queue, const struct tl_ticket *ticket);
/* The visitor at this place shows a valid pass of the present generation, which lasts until this
 * deadline, as of this event: the session lasts as long, if the store has lost the end of its
 * history. Needs a line. */
void tl_local_queue_keep_pass(struct tl_local_queue *queue, tl_place place, int64_t deadline_ms,
                              uint64_t event);
/* Did the store lose this place, and say that it does not come back? Needs a line. */
bool tl_local_queue_lost(const struct tl_local_queue *queue, tl_place place);
/* Had the session at this place of this generation ended before the loss, as far as is known? */
bool tl_local_queue_ended_before(const struct tl_local_queue *queue, uint64_t generation,
                                 tl_place place);
/* The serial that tickets of this place have to have, by the line or by that of before a loss; 0:
 * any has. Needs a line. */
uint32_t tl_local_queue_serial(const struct tl_local_queue *queue, tl_place place);
/* Asks the store for the place, which may return. deadline_ms, event: of the session that a pass
 * tells of, or 0. NULL when out of memory, or when the store is down. */
struct tl_pending_command *tl_local_queue_restore(struct tl_local_queue *queue,
                                                  const struct tl_ticket *ticket,
                                                  uint64_t deadline_ms, uint64_t event);

#endif
