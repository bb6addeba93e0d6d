/* SPDX-License-Identifier: Apache-2.0 */
/* The body that redeems the code of a hand-over, with `code` and `device`: an object of JSON, or
 * the page's form. In a body, because addresses stand in the logs of all proxies. */
#ifndef TL_MOVE_BODY_H
#define TL_MOVE_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/base/error.h"
#include "worker/http/request.h"

#define TL_MOVE_DEVICE_MAX 13 /* hexadecimal digits: 52 bits */

struct tl_move_body {
    char code[TL_TICKET_MAX];            /* "" when not given */
    char device[TL_MOVE_DEVICE_MAX + 1]; /* "" when not given */
};

/* TL_ERR_INVALID with a sentence for the client. */
bool tl_move_body_parse_json(const char *text, size_t length, struct tl_move_body *body,
                             struct tl_error *err);
/* The code may be the whole link that the other device shows. What does not fit counts as not
 * given. */
void tl_move_body_parse_form(const char *text, size_t length, struct tl_move_body *body);

/* Is the request's body a form? */
bool tl_move_body_is_form(const struct tl_request *request);

#endif
