/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON body of a join: an object with `visitor` and `lane`, both optional, or with `invite`; or
 * with `solution` or `token`. */
#ifndef TL_JOIN_BODY_H
#define TL_JOIN_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/puzzle.h"
#include "common/base/error.h"
#include "common/wire/names.h"

#define TL_JOIN_INVITE_MAX 2048 /* characters of an invite */
#define TL_JOIN_TOKEN_MAX  8192 /* of a challenge service's token */

struct tl_join_body {
    char visitor[TL_VISITOR_MAX + 1];      /* "" when not given */
    char lane[32];                         /* "" when not given */
    char invite[TL_JOIN_INVITE_MAX + 1];   /* "" when not given */
    char solution[TL_PUZZLE_SOLUTION_MAX]; /* of a puzzle; "" when not given */
    char token[TL_JOIN_TOKEN_MAX + 1];     /* of a challenge service; "" when not given */
};

/* A body in which nothing is given. */
void tl_join_body_clear(struct tl_join_body *body);
/* TL_ERR_INVALID with a sentence for the client: line and column, or which member is wrong. */
bool tl_join_body_parse(const char *text, size_t length, struct tl_join_body *body,
                        struct tl_error *err);

#endif
