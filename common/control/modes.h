/* SPDX-License-Identifier: Apache-2.0 */
/* The calls for day-to-day work with a queue: its mode, its notice, its recovery. */
#ifndef TL_CONTROL_MODES_H
#define TL_CONTROL_MODES_H

struct tl_control_call;

void tl_handle_open(struct tl_control_call *call);
void tl_handle_pause(struct tl_control_call *call);
void tl_handle_drain(struct tl_control_call *call);
void tl_handle_close(struct tl_control_call *call);
void tl_handle_sell_out(struct tl_control_call *call);
void tl_handle_passthrough(struct tl_control_call *call);
/* {"text"} for everyone, "" removes the notice; or {"texts"}: {"en": ..., "ko": ...}. */
void tl_handle_notice(struct tl_control_call *call);
/* {"now": true} or {"wait": "90s"}. */
void tl_handle_recover(struct tl_control_call *call);

#endif
