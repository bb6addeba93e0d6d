/* Answers about a visitor's place. */
#ifndef TL_ANSWER_H
#define TL_ANSWER_H

#include "common/auth/ticket.h"
#include "worker/http/server.h"
#include "worker/queue/room.h"

/* A ticket of this queue's present generation, issued now. */
struct tl_ticket tl_answer_ticket(const struct tl_room *room, const char *visitor, tl_place place);

/* 200 with how the ticket's place stands, and a sign of life of its visitor. With give_ticket the
 * view carries the ticket, and a cookie is set. Holds the request if the store has to be asked
 * about the place. */
void tl_answer_view(struct tl_room *room, struct tl_request *request,
                    const struct tl_ticket *ticket, bool give_ticket);

/* Writes the view of how the ticket's place stands (TL_VIEW_MAX bytes), a sign of life of its
 * visitor included. The place must be known (tl_room_look). Returns the text's length. */
size_t tl_answer_write(struct tl_room *room, const struct tl_ticket *ticket, int64_t now_ms,
                       struct tl_line_view *state, char *text);

/* 202: accepted, not numbered yet, with a ticket to ask again with. */
void tl_answer_pending(struct tl_room *room, struct tl_request *request, const char *visitor,
                       unsigned lane);

#endif
