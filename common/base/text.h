/* SPDX-License-Identifier: Apache-2.0 */
/* A text that grows while it is written. */
#ifndef TL_TEXT_H
#define TL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed before the first use. After an allocation failed, `failed` is set and nothing more is
 * appended: writers check it once, at the end. */
struct tl_text {
    char *data; /* terminated with a zero once anything was appended; freed by tl_text_free */
    size_t length;
    size_t capacity;
    bool failed;
};

void tl_text_append(struct tl_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tl_text_free(struct tl_text *text);

#endif
