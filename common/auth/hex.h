/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in hex digits, in a time that depends on their number alone. */
#ifndef TL_HEX_H
#define TL_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* Parses exactly 2 * n hex digits. False for anything else. */
bool tl_hex_parse(const char *digits, size_t length, unsigned char *bytes, size_t n);
/* Writes 2 * n lowercase hex digits and a NUL. */
void tl_hex_format(const unsigned char *bytes, size_t n, char *digits);

#endif
