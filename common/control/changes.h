/* SPDX-License-Identifier: Apache-2.0 */
/* The call that reads the record of changes. */
#ifndef TL_CONTROL_CHANGES_H
#define TL_CONTROL_CHANGES_H

struct tl_control_call;

/* ?queue=&before=&limit=, newest first */
void tl_handle_changes(struct tl_control_call *call);

#endif
