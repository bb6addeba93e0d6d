/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "common/store/args.h"

void tl_args_free(struct tl_args *args)
{
    free(args->bytes);
    free(args->lengths);
    *args = (struct tl_args){0};
}

void tl_args_reset(struct tl_args *args)
{
    args->n = 0;
    args->n_bytes = 0;
    args->failed = false;
}

void tl_args_bin(struct tl_args *args, const void *bytes, size_t length)
{
    char *all = tl_grow(args->bytes, &args->bytes_capacity, args->n_bytes + length + 1, 1);
    size_t *lengths =
        tl_grow(args->lengths, &args->lengths_capacity, args->n + 1, sizeof(*lengths));
    args->bytes = all != NULL ? all : args->bytes;
    args->lengths = lengths != NULL ? lengths : args->lengths;
    if (all == NULL || lengths == NULL) {
        args->failed = true;
        return;
    }
    if (length > 0)
        memcpy(all + args->n_bytes, bytes, length);
    args->n_bytes += length;
    lengths[args->n++] = length;
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
