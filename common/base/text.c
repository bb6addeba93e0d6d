/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/text.h"

void tl_text_append(struct tl_text *text, const char *format, ...)
{
    if (text->failed)
        return;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text->failed = length < 0;
    size_t needed = text->length + (size_t)length + 1;
    if (!text->failed && needed > text->capacity) {
        size_t capacity = text->capacity < 1024 ? 1024 : text->capacity;
        while (capacity < needed)
            capacity *= 2;
        char *data = realloc(text->data, capacity);
        text->failed = data == NULL;
        if (data != NULL) {
            text->data = data;
            text->capacity = capacity;
        }
    }
    if (text->failed)
        return;
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
