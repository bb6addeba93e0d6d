/* SPDX-License-Identifier: Apache-2.0 */
/* Text in UTF-8 (Unicode 15, table 3-7). */
#ifndef TL_UTF8_H
#define TL_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Decodes the character at text, which ends with a zero, into *code. Returns its bytes (1 for the
 * zero), or 0 when it is malformed, overlong, a surrogate, cut short or beyond U+10FFFF. */
size_t tl_utf8_decode(const char *text, unsigned *code);

bool tl_utf8_valid(const char *text);

#endif
