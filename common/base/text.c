#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/text.h"

/* Makes room for `more` bytes and the terminating zero. */
static bool reserve(struct tl_text *text, size_t more)
{
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity)
        return true;
    size_t capacity = text->capacity < 1024 ? 1024 : text->capacity;
    while (capacity < needed)
        capacity *= 2;
    char *data = realloc(text->data, capacity);
    if (data == NULL)
        return false;
    text->data = data;
    text->capacity = capacity;
    return true;
}

void tl_text_append(struct tl_text *text, const char *format, ...)
{
    if (text->failed)
        return;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !reserve(text, (size_t)length)) {
        text->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
}

void tl_text_free(struct tl_text *text)
{
    free(text->data);
    *text = (struct tl_text){0};
}
