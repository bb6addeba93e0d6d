/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/queues/{q}/feedback: the protected site reports how it is. */
#ifndef TL_API_FEEDBACK_H
#define TL_API_FEEDBACK_H

#include <stdbool.h>

#include "worker/http/refusal.h"
#include "worker/http/request.h"

bool tl_handle_feedback(void *context, struct tl_request *request, const char *name,
                        struct tl_refusal *refusal);

#endif
