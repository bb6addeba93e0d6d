/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the control room over HTTP, at an admin listener
 * (docs/integrators/openapi-admin.yaml).
 */
#ifndef TL_CTL_CALLS_CALL_HTTP_H
#define TL_CTL_CALLS_CALL_HTTP_H

#include "common/control/answer.h"

#include "ctl/calls/stream.h"

struct tl_ctl_http;

/* server: "https://control.example". The token is the first line of token_file, or, if that is
 * NULL, in TELLERLINE_TOKEN. NULL on failure. */
struct tl_ctl_http *tl_ctl_http_new(const char *server, const char *token_file,
                                    struct tl_error *err);
void tl_ctl_http_free(struct tl_ctl_http **http);

/* Does the call. stream: a good answer goes to its sink; NULL: it is JSON. False: there is no
 * answer, or the stream broke off. */
bool tl_ctl_http_ask(struct tl_ctl_http *http, const struct tl_control_request *request,
                     const struct tl_ctl_stream *stream, struct tl_control_answer *answer,
                     struct tl_error *err);

#endif
