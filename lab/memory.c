/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/grow.h"

#include "lab/memory.h"

enum { STATUS_FAILED = 2 };

static struct {
    void (*work)(void *context);
    void *context;
} last;

void tl_memory_last(void (*work)(void *context), void *context)
{
    last.work = work;
    last.context = context;
}

void tl_no_memory(void)
{
    void (*work)(void *context) = last.work;
    last.work = NULL; /* it may find no memory either */
    if (work != NULL)
        work(last.context);
    fputs("tellerline: out of memory\n", stderr);
    _exit(STATUS_FAILED); /* half of an answer is none */
}

void *tl_xalloc(size_t n, size_t size)
{
    void *memory = calloc(n > 0 ? n : 1, size);
    if (memory == NULL)
        tl_no_memory();
    return memory;
}

void *tl_xgrow(void *list, size_t *capacity, size_t wanted, size_t element)
{
    void *grown = tl_grow(list, capacity, wanted, element);
    if (grown == NULL)
        tl_no_memory();
    return grown;
}

const char *tl_xtext(const struct tl_text *text)
{
    if (text->failed)
        tl_no_memory();
    return text->data != NULL ? text->data : "";
}
