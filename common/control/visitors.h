/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that look up, remove and move one visitor. {visitor} is an id or a ticket; ?reference=
 * is the code that the visitor's page shows. */
#ifndef TL_CONTROL_VISITORS_H
#define TL_CONTROL_VISITORS_H

struct tl_control_call;

void tl_handle_visitor_get(struct tl_control_call *call);
void tl_handle_visitor_find(struct tl_control_call *call);
/* Takes the visitor out of the line, or revokes the session. */
void tl_handle_visitor_remove(struct tl_control_call *call);
/* Removes the visitor, and erases the id wherever it is kept. */
void tl_handle_visitor_forget(struct tl_control_call *call);
/* {"lane"} */
void tl_handle_visitor_move(struct tl_control_call *call);

#endif
