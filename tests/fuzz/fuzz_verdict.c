/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of challenge services. The first two bytes choose the status and the rules. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/verify/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const unsigned statuses[] = {200, 400, 404, 500};
    if (length < 2)
        return 0;
    unsigned status = statuses[bytes[0] % 4];
    const struct tl_verdict_rules rules = {.hostname = bytes[1] & 1 ? "shop.example" : "",
                                           .min_score = bytes[1] & 2 ? 0.5 : 0};
    struct tl_verdict verdict;
    /* A copy of exactly this size, so that reading past its end is noticed. */
    char *text = malloc(length - 1);
    expect(text != NULL);
    memcpy(text, bytes + 2, length - 2);
    tl_verdict_decode(status, text, length - 2, &rules, &verdict);
    free(text);
    expect(memchr(verdict.why, '\0', sizeof(verdict.why)) != NULL);
    expect((verdict.why[0] == '\0') == (verdict.kind == TL_VERDICT_PASSED));
    expect(verdict.kind != TL_VERDICT_PASSED || status == 200);
    expect(verdict.kind != TL_VERDICT_UNREACHABLE || status != 400 ||
           strstr(verdict.why, "internal") != NULL);
    for (const char *at = verdict.why; *at != '\0'; at++)
        expect(*at >= ' ' && *at <= '~');
    return 0;
}
