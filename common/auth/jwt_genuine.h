/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens whose signature was found right before: a table of digests of fixed size, in which a later
 * one takes the place of an earlier one. A gateway sends the same pass with every request of a
 * visitor, and to verify ES256 takes a hundred times as long as to look it up here.
 */
#ifndef TL_JWT_GENUINE_H
#define TL_JWT_GENUINE_H

#include <stdbool.h>
#include <stddef.h>

struct tl_jwt_genuine;

struct tl_jwt_genuine *tl_jwt_genuine_new(void); /* NULL when out of memory */
void tl_jwt_genuine_free(struct tl_jwt_genuine **table);

#define TL_JWT_DIGEST_BYTES 32

/* What stands for the whole text of a token, its signature included. */
void tl_jwt_genuine_digest(const char *text, size_t length,
                           unsigned char digest[TL_JWT_DIGEST_BYTES]);
bool tl_jwt_genuine_has(const struct tl_jwt_genuine *table,
                        const unsigned char digest[TL_JWT_DIGEST_BYTES]);
void tl_jwt_genuine_add(struct tl_jwt_genuine *table,
                        const unsigned char digest[TL_JWT_DIGEST_BYTES]);

#endif
