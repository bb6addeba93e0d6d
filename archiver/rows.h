/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of queue_entries in the binary form of COPY. */
#ifndef TL_ARCHIVE_ROWS_H
#define TL_ARCHIVE_ROWS_H

#include "archiver/batch.h"

/* The name of a visitor in the archive: the id; or, with a key of TL_SECRET_KEY_BYTES, a pseudonym,
 * of which the id cannot be told without it. */
void tl_rows_name(const unsigned char *key, const char *visitor, size_t length,
                  char name[TL_VISITOR_MAX + 1]);
/* The members of a change, JSON, in which the visitor, if one is among them, has that name. What
 * cannot be read becomes an empty object. NULL when out of memory; the caller frees it. */
char *tl_rows_change(const unsigned char *key, const char *members);
/* Begins what COPY takes, with room for that many bytes more. out is emptied first. False: out of
 * memory. */
bool tl_rows_begin(struct tl_text *out, size_t room);
/* Append the lowest n bytes of the value, most significant first; and the same as a column. There
 * has to be room. */
void tl_rows_put(struct tl_text *out, uint64_t value, size_t n);
void tl_rows_put_number(struct tl_text *out, uint64_t value, size_t n);
/* Writes all rows of the batch, in the order of the table's columns. out is emptied first. */
bool tl_rows_write(const struct tl_archive_batch *batch, const unsigned char *key,
                   struct tl_text *out, struct tl_error *err);

#endif
