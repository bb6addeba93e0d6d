/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON body of a site's feedback. */
#ifndef TL_FEEDBACK_BODY_H
#define TL_FEEDBACK_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/store/feedback.h"

/* Reads the body: a JSON object with any of "load" (0 to 1), "latency_ms" and "error_rate" (0 to
 * 1), at least one. */
bool tl_feedback_body_parse(const char *text, size_t length, struct tl_feedback *feedback,
                            struct tl_error *err);

#endif
