/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/wire/names.h"

bool tl_name_valid(const char *name, size_t length, size_t most)
{
    if (length == 0 || length > most)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool first = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!first && (i == 0 || (c != '.' && c != '_' && c != '-')))
            return false;
    }
    return true;
}

bool tl_printable(const char *text, size_t length, size_t most)
{
    if (length == 0 || length > most)
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return true;
}

bool tl_queue_name_valid(const char *name, size_t length)
{
    return tl_name_valid(name, length, TL_QUEUE_NAME_MAX);
}

bool tl_queue_is_rehearsal(const char *name)
{
    size_t prefix = strlen(TL_REHEARSAL_PREFIX), length = strlen(name);
    return strncmp(name, TL_REHEARSAL_PREFIX, prefix) == 0 &&
           length > prefix + 1 + TL_REHEARSAL_DIGITS &&
           name[length - TL_REHEARSAL_DIGITS - 1] == '-' &&
           strspn(name + length - TL_REHEARSAL_DIGITS, "0123456789abcdef") == TL_REHEARSAL_DIGITS;
}

bool tl_visitor_valid(const char *visitor, size_t length)
{
    return tl_printable(visitor, length, TL_VISITOR_MAX);
}
