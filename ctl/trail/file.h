/* SPDX-License-Identifier: Apache-2.0 */
/* An exported trail, read. */
#ifndef TL_CTL_TRAIL_FILE_H
#define TL_CTL_TRAIL_FILE_H

#include <stdio.h>

#include "common/archive/checkpoint.h"

struct tl_trail_file {
    char text[TL_CHECKPOINT_MAX]; /* of the checkpoint */
    size_t length;
    struct tl_checkpoint checkpoint;
    struct tl_hash *hashes; /* as the file says */
    size_t n_hashes, hashes_capacity;
    struct tl_hash *leaves; /* as its lines are */
    size_t n_leaves, leaves_capacity;
    uint64_t *offsets; /* of the lines of leaves */
    size_t offsets_capacity;
};

/* Reads the file, and calls `take` with each line of a leaf. TL_ERR_INVALID: it is no trail. The
 * caller frees it in any case. */
bool tl_trail_file_read(FILE *in, struct tl_trail_file *file,
                        void (*take)(void *context, const char *line, size_t length), void *context,
                        struct tl_error *err);
void tl_trail_file_free(struct tl_trail_file *file);
/* Reads the checkpoint at the beginning of a file. */
bool tl_trail_checkpoint_read(FILE *in, char text[TL_CHECKPOINT_MAX], size_t *length,
                              struct tl_checkpoint *checkpoint, struct tl_error *err);

/* The root of the first n of these hashes. */
void tl_trail_root(const struct tl_hash *hashes, size_t n, struct tl_hash *root);

/* How the lines differ from the hashes: at leaf `at` by the hashes, and line `line`. */
struct tl_trail_difference {
    enum {
        TL_TRAIL_ALTERED,
        TL_TRAIL_REPLACED, /* with leaf `other` */
        TL_TRAIL_SWAPPED,  /* with the next one */
        TL_TRAIL_REMOVED,  /* it, and the following ones: `n` in all */
        TL_TRAIL_INSERTED, /* `n` lines before it */
    } how;
    size_t at, line, n, other;
};
/* Calls `found` with each difference, up to a hundred. */
void tl_trail_compare(const struct tl_trail_file *file,
                      void (*found)(void *context, const struct tl_trail_difference *difference),
                      void *context);

#endif
