/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages look like: the operator's brand, and what the page of a queue shows of its event,
 * `page:` of the queue in the configuration. All of it is checked, with its files read, at once. */
#ifndef TL_LOOK_H
#define TL_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/settings.h"
#include "worker/page/languages.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_source.h"
#include "worker/page/template.h"

/* ---- colours written as #rrggbb ---- */

#define TL_COLOUR_AA 4.5 /* the contrast that level AA requires of text of normal size */

/* "#1a5fb4" to 0x1a5fb4. */
bool tl_colour_parse(const char *text, uint32_t *colour);

/* The contrast ratio of WCAG 2.2, from 1 to 21. */
double tl_colour_contrast(uint32_t a, uint32_t b);
/* The colour, mixed with as little white or black as makes it readable text on the background. It
 * stays as it is when it is readable. */
uint32_t tl_colour_readable(uint32_t colour, uint32_t background);
/* The least contrast that text of this colour has on a gradient of n colours. */
double tl_colour_gradient_contrast(uint32_t text, const uint32_t *colours, size_t n);

/* ---- the brand ---- */

/* One operator's look: name, accent colours, style sheet, logo and texts. It never changes. */
struct tl_brand {
    const struct tl_brand_settings *settings; /* borrowed */
    struct tl_page_source sources[TL_PAGE_SOURCES];
    struct tl_asset_file logo;            /* may be absent */
    struct tl_template *template;         /* owned: of the waiting page */
    const struct tl_languages *languages; /* borrowed */
};

/* Reads the files and checks every setting. With empty settings the brand has the default look.
 * Settings and languages are borrowed. NULL on failure, with an error that names the setting; freed
 * with tl_brand_free. */
struct tl_brand *tl_brand_load(const struct tl_brand_settings *settings,
                               const struct tl_languages *languages, struct tl_error *err);
void tl_brand_free(struct tl_brand **brand);

/* ---- events ---- */

struct tl_event_look {
    char queue[TL_QUEUE_NAME_MAX + 1];
    struct tl_event_page *page; /* owned: the texts and the help link */
    int64_t date_ms;            /* Unix time; 0: the date is a text, or there is none */
    bool has_head;              /* a title, a place or a date */
    struct tl_page_source style;
    struct tl_asset_file image, logo, logo_dark; /* each may be absent */
};

/* Those of all queues. Zeroed before the first use. */
struct tl_event_looks {
    struct tl_event_look *all; /* owned */
    size_t n;
};

/* Reads and checks everything that the configuration says about pages, with its files: before
 * anything runs, and again at a reload. brand is NULL where it is only checked, as after the start:
 * it does not change while the program runs. The languages are those whose texts an event may have.
 * Nothing else is kept of the configuration. On failure nothing is read, and err says what is wrong
 * and where. The caller frees both with tl_brand_free and tl_event_looks_free. */
bool tl_page_read(const struct tl_config *config, const struct tl_languages *languages,
                  struct tl_brand **brand, struct tl_event_looks *looks, struct tl_error *err);
void tl_event_looks_free(struct tl_event_looks *looks);

/* The queue's look, or NULL if it has no event; valid as long as the looks. */
const struct tl_event_look *tl_event_looks_find(const struct tl_event_looks *looks,
                                                const char *queue);
/* The asset with exactly this path, of all pages, the brand or an event; or NULL. Valid as long as
 * both. */
const struct tl_asset *tl_look_asset(const struct tl_brand *brand,
                                     const struct tl_event_looks *looks, const char *path);

/* The texts by language (common/config/texts.h) of the event. Valid as long as the looks. */
const char *tl_event_look_texts(const struct tl_event_look *look, enum tl_event_text text);

#endif
