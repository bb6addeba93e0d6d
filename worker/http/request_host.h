/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of requests: how it makes, fills, delivers and frees them. */
#ifndef TL_REQUEST_HOST_H
#define TL_REQUEST_HOST_H

#include <stdbool.h>

#include "worker/http/request.h"
#include "worker/http/request_data.h"

/* A new request, or NULL when out of memory. method and path must stay valid. */
struct tl_request *tl_request_new(struct tl_request_host *host, struct MHD_Connection *connection,
                                  const char *method, const char *path);
void tl_request_free(struct tl_request *request);
struct MHD_Connection *tl_request_connection(const struct tl_request *request);
/* Adds bytes of the body. False when the connection should be closed: out of memory, or the body
 * is far too large. */
bool tl_request_add_body(struct tl_request *request, const char *bytes, size_t n);
/* Does the request declare a body larger than max_body? Then it counts as too large from now on. */
bool tl_request_declares_too_much(struct tl_request *request);
/* The connection is closed after the answer. */
void tl_request_close_after(struct tl_request *request);
bool tl_request_too_large(const struct tl_request *request);
/* Marks the request as complete; returns whether it was so before. */
bool tl_request_complete(struct tl_request *request);
bool tl_request_answered(const struct tl_request *request);
/* Queues the response of an answered request at its connection. */
enum MHD_Result tl_request_deliver(struct tl_request *request);

#endif
