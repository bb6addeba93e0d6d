/* SPDX-License-Identifier: Apache-2.0 */
/* base64url without padding (RFC 4648, 5), of bytes that a reader of the text may know: tickets,
 * passes, random ids. What is secret itself belongs to libsodium's, which takes the same time for
 * all bytes, and ten times as long. */
#ifndef TL_BASE64_H
#define TL_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Characters of this many bytes, without the terminator. */
#define TL_BASE64_LENGTH(bytes) (((bytes)*4 + 2) / 3)

/* Writes TL_BASE64_LENGTH(n) characters and a zero. */
void tl_base64_encode(const unsigned char *bytes, size_t n, char *text);
/* Accepts only the one text of the bytes: no padding, no other characters, and unused bits are
 * zero. False also if there are more than `room` of them. */
bool tl_base64_decode(const char *text, size_t length, unsigned char *bytes, size_t room,
                      size_t *n);

#endif
