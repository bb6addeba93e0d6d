/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a queue: what graphs show. */
#ifndef TL_CONTROL_HISTORY_H
#define TL_CONTROL_HISTORY_H

#include "common/control/call.h"

void tl_handle_history(struct tl_control_call *call);

#endif
