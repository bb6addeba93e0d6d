/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leaf of the trail of a queue: one thing that happened, as a line of text
 * (docs/contributors/wire-format.md), `EVENT MS KIND LANE SEQ WHO DETAIL`.
 */
#ifndef TL_LEAF_H
#define TL_LEAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/place.h"

enum {
    TL_LEAF_SALT_BYTES = 16,
    TL_LEAF_WHO_SIZE = 23,     /* characters, with the zero */
    TL_LEAF_DETAIL_MAX = 1024, /* characters */
    TL_LEAF_MAX = 128 + TL_LEAF_DETAIL_MAX
};

struct tl_leaf {
    uint64_t event;
    int64_t ms;
    enum tl_record_note kind;
    tl_place place;             /* 0: none */
    char who[TL_LEAF_WHO_SIZE]; /* "": nobody */
    char detail[TL_LEAF_DETAIL_MAX + 1];
};

/* The name of the kind; NULL: the trail does not have such notes. Static storage. */
const char *tl_leaf_kind_name(enum tl_record_note kind);
/* The name of the reason of an end. Static storage. */
const char *tl_leaf_reason_name(enum tl_reason reason);

/* The name of a reason of a gap (enum tl_record_gap). Static storage. */
const char *tl_leaf_gap_name(uint64_t why);

/* Writes the line, and returns its length. */
size_t tl_leaf_write(const struct tl_leaf *leaf, char line[TL_LEAF_MAX + 1]);
/* Reads a line, strictly: it is the one that tl_leaf_write makes. */
bool tl_leaf_read(const char *line, size_t length, struct tl_leaf *leaf, struct tl_error *err);
/* The place of the visitor from this leaf on, of a move or a draw the one after it, and what stands
 * for the visitor with the salt of that place. 0: it has none. */
tl_place tl_leaf_held(const struct tl_leaf *leaf, char who[TL_LEAF_WHO_SIZE]);

/* The salt of a place: key is that of secrets.archive_key. A visitor to whom it is told can prove
 * that a leaf is theirs. */
void tl_leaf_salt(const unsigned char key[32], uint64_t generation, uint64_t seq,
                  unsigned char salt[TL_LEAF_SALT_BYTES]);
/* What stands for the visitor in a leaf with this salt. */
void tl_leaf_who(const unsigned char salt[TL_LEAF_SALT_BYTES], const char *visitor, size_t length,
                 char who[TL_LEAF_WHO_SIZE]);

#endif
