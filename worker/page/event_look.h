/* SPDX-License-Identifier: Apache-2.0 */
/* What the page of a queue shows of its event: `page:` of the queue in the configuration, checked,
 * with its files read. All queues' looks are made at once, at the start and at a reload. */
#ifndef TL_EVENT_LOOK_H
#define TL_EVENT_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/event_page.h"
#include "common/config/settings.h"
#include "worker/page/brand.h"
#include "worker/page/languages.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_source.h"

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
/* The asset with exactly this path, or NULL; valid likewise. */
const struct tl_asset *tl_event_looks_asset(const struct tl_event_looks *looks, const char *path);

/* The text in this language, else for all languages, else in English, else as it is written first;
 * NULL if there is none. Valid as long as the looks. */
const struct tl_event_wording *tl_event_look_text(const struct tl_event_look *look,
                                                  enum tl_event_text text, const char *language);

#endif
