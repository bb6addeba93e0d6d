/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts and scores in which the store keeps what it knows of a visitor. Functions write them
 * (common/store/line/text.lua); C reads them here and nowhere else.
 * docs/contributors/wire-format.md lists them all.
 *
 * Every parser takes the whole text, as a reply has it ("" for an absent one), or refuses it and
 * leaves the output untouched.
 */
#ifndef TL_RECORDS_H
#define TL_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/place.h"

/* A number of digits, up to 2^53, before `stop`, which *text is then moved past (but not past the
 * end of the text). */
bool tl_record_number(const char **text, char stop, uint64_t *number);

/* A whole number from 0 to 2^53 as a store writes a score. Usually those are digits, but Valkey and
 * newer versions of Redis write 100000000 as 1e+8. */
bool tl_record_score(const char *text, uint64_t *score);

/* The score of a visitor in tl:{q}:waiting. */
bool tl_record_place(const char *text, tl_place *place);

/* A field of tl:{q}:sessions: "place:admitted ms:claimed". */
struct tl_session_record {
    tl_place place;
    int64_t admitted_ms;
    bool claimed;
};
bool tl_record_session(const char *text, struct tl_session_record *session);

/* The score of a visitor in tl:{q}:ended: end ms * 8 + reason. */
struct tl_end_record {
    int64_t ended_ms;
    enum tl_reason reason;
};
bool tl_record_end(const char *text, struct tl_end_record *end);

#endif
