/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: one that grows while it is written, UTF-8 (Unicode 15, table 3-7), and text from outside
 * as part of a message. */
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

/* Copies the text, cut to size - 1 bytes, and ends it with a zero. Returns how long it is then. */
size_t tl_text_copy(char *copy, size_t size, const char *text);

/* Appends a word of this length to a list of words that has room for size bytes; what does not fit
 * is cut off. */
void tl_words_append(char *words, size_t size, const char *separator, const char *word,
                     size_t length);

/* Decodes the character at text, which ends with a zero, into *code. Returns its bytes (1 for the
 * zero), or 0 when it is malformed, overlong, a surrogate, cut short or beyond U+10FFFF. */
size_t tl_utf8_decode(const char *text, unsigned *code);

bool tl_utf8_valid(const char *text);

/* Does the character show nothing of its own? It would hide text, turn its direction, or be obeyed
 * by a terminal. */
bool tl_utf8_invisible(unsigned code);

/* Writes the text percent-encoded (RFC 3986, 2.1): all but letters, digits and "-._~". Ends it with
 * a zero, before the first character that does not fit into size bytes. Returns how long it is when
 * everything fits. */
size_t tl_percent_encode(const char *text, char *encoded, size_t size);

/* Writes the text in double quotes, cut to what fits into size bytes (64 at least). What a terminal
 * or a reader would obey instead of showing it becomes '?': control characters, marks of direction,
 * invisible ones, and bytes that are not UTF-8. */
void tl_quote(const char *text, char *quoted, size_t size);

#endif
