/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about a visitor's place, in the way the request's route wants them (JSON or a page). */
#ifndef TL_ANSWER_H
#define TL_ANSWER_H

#include "common/auth/ticket.h"
#include "worker/api/context.h"
#include "worker/http/request.h"

/* A ticket of this queue's present generation, issued now. */
struct tl_ticket tl_answer_ticket(const struct tl_queue *queue, const struct tl_queue_env *env,
                                  const char *visitor, tl_place place, int64_t now_ms);

/* 200 with the view of the ticket's place. It counts as a sign of life. give_ticket: the view
 * carries the ticket, and a cookie is set. Holds the request if the store has to be asked. */
void tl_answer_view(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                    const struct tl_ticket *ticket, bool give_ticket);
/* The store could not say what became of the held ticket's place: 202 to a join, which was
 * accepted, else 503. */
void tl_answer_unknown(struct tl_api *api, const struct tl_held *held);
/* 202: accepted, not numbered yet, with a ticket to ask again with: a pending one of the visitor,
 * the lane and the invite of this ticket, and of its time if it is a pending ticket itself. */
void tl_answer_pending(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                       const struct tl_ticket *joined);

/* 200 with the view of a pending ticket whose place has ended in this way. */
void tl_answer_ended(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                     const struct tl_ticket *ticket, enum tl_reason reason);

/* Writes the view of a place in this state as JSON (TL_VIEW_MAX bytes), for event streams. Returns
 * its length. context is the api. */
size_t tl_answer_write_view(void *context, struct tl_queue *queue, const struct tl_ticket *ticket,
                            bool give_ticket, const struct tl_line_view *state,
                            const char *language, int64_t now_ms, char *text);

/* How JSON answers look; context is the api. */
extern const struct tl_renderer tl_json_renderer;

#endif
