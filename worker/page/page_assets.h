/* SPDX-License-Identifier: Apache-2.0 */
/* The static files of the pages, which are built into the program. */
#ifndef TL_PAGE_ASSETS_H
#define TL_PAGE_ASSETS_H

#include <stddef.h>

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
extern const struct tl_asset tl_page_icon;
/* The script for pages of other sites. Its address stays, for they cannot know a hash. */
extern const struct tl_asset tl_page_embed;
/* The description of the API; its path is where it is served. */
extern const struct tl_asset tl_page_openapi;
/* A built-in file that is served as a part of the page only. */
struct tl_page_file {
    const void *bytes; /* static storage; not terminated */
    size_t length;
};

extern const struct tl_page_file tl_page_html; /* the template */
extern const struct tl_page_file tl_page_style;
extern const struct tl_page_file tl_page_script;
extern const struct tl_page_file tl_page_attention; /* the script of the sound and the screen */
extern const struct tl_page_file tl_page_refresh;   /* the script that replaces the refresh */

#endif
