/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about a visitor's place, in the way the request's route wants them (JSON or a page). */
#ifndef TL_ANSWER_H
#define TL_ANSWER_H

#include "common/auth/ticket.h"
#include "common/base/json_text.h"
#include "worker/visit/visit.h"

/* A ticket of this queue's present generation, issued now. */
struct tl_ticket tl_answer_ticket(const struct tl_queue *queue, const char *visitor, tl_place place,
                                  int64_t now_ms);

/* All are steps, or end one: true, unless the request is refused. */

/* 200 with the view of the place of the visit's ticket, as it was judged. It counts as a sign of
 * life. If the visit gives it, the view carries the ticket, and a cookie is set. Holds the request
 * if the store has to be asked; what is not of the present generation comes back, or is refused. */
tl_step tl_answer_view;
/* Judges the ticket first, after the request has waited. */
tl_step tl_answer_anew;
/* The command about the visit's place has ended, or did not in time. */
tl_step tl_answer_command;
/* The store could not say what became of the place: 202 to a join, which was accepted
 * (the visit gives a ticket), else 503. */
tl_step tl_answer_unknown;
/* 202: accepted, not numbered yet, with a ticket to ask again with: a pending one of the visitor,
 * the lane and the invite of the visit's ticket, and of its time if it is a pending ticket itself.
 */
tl_step tl_answer_pending;
/* 200 with an end that the line does not say. MOVED: the ticket no longer counts, and the
 * view says no more than that. */
bool tl_answer_ended(struct tl_visit *visit, enum tl_reason reason);

/* Writes the view of the visit's place in its state as JSON (TL_VIEW_MAX bytes), for event streams.
 * language: of the notice, or NULL. Returns its length. */
size_t tl_answer_write_view(const struct tl_visit *visit, const char *language, char *text);

/* Answers with this object. Returns true. */
bool tl_answer_json(const struct tl_visit *visit, unsigned status, struct tl_json *json);

/* How JSON answers look; context is the worker. */
extern const struct tl_renderer tl_json_renderer;

#endif
