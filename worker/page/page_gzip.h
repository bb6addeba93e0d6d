/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page compressed for its way (gzip, RFC 1952). Its scripts and style sheets, most of a page and
 * always the same, are compressed once, when they are loaded (tl_page_source_init); only what is
 * between them is compressed for each page. No attacker can guess a ticket by the length of an
 * answer: a page holds one only if the request brought no cookie, and then it is a new one.
 */
#ifndef TL_PAGE_GZIP_H
#define TL_PAGE_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/page/page_source.h"

/* Compresses the page, in which sources may stand in the order of `sources`. The caller frees
 * *bytes. False, with *bytes NULL, when out of memory. */
bool tl_page_gzip(const char *html, size_t length, const struct tl_page_source *const sources[],
                  size_t n, unsigned char **bytes, size_t *compressed);

#endif
