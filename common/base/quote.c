/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/base/quote.h"
#include "common/base/utf8.h"

/* Characters that show nothing of their own: they would hide text, or turn its direction. */
static bool is_invisible(unsigned code)
{
    static const struct {
        unsigned first, last;
    } ranges[] = {
        {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},       {0x61C, 0x61C},
        {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},   {0xFEFF, 0xFEFF},
        {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE0FFF},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

void tl_quote(const char *text, char *quoted, size_t size)
{
    const size_t cut = size - sizeof("\"...\"") + 1; /* with the first quote */
    size_t used = 0;
    quoted[used++] = '"';
    while (*text != '\0') {
        unsigned code = 0;
        size_t taken = tl_utf8_decode(text, &code);
        bool shown = taken > 0 && !is_invisible(code);
        size_t needed = shown ? taken : 1;
        if (used + needed > cut)
            break;
        if (shown)
            memcpy(quoted + used, text, taken);
        else
            quoted[used] = '?';
        used += needed;
        text += taken > 0 ? taken : 1;
    }
    snprintf(quoted + used, size - used, *text != '\0' ? "...\"" : "\"");
}
