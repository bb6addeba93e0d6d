/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a request begins and ends. A proxy in front of us that reads two Content-Length headers, or
 * a line that ends with a bare LF, in another way than we do would take a part of one visitor's
 * request for the next visitor's. Such requests are refused, and their connection is closed
 * (RFC 9112, 2.2, 5.2 and 6.3).
 */
#ifndef TL_FRAMING_H
#define TL_FRAMING_H

#include <microhttpd.h>

/* What is wrong with the head of the request, as a sentence; NULL: nothing. method and version: as
 * the library handed them to the handler. */
const char *tl_framing_problem(struct MHD_Connection *connection, const char *method,
                               const char *version);

#endif
