/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves of the trail, made of the notes of a record, until they are written. */
#ifndef TL_ARCHIVE_LEAVES_H
#define TL_ARCHIVE_LEAVES_H

#include "common/archive/leaf.h"
#include "common/wire/record.h"

/* Zeroed: none. */
struct tl_trail_leaves {
    unsigned char *bytes; /* a bundle of them (common/archive/tlog.h) */
    size_t length, capacity, n;
};

void tl_trail_leaves_free(struct tl_trail_leaves *leaves);
/* Adds what the note of this entry tells: a leaf for each visitor in it, one for a note without
 * visitors, none for what is not in the trail. key: of the salts. False: out of memory. */
bool tl_trail_leaves_add(struct tl_trail_leaves *leaves, const unsigned char *key,
                         const struct tl_record *record, struct tl_note note);

#endif
