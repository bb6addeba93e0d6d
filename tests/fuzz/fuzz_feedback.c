/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON body of a site's feedback. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/api/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    /* A copy of exactly this size, so that reading past its end is noticed. */
    char *text = malloc(length > 0 ? length : 1);
    char entry[TL_FEEDBACK_TEXT_MAX];
    struct tl_error err = {0};
    struct tl_feedback feedback;
    expect(text != NULL);
    if (length > 0)
        memcpy(text, bytes, length);
    if (tl_feedback_body_parse(text, length, &feedback, &err)) {
        expect(feedback.load >= -1 && feedback.load <= 1000);
        expect(feedback.errors >= -1 && feedback.errors <= 1000);
        expect(feedback.latency_ms >= -1 && feedback.latency_ms <= 3600000);
        expect(feedback.load >= 0 || feedback.errors >= 0 || feedback.latency_ms >= 0);
        tl_feedback_format(&feedback, entry);
        expect(strlen(entry) > 0 && strlen(entry) < sizeof(entry) - 1);
    } else {
        expect(err.text[0] != '\0');
    }
    free(text);
    return 0;
}
