/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "common/store/feedback.h"

void tl_feedback_format(const struct tl_feedback *feedback, char text[TL_FEEDBACK_TEXT_MAX])
{
    snprintf(text, TL_FEEDBACK_TEXT_MAX, "%" PRId64 " %" PRId64 " %" PRId64, feedback->load,
             feedback->latency_ms, feedback->errors);
}
