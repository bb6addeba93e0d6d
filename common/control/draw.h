/* SPDX-License-Identifier: Apache-2.0 */
/* The calls for the opening by lot. */
#ifndef TL_CONTROL_DRAW_H
#define TL_CONTROL_DRAW_H

struct tl_control_call;

/* ?from=&limit=: with the draw ids from this rank on. */
void tl_handle_draw_get(struct tl_control_call *call);
/* {"opens_at"}: the queue opens then, by lot. */
void tl_handle_draw_set(struct tl_control_call *call);

#endif
