/* SPDX-License-Identifier: Apache-2.0 */
/* The published list of a draw, as text or as pages of JSON: from a file, or from a server. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/calls/calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length == 0) /* fmemopen refuses it */
        return 0;
    char *copy = malloc(length);
    expect(copy != NULL);
    memcpy(copy, bytes, length);
    FILE *in = fmemopen(copy, length, "r");
    expect(in != NULL);
    struct tl_error err = {0};
    struct tl_draw_check check = {0};
    if (tl_draw_verify(in, &check, &err)) {
        unsigned char hash[TL_DRAW_KEY_BYTES];
        tl_draw_hash(check.head.seed, hash);
        expect(memcmp(hash, check.head.hash, sizeof(hash)) == 0);
    } else {
        expect(err.text[0] != '\0');
    }
    fclose(in);
    free(copy);
    return 0;
}
