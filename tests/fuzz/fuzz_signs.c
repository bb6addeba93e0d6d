/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of tl:{q}:signs: what is accepted is written and read back as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/signs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_signs signs, again;
    char first[TL_SIGNS_TEXT_MAX], second[TL_SIGNS_TEXT_MAX];
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (tl_signs_parse(text, &signs)) {
        tl_signs_format(&signs, first);
        require(tl_signs_parse(first, &again));
        tl_signs_format(&again, second);
        require(strcmp(first, second) == 0);
    }
    free(text);
    return 0;
}
