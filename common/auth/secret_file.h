/* SPDX-License-Identifier: Apache-2.0 */
/* Files that hold secrets: signing keys, API keys, tokens. A file that others can read is
 * refused. */
#ifndef TL_SECRET_FILE_H
#define TL_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

/* Reads a regular file of at most 64 KiB that others can neither read nor write and the group
 * cannot write. Returns its bytes, NUL-terminated, or NULL; *missing (may be NULL) tells whether it
 * just does not exist. Freed with tl_secret_free. Makes libsodium ready. */
char *tl_secret_read(const char *path, size_t *length, bool *missing, struct tl_error *err);
/* Wipes and frees; NULL allowed. Clears the caller's pointer. */
void tl_secret_free(char **bytes, size_t length);

/* Makes the file with these bytes, mode 0600, and its folder (0700) if there is none, unless the
 * file exists: of two processes at once, the second finds the complete file of the first. Made by
 * root, it belongs to the owner of the folder, whose programs read it. True also when the file
 * existed already; a file that is made is logged, as one with `what` in it. */
bool tl_secret_create(const char *path, const char *bytes, size_t length, const char *what,
                      struct tl_error *err);

enum { TL_SECRET_KEY_BYTES = 32 };

/* As tl_secret_create: a file with one random key in hex digits behind the heading, which is lines
 * of comments, and what stands before the key in its own line. */
bool tl_secret_create_key(const char *path, const char *heading, const char *what,
                          struct tl_error *err);
/* Reads a file with one key: a line of hex digits beside comments. `what` names the key in
 * messages; the key itself never goes into one. With a comment, a missing file is made by
 * tl_secret_create_key. The caller wipes the key. */
bool tl_secret_load_key(const char *path, const char *what, const char *comment,
                        unsigned char key[TL_SECRET_KEY_BYTES], struct tl_error *err);

/* Appends a line, given without its end, to the file: another process finds it with the line or
 * without. The file keeps its owner and mode; a missing one is made as by tl_secret_create. */
bool tl_secret_append(const char *path, const char *line, const char *what, struct tl_error *err);

/* Takes the next line that is not empty off *rest, without its end, '#' comment and surrounding
 * blanks; changes the bytes. *number, from 0 (NULL: not wanted), is moved on to that of the line.
 * False at the end. */
bool tl_secret_line(char **rest, char **line, unsigned *number);
/* The only line of the text that is not empty; NULL when there is none, or another one. */
const char *tl_secret_only_line(char *text);

#endif
