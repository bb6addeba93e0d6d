/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of a draw as the APIs give it: pages of JSON, each with what the list begins with and
 * some of the draw ids (docs/integrators/openapi.yaml). A copy turns them into the text of the list
 * (ctl/calls/draw_list.h), page by page.
 */
#ifndef TL_CTL_CALLS_DRAW_PAGE_H
#define TL_CTL_CALLS_DRAW_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "ctl/calls/draw_list.h"

enum { TL_DRAW_PAGE_IDS = 1000 }; /* at most */

struct tl_draw_copy {
    FILE *out;                /* the caller's */
    struct tl_draw_head head; /* of the first page */
    uint64_t written;         /* ids */
    bool begun;
};

/* Adds the next page; the first one begins the list. False with err: the draw is not done, the page
 * is damaged, or it is of another draw. */
bool tl_draw_copy_add(struct tl_draw_copy *copy, const json_t *page, struct tl_error *err);

/* The same list as text, from its beginning: `in` itself, or, if it holds pages one after the
 * other, a temporary file. NULL with err. */
FILE *tl_draw_copy_open(FILE *in, struct tl_error *err);

#endif
