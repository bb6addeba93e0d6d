/* SPDX-License-Identifier: Apache-2.0 */
/* What one step has changed, as its function answers (common/store/line/changes.lua). */
#ifndef TL_CHANGES_MADE_H
#define TL_CHANGES_MADE_H

struct tl_changes_made {
    char *before, *after; /* JSON objects of the members that changed; "{}" when nothing differs */
};

/* Frees both texts; a zeroed struct is allowed. */
void tl_changes_made_free(struct tl_changes_made *made);

#endif
