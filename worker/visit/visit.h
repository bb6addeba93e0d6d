/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request of a visitor: who it comes from, what place it is about, whether it may do what it
 * asks, and what it waits for. Predicates fill in the visit's refusal instead of answering.
 *
 * A visit waits for one thing at a time: the outcome of a command, the store's answer about its
 * place (a lookup), an event that this process has not read yet, a page of a draw's list, or the
 * verdict of the challenge service. Its request is held meanwhile. When that has come, or not in
 * time, the visit takes its next step, once. A visit without a request may wait, too: the lookup of
 * an event stream.
 */
#ifndef TL_VISIT_H
#define TL_VISIT_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/feed/ingest.h"
#include "worker/visit/context.h"

/* The visit of this request, which begins; it lasts as long as the request. name: of the queue. */
struct tl_visit *tl_visit_begin(struct tl_worker *worker, struct tl_request *request,
                                const char *name);
/* A visit without a request, about the place of a ticket which is yet to be judged. */
struct tl_visit tl_visit_of(struct tl_worker *worker, struct tl_queue *queue,
                            const struct tl_ticket *ticket, int64_t now_ms);

/* ---- credentials ---- */

/* The credential of `Authorization: Bearer`, or NULL. */
const char *tl_visit_bearer(const struct tl_visit *visit);
/* The first valid ticket of this queue, a pending one no older than TL_TICKET_PENDING_S, in the
 * Authorization header, the cookies or the query. */
bool tl_visit_brought(const struct tl_visit *visit, struct tl_ticket *ticket);
/* The name of the trusted caller whose API key the request carries, or NULL. / Does it carry one?
 */
const char *tl_visit_caller(const struct tl_visit *visit);
bool tl_visit_trusted(const struct tl_visit *visit);

/* ---- queues and places ---- */

/* Is there no queue of this name, or was it deleted? One that the store has lost is still known. */
bool tl_visit_no_queue(const struct tl_visit *visit);
/* Finds the visit's queue. False: refused, if its line is not loaded. */
bool tl_visit_queue(struct tl_visit *visit);
/* Its handler once more, now that the place may be known or have come back. */
tl_step tl_visit_again;
/* Judges the visit's ticket. */
void tl_visit_judge(struct tl_visit *visit);
/* Finds queue and ticket, judges it, and takes this step. Of another generation it is asked for
 * first, if it may return (tl_visit_restore), else refused. */
bool tl_visit_ticket(struct tl_visit *visit, tl_step *step);
/* The ticket MAY_RETURN: asks for the place, and holds the request, which is handled again when the
 * outcome is known. Else (AHEAD, VOID) refuses it. deadline_ms, event: of the session that a pass
 * tells of, or 0. */
bool tl_visit_restore(struct tl_visit *visit, uint64_t deadline_ms, uint64_t event);
/* Is the ticket's place lost, and one that can come back? AHEAD may be, too. */
bool tl_visit_may_return(const struct tl_visit *visit);
/* Does the place wait, or is it active? Also one that is on another device. */
bool tl_visit_is_held(const struct tl_visit *visit);
/* May visitors join by the queue's mode and phase who have no place? Else refused. */
bool tl_visit_newcomers(struct tl_visit *visit);

/* ---- commands ---- */

/* Can a command be sent now? */
bool tl_visit_may_send(struct tl_visit *visit);
/* May the ticket send one more command that changes little, however often it comes: a join of who
 * holds a place, a renewal? Else what is known is the answer. Counts one. */
bool tl_visit_may_repeat(const struct tl_visit *visit);

/* ---- the join of a pending ticket once more: it finds the place of the first one ---- */

/* The lane in which a ticket joins. */
unsigned tl_rejoin_lane(const struct tl_queue *queue, tl_place place);
/* May the visit's pending ticket still join? Else refused. */
bool tl_rejoin_may(struct tl_visit *visit);
/* The join of this pending ticket: the one in progress, or another one like it. NULL when out of
 * memory. */
struct tl_pending_command *tl_rejoin(struct tl_queue *queue, const struct tl_ticket *ticket);
/* Was this JOIN made by tl_rejoin? *issued: the ticket's time. */
bool tl_rejoin_issued(const struct tl_pending_command *join, uint32_t *issued);
/* Has the join that was applied, of any kind, a place? */
bool tl_rejoin_gave_place(const struct tl_pending_result *result);

