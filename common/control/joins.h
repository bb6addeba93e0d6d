/* SPDX-License-Identifier: Apache-2.0 */
/* The call that joins visitors in bulk. */
#ifndef TL_CONTROL_JOINS_H
#define TL_CONTROL_JOINS_H

struct tl_control_call;

/* {"visitors": [{"visitor", "lane"}...]}, at most 1000: through the ingest stream, as a worker
 * does. 202 when their places are not known in time. */
void tl_handle_joins(struct tl_control_call *call);

#endif
