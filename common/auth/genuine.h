/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that were found genuine before: a table of digests of fixed size, in which a later one
 * takes the place of an earlier one. A gateway sends the same pass with every request of a visitor,
 * and to verify ES256 takes a hundred times as long as to look it up here.
 */
#ifndef TL_GENUINE_H
#define TL_GENUINE_H

#include <stdbool.h>
#include <stddef.h>

struct tl_genuine;

struct tl_genuine *tl_genuine_new(void); /* NULL when out of memory */
void tl_genuine_free(struct tl_genuine **table);

/* Was the whole text of this token, its signature included, added? */
bool tl_genuine_has(const struct tl_genuine *table, const char *text, size_t length);
void tl_genuine_add(struct tl_genuine *table, const char *text, size_t length);

#endif
