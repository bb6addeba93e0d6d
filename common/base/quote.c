#include <stdio.h>
#include <string.h>

#include "common/base/quote.h"

void tl_quote(const char *text, char *quoted, size_t size)
{
    const size_t cut = size - sizeof("\"...\"");
    size_t length = strlen(text);
    size_t used = 0;
    quoted[used++] = '"';
    for (size_t i = 0; i < length && i < cut; i++)
        quoted[used++] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    snprintf(quoted + used, size - used, length > cut ? "...\"" : "\"");
}
