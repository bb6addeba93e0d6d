/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idempotency-Key: a call that is sent again with the same key is answered with the first answer.
 * Kept for a day in tl:{q}:idempotent, of the last 1000 calls of a queue (idempotent.lua).
 */
#ifndef TL_CONTROL_REPEAT_H
#define TL_CONTROL_REPEAT_H

struct tl_control_call;

/* Does the call by its handler, unless its key was used before: then answers as before, with 422
 * when it was another request, and with 409 while the first one is still under way. A failure of
 * ours (500 and above) is not kept. An answer above 16 KiB is not kept either: then the handler is
 * called again, which only joins in bulk reach; joining again gives the places that are held. */
void tl_repeat_once(struct tl_control_call *call, void (*handler)(struct tl_control_call *call));

#endif
