/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a reply of the store. All accessors accept NULL. */
#ifndef TL_REPLY_H
#define TL_REPLY_H

#include <stddef.h>
#include <stdint.h>

struct tl_reply; /* one reply; its parts are borrowed from it */

enum tl_reply_type {
    TL_REPLY_NIL,
    TL_REPLY_INTEGER,
    TL_REPLY_STRING,
    TL_REPLY_ARRAY,
    TL_REPLY_OTHER
};

void tl_reply_free(struct tl_reply *reply); /* NULL allowed; only for replies a call returned */
enum tl_reply_type
tl_reply_type(const struct tl_reply *reply); /* status replies count as strings */
int64_t
tl_reply_integer(const struct tl_reply *reply); /* of an integer or of digits in a string; else 0 */
/* Bytes of a string (NUL-terminated, may hold zeros); "" and 0 for anything else. */
const char *tl_reply_string(const struct tl_reply *reply, size_t *length);
size_t tl_reply_count(const struct tl_reply *reply); /* elements of an array; else 0 */
/* The i-th element, borrowed; NULL past the end or if it is no array. */
const struct tl_reply *tl_reply_at(const struct tl_reply *reply, size_t i);
/* The value of a name in an array of names and values in turn, borrowed; NULL: it is not there. */
const struct tl_reply *tl_reply_of(const struct tl_reply *reply, const char *name);
/* The i-th element as a number, as one that may be negative, and as a text without zeros. 0 and ""
 * for one that is not there or is none. What functions return has names: generated/protocol.h. */
uint64_t tl_reply_number(const struct tl_reply *reply, size_t i);
int64_t tl_reply_signed(const struct tl_reply *reply, size_t i);
const char *tl_reply_text(const struct tl_reply *reply, size_t i);

/* The value of a field in the text that INFO and CLUSTER INFO answer, which goes on behind it; ""
 * when there is none. */
const char *tl_info_field(const char *info, const char *name);

#endif
