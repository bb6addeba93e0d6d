/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts and style sheets that stand in the page itself, and the hashes by which the page's
 * policy allows exactly these (CSP 3, "hash-source"). One request shows the page, and a page of one
 * release never asks a worker of another for its files. */
#ifndef TL_PAGE_SOURCE_H
#define TL_PAGE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/base/text.h"

#define TL_SOURCE_HASH_MAX 56 /* 'sha256-...' in single quotes, with the terminating zero */

/* The sources of a page: first its scripts, then its style sheets, each of which can change what
 * those before it say. */
enum tl_page_sources {
    TL_SOURCE_REFRESH,
    TL_SOURCE_PAGE,
    TL_SOURCE_CHALLENGE, /* of a page with a puzzle or the widget of a challenge service */
    TL_SOURCE_LOOK,      /* the built-in style sheet */
    TL_SOURCE_COLOURS,   /* sets the accent colours; absent: default */
    TL_SOURCE_EVENT,     /* the colours of the queue's event; absent: none */
    TL_SOURCE_OWN,       /* the operator's style sheet; absent: none */
    TL_PAGE_SOURCES
};

enum tl_source_kind { TL_SOURCE_SCRIPT, TL_SOURCE_STYLE };

/* Zeroed before the first use. */
struct tl_page_source {
    char *text; /* owned; NULL: there is none */
    size_t length;
    unsigned long crc;       /* of the text (CRC-32) */
    unsigned char *deflated; /* owned: the text as blocks of raw deflate, none of them the last */
    size_t deflated_length;
    char hash[TL_SOURCE_HASH_MAX];
};

/* Copies the bytes the way a browser reads them: without a byte order mark, with line feeds only.
 * Fails, with an error that begins with `name`, on what a browser would read differently or take
 * for the end of the element: an end tag, a zero byte, what is not UTF-8. */
bool tl_page_source_init(struct tl_page_source *source, enum tl_source_kind kind, const char *name,
                         const void *bytes, size_t length, struct tl_error *err);
void tl_page_source_deinit(struct tl_page_source *source);

/* ---- a page with its sources, compressed for its way (gzip, RFC 1952) ---- */

/* Compresses the page, in which any of its brand's sources stand. They are most of a page, always
 * the same, and were compressed when they were made; only what is between them is compressed for
 * each page. No attacker can guess a ticket by the length of an answer: a page holds one only if
 * the request brought no cookie, and then it is a new one. The caller frees *bytes. False, with
 * *bytes NULL, when out of memory. */
bool tl_page_gzip(const struct tl_text *html, const struct tl_page_source sources[TL_PAGE_SOURCES],
                  unsigned char **bytes, size_t *length);

#endif
