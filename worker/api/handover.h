/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands a place over to another device: the device that has the place asks for a code, and shows it
 * as a QR code; the other one redeems it. Opening the address of a code moves nothing, because
 * programs open addresses, too: a person does it, with a button.
 *
 * A code is signed and holds the place and its next serial. So the store, which compares and sets
 * serials, takes one code of those made for a serial, once.
 */
#ifndef TL_API_HANDOVER_H
#define TL_API_HANDOVER_H

#include "worker/api/visit.h"

/* The HAND_OVER of this request has an outcome; result NULL: not in time. */
void tl_handover_settled(struct tl_visit *visit, const struct tl_pending_result *result);

#endif
