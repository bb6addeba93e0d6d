/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/args.h"

void tl_args_free(struct tl_args *args)
{
    free(args->bytes);
    free(args->ends);
    *args = (struct tl_args){0};
}

void tl_args_reset(struct tl_args *args)
{
    args->n = 0;
    args->n_bytes = 0;
    args->failed = false;
}

static bool reserve(void **memory, size_t *capacity, size_t wanted, size_t element)
{
    if (wanted <= *capacity)
        return true;
    size_t grown = *capacity == 0 ? 64 : *capacity;
    while (grown < wanted)
        grown *= 2;
    void *moved = reallocarray(*memory, grown, element);
    if (moved == NULL)
        return false;
    *memory = moved;
    *capacity = grown;
    return true;
}

void tl_args_bin(struct tl_args *args, const void *bytes, size_t length)
{
    void *buffer = args->bytes;
    void *ends = args->ends;
    bool ok = reserve(&buffer, &args->bytes_capacity, args->n_bytes + length, 1);
    args->bytes = buffer;
    ok = ok && reserve(&ends, &args->ends_capacity, args->n + 1, sizeof(*args->ends));
    args->ends = ends;
    if (!ok) {
        args->failed = true;
        return;
    }
    if (length > 0)
        memcpy(args->bytes + args->n_bytes, bytes, length);
    args->n_bytes += length;
    args->ends[args->n++] = args->n_bytes;
}

void tl_args_str(struct tl_args *args, const char *text)
{
    tl_args_bin(args, text, strlen(text));
}

void tl_args_uint(struct tl_args *args, uint64_t value)
{
    char text[24];
    int length = snprintf(text, sizeof(text), "%" PRIu64, value);
    tl_args_bin(args, text, (size_t)length);
}

void tl_args_int(struct tl_args *args, int64_t value)
{
    char text[24];
    int length = snprintf(text, sizeof(text), "%" PRId64, value);
    tl_args_bin(args, text, (size_t)length);
}

void tl_args_strs(struct tl_args *args, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    for (const char *text = first; text != NULL; text = va_arg(list, const char *))
        tl_args_str(args, text);
    va_end(list);
}
