/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a protected site reports of itself, as an entry of the stream tl:{q}:feedback
 * (docs/contributors/wire-format.md). Workers and the admitter's probe write it; the function
 * admitter/adapt.lua steers the capacity by it.
 */
#ifndef TL_FEEDBACK_H
#define TL_FEEDBACK_H

#include <inttypes.h>
#include <stdio.h>

#include "generated/protocol.h"

enum { TL_FEEDBACK_TEXT_MAX = 72 };

/* -1: not reported. */
struct tl_feedback {
    int64_t load;       /* in thousandths; 1000: fully loaded */
    int64_t latency_ms; /* of the site's answers */
    int64_t errors;     /* share of failed requests, in thousandths */
};

/* One entry as text. */
static inline void tl_feedback_format(const struct tl_feedback *feedback,
                                      char text[TL_FEEDBACK_TEXT_MAX])
{
    snprintf(text, TL_FEEDBACK_TEXT_MAX, "%" PRId64 " %" PRId64 " %" PRId64, feedback->load,
             feedback->latency_ms, feedback->errors);
}

#endif
