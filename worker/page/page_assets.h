/* SPDX-License-Identifier: Apache-2.0 */
/* The static files of the pages: those that are built into the program, and the operator's. */
#ifndef TL_PAGE_ASSETS_H
#define TL_PAGE_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "worker/page/page_source.h"

/* Addresses hold a hash of the content, so an asset may be cached forever. */
#define TL_ASSET_PREFIX        "/q/assets/"
#define TL_ASSET_CACHE_CONTROL "public, max-age=31536000, immutable"
/* Send it with every asset, beside `X-Content-Type-Options: nosniff`. A sandbox keeps an SVG that
 * is opened by itself from running scripts; a script in it could not be a web worker. */
#define TL_ASSET_POLICY        "default-src 'none'; style-src 'unsafe-inline'; sandbox"
#define TL_ASSET_SCRIPT_POLICY "default-src 'none'"

struct tl_asset {
    const char *path; /* from the root: "/q/assets/page-0123456789ab.css" */
    const char *type; /* Content-Type */
    const char *etag; /* in double quotes */
    const void *bytes;
    size_t length;
    const void *gzip; /* the same compressed; NULL: there is none */
    size_t gzip_length;
};

/* The built-in asset with exactly this path, or NULL. Static storage. See also tl_brand_asset. */
const struct tl_asset *tl_page_asset(const char *path);

/* The script of a page with a puzzle, which stands in that page; a web worker needs an address. */
extern const struct tl_asset tl_page_challenge;
/* The script of the page that proves a place. */
extern const struct tl_asset tl_page_proof;
extern const struct tl_asset tl_page_icon;
/* The script for pages of other sites. Its address stays, for they cannot know a hash. */
extern const struct tl_asset tl_page_embed;
/* The description of the API; its path is where it is served. */
extern const struct tl_asset tl_page_openapi;
/* A built-in file that is served as a part of the page only. */
struct tl_page_file {
    const char *name;  /* NULL: there is none */
    const void *bytes; /* static storage; not terminated */
    size_t length;
};

extern const struct tl_page_file tl_page_html;       /* the template */
extern const struct tl_page_file tl_page_proof_html; /* that of the page that proves a place */
extern const struct tl_page_file tl_page_parts[TL_PAGE_SOURCES];

/* ---- the operator's files ---- */

#define TL_BRAND_LOGO_MAX  102400 /* bytes */
#define TL_BRAND_STYLE_MAX 65536  /* bytes */
#define TL_EVENT_IMAGE_MAX 512000 /* bytes */

enum tl_asset_file_kind {
    TL_FILE_STYLE, /* .css */
    TL_FILE_LOGO,  /* .svg, .png or .webp */
    TL_FILE_IMAGE  /* .jpg, .png or .webp */
};

/* An asset of an operator's file, read whole, with a limit, and held against what its name says,
 * with an address made from a hash of its content. Zeroed before the first use; it does not move
 * while the asset is used. */
struct tl_asset_file {
    struct tl_asset asset;
    char path[64], etag[20];
    void *bytes; /* owned; NULL: there is no such asset */
};

/* Reads and checks the file. `setting` names it in messages; the kind names it in its address. */
bool tl_asset_file_init(struct tl_asset_file *file, enum tl_asset_file_kind kind,
                        const char *setting, const char *path, struct tl_error *err);
void tl_asset_file_deinit(struct tl_asset_file *file);

#endif
