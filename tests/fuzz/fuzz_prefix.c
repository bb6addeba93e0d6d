/* SPDX-License-Identifier: Apache-2.0 */
/* Prefixes as operators write them: what is accepted is written and read back as the same prefix,
 * and contains itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_error err = {0};
    struct tl_prefix prefix, again;
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (!tl_prefix_parse(text, &prefix, &err)) {
        require(err.kind == TL_ERR_INVALID && err.text[0] != '\0');
    } else {
        char formatted[TL_PREFIX_TEXT_MAX];
        tl_prefix_format(&prefix, formatted);
        require(tl_prefix_parse(formatted, &again, &err) && tl_prefix_equal(&prefix, &again));
        require(tl_prefix_contains(&prefix, &prefix.address));
    }
    free(text);
    return 0;
}
