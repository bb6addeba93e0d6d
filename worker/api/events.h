/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/queues/{q}/events: the stream of a visitor's place. */
#ifndef TL_API_EVENTS_H
#define TL_API_EVENTS_H

#include "worker/http/router.h"

tl_handler tl_handle_events;

#endif
