/* SPDX-License-Identifier: Apache-2.0 */
/* The call that shows the line in pages. */
#ifndef TL_CONTROL_LINE_H
#define TL_CONTROL_LINE_H

struct tl_control_call;

/* ?from=&limit=: those who wait from this position on, 1 being the first. */
void tl_handle_line(struct tl_control_call *call);

#endif
