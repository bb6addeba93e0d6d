/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals as comma-separated values: any bytes are either refused with a sentence that begins with
 * the file's name, or give arrivals in order that come back the same from a file written of them.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

#include "lab/crowd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_error err = {0};
    struct tl_arrivals arrivals, again;
    struct tl_text text = {0};
    char *bytes = calloc(1, size + 1);
    require(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    bool ok = tl_arrivals_parse("fuzz.csv", bytes, size, &arrivals, &err);
    free(bytes);
    if (!ok) {
        require(err.kind == TL_ERR_INVALID && strncmp(err.text, "fuzz.csv:", 9) == 0);
        require(arrivals.list == NULL);
        return 0;
    }
    require(arrivals.n > 0 && arrivals.list[0].at_ms == 0);
    for (size_t i = 0; i < arrivals.n; i++) {
        const struct tl_arrival *arrival = &arrivals.list[i];
        require(i == 0 || arrival->at_ms >= arrival[-1].at_ms);
        require(arrival->session_ms >= -1 && arrival->session_ms <= INT64_C(7) * 86400000);
        tl_text_append(&text, "%" PRId64 ".%03" PRId64 ",", arrival->at_ms / 1000,
                       arrival->at_ms % 1000);
        if (arrival->session_ms >= 0)
            tl_text_append(&text, "%" PRId64 ".%03" PRId64, arrival->session_ms / 1000,
                           arrival->session_ms % 1000);
        tl_text_append(&text, "\n");
    }
    require(!text.failed && tl_arrivals_parse("again.csv", text.data, text.length, &again, &err));
    require(again.n == arrivals.n);
    for (size_t i = 0; i < again.n; i++)
        require(again.list[i].at_ms == arrivals.list[i].at_ms &&
                again.list[i].session_ms == arrivals.list[i].session_ms);
    tl_text_free(&text);
    tl_arrivals_free(&again);
    tl_arrivals_free(&arrivals);
    return 0;
}