/* ---- addresses and limits ---- */

/* The network of its address that counts as one customer; all zero when the address is unknown. */
struct tl_prefix tl_visit_network(const struct tl_visit *visit);
/* Does the request come, as far as it says itself, through a proxy that is not trusted? Then its
 * visitors all have this address, that of the proxy. */
bool tl_visit_shares(const struct tl_visit *visit);
/* An address that stands for something else that is counted: this one of the queue. */
struct tl_address tl_visitor_stand_in(const char *queue, const char *name);
/* May the visitor's address join the queue and follow it, or is it blocked (common/store/blocks.h)?
 */
bool tl_visit_passes_blocks(struct tl_visit *visit);
/* Has the visitor's address one of these left, of `most` in the limit's time? Counts one. */
bool tl_visit_within(const struct tl_visit *visit, enum tl_limiter_kind kind, uint64_t most);
/* May a token of this kind be verified, or were too many of the address not genuine? A request that
 * has a ticket, too, is counted by that. Tokens that cost little by these keys always may; keys
 * NULL: it costs much. / Counts one that was not genuine. */
bool tl_visit_may_verify(struct tl_visit *visit, enum tl_limiter_kind kind,
                         const struct tl_jwt_keys *keys, const char *token);
void tl_visit_unverified(const struct tl_visit *visit, enum tl_limiter_kind kind,
                         const struct tl_jwt_keys *keys, const char *token);
/* Has the visitor's address a join left, and under pressure one in this second? Counts one. paid: a
 * challenge was passed for it, which is the limit then. */
bool tl_visit_may_join(struct tl_visit *visit, bool paid);
/* May the request become an event stream or a long poll, or are all in use that there are, or that
 * its address may have? */
bool tl_visit_may_stay(const struct tl_visit *visit);

/* Takes a step: the one place where a refusal is rendered. The visit may be gone afterwards. */
void tl_visit_take(struct tl_visit *visit, tl_step *step);

/* ---- beginning ---- */

/* Waits until the command has an outcome, at most http.join_wait. False: refused, if `pending` is
 * NULL: there was no memory for it. */
bool tl_wait_command(struct tl_visit *visit, struct tl_pending_command *pending, tl_step *step);
/* Asks the store about the place of the visit's ticket, and waits as long for the answer. False:
 * that cannot be asked. */
bool tl_wait_lookup(struct tl_visit *visit, tl_step *step);
/* Asks the archive, the number of the question being the visit's, and waits for the answer. False:
 * that cannot be asked now. */
bool tl_wait_archive(struct tl_visit *visit, const struct tl_archive_job *question, tl_step *step);
/* Waits until the queue has read this event, 250 ms at most. */
void tl_wait_event(struct tl_visit *visit, uint64_t event, tl_step *step);
/* Waits this long for the answer. */
void tl_wait_begin(struct tl_visit *visit, enum tl_wait_kind kind, int64_t ms, tl_step *step);

/* ---- ending ---- */

/* Ends it with what has come of it so far. */
void tl_wait_end(struct tl_visit *visit);
/* Was the command applied? */
bool tl_wait_applied(const struct tl_wait *wait);
/* A command has an outcome: ends all that wait for it. */
void tl_waits_settle(struct tl_pending_command *pending, const struct tl_pending_result *result);
/* The store's answer to a lookup; of these three each does nothing if it comes too late. */
void tl_waits_found(struct tl_worker *worker, uint64_t number, enum tl_lookup_found found,
                    enum tl_reason reason);
/* The bytes of the draw ids, or NULL if the store could not say. */
void tl_waits_drawn(struct tl_worker *worker, uint64_t number, const void *ids, size_t length);
/* The archive's answer; borrowed. */
void tl_waits_archived(struct tl_worker *worker, const struct tl_archive_job *answer);
/* Call every tick: ends what has reached its deadline, lookups whose place the line has learned,
 * and waits for an event that it has read. */
void tl_waits_tick(struct tl_worker *worker, int64_t now_ms);
/* The queue is recreated or deleted, or all are (NULL): ends what waits for something of it that
 * no longer comes. Commands go on. */
void tl_waits_drop(struct tl_worker *worker, const struct tl_queue *queue);

/* How many wait. */
uint64_t tl_waits_count(const struct tl_waits *waits);

#endif
