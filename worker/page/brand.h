/* SPDX-License-Identifier: Apache-2.0 */
/* One operator's look of the pages: name, accent colours, style sheet, logo and texts. Everything
 * is read and checked once, at the start; after that a brand never changes. */
#ifndef TL_BRAND_H
#define TL_BRAND_H

#include "common/base/error.h"

#include "worker/page/languages.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_source.h"
#include "worker/page/template.h"

#define TL_BRAND_NAME_MAX 80   /* bytes */
#define TL_BRAND_TEXT_MAX 2000 /* bytes */

/* As in the configuration; NULL or "" means the default. */
struct tl_brand_settings {
    const char *name;         /* default: the name of the queue */
    const char *accent_light; /* #rrggbb for buttons, links and progress on a light page... */
    const char *accent_dark;  /* ...and on a dark one */
    const char *style_file;   /* .css, applied after the built-in style sheet */
    const char *logo_file;    /* .svg, .png or .webp */
    const char *text_en;      /* a sentence or two at the foot of the page; for all languages... */
    const char *text_ko;      /* ...but Korean */
    const char *timezone;     /* "Asia/Seoul"; default: UTC */
};

struct tl_brand {
    char name[TL_BRAND_NAME_MAX + 1];    /* "" when not set */
    char text_en[TL_BRAND_TEXT_MAX + 1]; /* "" when not set */
    char text_ko[TL_BRAND_TEXT_MAX + 1];
    struct tl_page_source sources[TL_PAGE_SOURCES];
    struct tl_asset_file logo;            /* may be absent */
    struct tl_template *template;         /* owned: of the waiting page */
    const struct tl_languages *languages; /* borrowed */
    bool in_zone; /* the times that pages name are in the zone of the process; else in UTC */
};

struct tl_config;

/* Reads the files and checks every setting. With empty settings the brand has the default look. The
 * languages are borrowed. NULL on failure, with an error that names the setting; freed with
 * tl_brand_free. */
struct tl_brand *tl_brand_load(const struct tl_brand_settings *settings,
                               const struct tl_languages *languages, struct tl_error *err);
/* The settings of the configuration; valid as long as it is. */
struct tl_brand_settings tl_brand_settings_of(const struct tl_config *config);
void tl_brand_free(struct tl_brand **brand);

/* The brand's asset with exactly this path, or NULL; valid as long as the brand. */
const struct tl_asset *tl_brand_asset(const struct tl_brand *brand, const char *path);

#endif
