/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes that a worker process gave, so that a visitor who polls gets the same one and it need
 * not be signed again. A table of fixed size, in which a later pass takes the place of an earlier
 * one of another session.
 */
#ifndef TL_KEPT_PASSES_H
#define TL_KEPT_PASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/pass.h"

struct tl_kept_passes;

struct tl_kept_passes *tl_kept_passes_new(void);          /* NULL when out of memory */
void tl_kept_passes_free(struct tl_kept_passes **passes); /* NULL behind it is allowed */
/* Other keys sign now. */
void tl_kept_passes_clear(struct tl_kept_passes *passes);

/* The text of the pass of this admission (`id`), generation and end, borrowed until the next call
 * of another function; NULL: none is kept. */
const char *tl_kept_passes_find(const struct tl_kept_passes *passes, const struct tl_pass *pass);
/* Without memory it is not kept. */
void tl_kept_passes_keep(struct tl_kept_passes *passes, const struct tl_pass *pass,
                         const char *text);

#endif
