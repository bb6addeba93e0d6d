/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of requests: objects of JSON, and a form of the page. What is wrong with one is
 * TL_ERR_INVALID with a sentence for the client: line and column, or which member. */
#ifndef TL_API_BODY_H
#define TL_API_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/puzzle.h"
#include "common/auth/ticket.h"
#include "common/base/error.h"
#include "common/store/feedback.h"
#include "common/wire/names.h"
#include "worker/http/request.h"

#define TL_JOIN_INVITE_MAX 2048 /* characters of an invite */
#define TL_JOIN_TOKEN_MAX  8192 /* of a challenge service's token */

/* Of a join: `visitor` and `lane`, both optional, or `invite`; or `solution` or `token`. All are ""
 * when not given. */
struct tl_join_body {
    char visitor[TL_VISITOR_MAX + 1];
    char lane[32];
    char invite[TL_JOIN_INVITE_MAX + 1];
    char solution[TL_PUZZLE_SOLUTION_MAX]; /* of a puzzle */
    char token[TL_JOIN_TOKEN_MAX + 1];     /* of a challenge service */
};

/* With a length of 0 nothing is given. */
bool tl_join_body_parse(const char *text, size_t length, struct tl_join_body *body,
                        struct tl_error *err);

#define TL_MOVE_DEVICE_MAX 13 /* hexadecimal digits: 52 bits */

/* Redeems the code of a hand-over. In a body, because addresses stand in the logs of all proxies.
 */
struct tl_move_body {
    char code[TL_TICKET_MAX];            /* "" when not given */
    char device[TL_MOVE_DEVICE_MAX + 1]; /* "" when not given */
};

bool tl_move_body_parse_json(const char *text, size_t length, struct tl_move_body *body,
                             struct tl_error *err);
/* The code may be the whole link that the other device shows. What does not fit counts as not
 * given. */
void tl_move_body_parse_form(const char *text, size_t length, struct tl_move_body *body);
/* Is the request's body a form? */
bool tl_move_body_is_form(const struct tl_request *request);

/* Of a site's feedback: any of "load" (0 to 1), "latency_ms" and "error_rate" (0 to 1), at least
 * one. */
bool tl_feedback_body_parse(const char *text, size_t length, struct tl_feedback *feedback,
                            struct tl_error *err);

#endif
