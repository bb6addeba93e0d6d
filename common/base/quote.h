/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside as part of a message. */
#ifndef TL_QUOTE_H
#define TL_QUOTE_H

#include <stddef.h>

/* Writes the text in double quotes, cut to what fits into size bytes (64 at least). What a terminal
 * or a reader would obey instead of showing it becomes '?': control characters, marks of direction,
 * invisible ones, and bytes that are not UTF-8. */
void tl_quote(const char *text, char *quoted, size_t size);

#endif
