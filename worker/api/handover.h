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

#include <stdbool.h>

#include "worker/api/context.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"

/* POST /v1/queues/{q}/transfer and /q/{q}/transfer: makes a code. */
bool tl_handle_transfer(void *context, struct tl_request *request, const char *name,
                        struct tl_refusal *refusal);
bool tl_handle_page_transfer(void *context, struct tl_request *request, const char *name,
                             struct tl_refusal *refusal);
/* POST .../move with the body of move_body.h: redeems it. The device is a number in hexadecimal
 * digits which the device chose: it may repeat the request, should the answer get lost. */
bool tl_handle_move(void *context, struct tl_request *request, const char *name,
                    struct tl_refusal *refusal);
/* GET /q/{q}/move: the page with the button. */
bool tl_handle_page_move(void *context, struct tl_request *request, const char *name,
                         struct tl_refusal *refusal);
/* The HAND_OVER of this request has an outcome; result NULL: not in time. */
void tl_handover_settled(struct tl_api *api, const struct tl_held *held,
                         const struct tl_pending_result *result);

#endif
