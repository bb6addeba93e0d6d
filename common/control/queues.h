/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that list, create, show, change and delete queues. */
#ifndef TL_CONTROL_QUEUES_H
#define TL_CONTROL_QUEUES_H

struct tl_control_call;

void tl_handle_queue_list(struct tl_control_call *call);
/* {"name", "settings"}: 409 when there is one of that name. */
void tl_handle_queue_create(struct tl_control_call *call);
void tl_handle_queue_get(struct tl_control_call *call);
/* All settings, or those that are named; 412 unless If-Match names the present ones. */
void tl_handle_queue_put(struct tl_control_call *call);
void tl_handle_queue_patch(struct tl_control_call *call);
/* {"name"} must repeat the queue's name. */
void tl_handle_queue_delete(struct tl_control_call *call);

#endif
