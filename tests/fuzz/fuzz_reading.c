/* SPDX-License-Identifier: Apache-2.0 */
/* A probed site's answer, in either format; the first line is what to read of it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "admitter/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const uint8_t *line_end = length > 0 ? memchr(bytes, '\n', length) : NULL;
    if (line_end == NULL)
        return 0;
    size_t value_length = (size_t)(line_end - bytes);
    char *value = strndup((const char *)bytes, value_length);
    size_t text_length = length - value_length - 1;
    /* A copy of exactly this size, so that reading past its end is noticed. */
    char *text = malloc(text_length > 0 ? text_length : 1);
    expect(value != NULL && text != NULL);
    if (text_length > 0)
        memcpy(text, line_end + 1, text_length);
    for (int format = TL_PROBE_JSON; format <= TL_PROBE_PROMETHEUS; format++) {
        struct tl_error err = {0};
        double number = -1;
        if (tl_reading_take((enum tl_probe_format)format, text, text_length, value, &number, &err))
            expect(isfinite(number) && number >= 0);
        else
            expect(err.text[0] != '\0');
    }
    free(text);
    free(value);
    return 0;
}
