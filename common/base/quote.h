/* Text from outside as part of a message. */
#ifndef TL_QUOTE_H
#define TL_QUOTE_H

#include <stddef.h>

/* Writes the text in double quotes, cut to what fits into size bytes (64 at least), with '?' for
 * each byte that is not printable ASCII. */
void tl_quote(const char *text, char *quoted, size_t size);

#endif
