/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with settings: every mistake, not only the first. */
#ifndef TL_CONFIG_MISTAKES_H
#define TL_CONFIG_MISTAKES_H

#include <stddef.h>
#include <stdio.h>

#include "common/base/error.h"

enum { TL_MISTAKES_MAX = 32, TL_MISTAKE_PATH_MAX = 128 };

/* Zeroed before the first use. */
struct tl_mistakes {
    size_t n; /* the first TL_MISTAKES_MAX of them are kept */
    struct tl_mistake {
        char setting[TL_MISTAKE_PATH_MAX]; /* "rate.admit"; "": all together */
        struct tl_error err;               /* of a file, with its place */
    } list[TL_MISTAKES_MAX];
};
/* `setting` is its path; "": it is of all together. */
void tl_mistakes_add(struct tl_mistakes *mistakes, const char *setting, const struct tl_error *err);
/* A line for each, after the prefix. */
void tl_mistakes_write(const struct tl_mistakes *mistakes, const char *prefix, FILE *out);

#endif
