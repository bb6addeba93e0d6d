/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/utf8.h"

size_t tl_utf8_decode(const char *text, unsigned *code)
{
    const unsigned char *byte = (const unsigned char *)text;
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n;
    if (byte[0] < 0x80)
        n = 1;
    else if (byte[0] >= 0xC0 && byte[0] < 0xE0)
        n = 2;
    else if (byte[0] >= 0xE0 && byte[0] < 0xF0)
        n = 3;
    else if (byte[0] >= 0xF0 && byte[0] < 0xF8)
        n = 4;
    else
        return 0;
    unsigned value = n == 1 ? byte[0] : byte[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((byte[i] & 0xC0) != 0x80)
            return 0; /* the terminating zero ends here too */
        value = value << 6 | (byte[i] & 0x3Fu);
    }
    if (value < least[n] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return 0;
    *code = value;
    return n;
}

bool tl_utf8_valid(const char *text)
{
    unsigned code;
    while (*text != '\0') {
        size_t taken = tl_utf8_decode(text, &code);
        if (taken == 0)
            return false;
        text += taken;
    }
    return true;
}
