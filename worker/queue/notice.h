/* The operator's notice of a queue, as text and as the JSON that event streams send. */
#ifndef TL_NOTICE_H
#define TL_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/queue.h"
#include "common/wire/notice_text.h"

/* Zeroed: no notice. */
struct tl_notice {
    char text[TL_NOTICE_MAX + 1]; /* "": none */
    char *json;                   /* {"text":...}; NULL until the first notice; owned */
    uint64_t version;             /* counts the changes */
};

/* Takes a notice of `length` bytes; 0 removes it. One that is too long is cut. False without
 * memory: the former notice stays. */
bool tl_notice_set(struct tl_notice *notice, const char *text, size_t length);

#endif
