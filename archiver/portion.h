/* SPDX-License-Identifier: Apache-2.0 */
/* Visitors of Redis as they are compared with PostgreSQL. Nothing here uses the network. */
#ifndef TL_ARCHIVE_PORTION_H
#define TL_ARCHIVE_PORTION_H

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/store/reply.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

#define TL_PORTION_SUM_SIZE 65 /* SHA-256 in hexadecimal digits */

struct tl_portion_one {
    tl_place place;
    uint64_t deadline; /* of the session; 0: waits */
    char name[TL_VISITOR_MAX + 1];
};

/* Zeroed: nobody. Sorted by seq. */
struct tl_portion {
    struct tl_portion_one *of;
    size_t n;
};

/* The columns as texts of arrays of PostgreSQL; visitors are separated by spaces. */
struct tl_portion_texts {
    struct tl_text seqs, lanes, visitors, deadlines;
};

/* Reads rows of the reply of archiver/reconcile.lua: with deadlines those of sessions. key: of the
 * names (archiver/rows.h). What no visitor can be called is changed into what can be written, and
 * so differs. */
bool tl_portion_read(struct tl_portion *portion, const struct tl_reply *rows, bool deadlines,
                     const unsigned char *key, struct tl_error *err);
void tl_portion_free(struct tl_portion *portion);
/* The checksum of "NAME LANE SEQ\n" of all. */
bool tl_portion_sum(const struct tl_portion *portion, char sum[TL_PORTION_SUM_SIZE],
                    struct tl_error *err);
bool tl_portion_texts(const struct tl_portion *portion, struct tl_portion_texts *texts,
                      struct tl_error *err);
void tl_portion_texts_free(struct tl_portion_texts *texts);

#endif
