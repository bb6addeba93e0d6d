/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the record of a queue: decoding (docs/contributors/wire-format.md). They are written
 * in the store (common/store/line/record.lua). Nothing is allocated or copied.
 */
#ifndef TL_RECORD_H
#define TL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/fields.h"
#include "common/wire/place.h"

enum { TL_RECORD_BYTES_MAX = 16 * 1024 * 1024 };

/* An entry; its notes are read one after the other. */
struct tl_record {
    uint64_t generation, event;
    int64_t at_ms;
    struct tl_fields rest;
};

/* A note: what happened to these visitors; they are read one after the other, with their places. */
struct tl_note {
    enum tl_record_note kind;
    uint64_t detail;
    const char *visitors; /* that were not read yet, separated by spaces */
    size_t length;        /* of them */
    size_t n_numbers;     /* of the spans that were not read yet */
    struct tl_fields numbers;
    tl_place next; /* the rest of a span */
    uint64_t count;
};

/* Reads the head of the entry, which stays the owner of the bytes, and checks all notes behind it.
 * TL_ERR_INVALID: nothing of it may be used; TL_ERR_PROTOCOL: another release wrote it. err has to
 * stay while the record is read. */
bool tl_record_open(const void *bytes, size_t length, struct tl_record *record,
                    struct tl_error *err);
/* The next note. False: there is none. */
bool tl_record_next(struct tl_record *record, struct tl_note *note);
/* The next visitor, and its place. False: there is none, or its place is missing. */
bool tl_note_visitor(struct tl_note *note, const char **visitor, size_t *length, tl_place *place);
/* The same for a note without places. */
bool tl_note_name(struct tl_note *note, const char **visitor, size_t *length);
/* What a note of rules says, printable ASCII without spaces. */
const char *tl_note_rules(const struct tl_note *note, size_t *length);
/* The next number of the spans, for notes whose spans hold something else. 0: there is none. */
uint64_t tl_note_number(struct tl_note *note);

#endif
