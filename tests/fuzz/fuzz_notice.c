/* SPDX-License-Identifier: Apache-2.0 */
/* Notices as the store may have them: every text lies within the bytes, is no longer than it may
 * be, and a whole notice is put together again as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/notice_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    struct tl_text again = {0};
    const char *bytes = (const char *)data;
    size_t n = tl_notice_split(bytes, size, texts);
    require(n >= 1 && n <= TL_NOTICE_LANGUAGES);
    for (size_t i = 0; i < n; i++) {
        require(texts[i].length <= TL_NOTICE_TEXT_MAX);
        require(texts[i].length == 0 ||
                (texts[i].text >= bytes && texts[i].text + texts[i].length <= bytes + size));
    }
    require(tl_notice_pick(texts, n, "zh-Hant") < n);
    if (size > 0 && memchr(bytes, '\0', size) == NULL && tl_notice_check(bytes, size, NULL)) {
        require(tl_notice_join(texts, n, &again, NULL) && !again.failed);
        require(again.length == size && memcmp(again.data, bytes, size) == 0);
    }
    tl_text_free(&again);
    return 0;
}
