/* SPDX-License-Identifier: Apache-2.0 */
/* What the page of a queue shows of its event: `page:` of the queue in the configuration, checked,
 * with its files read. All queues' looks are made at once, at the start and at a reload, and never
 * change after that. */
#ifndef TL_EVENT_LOOK_H
#define TL_EVENT_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/event_page.h"
#include "common/config/settings.h"
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

struct tl_event_looks;

/* Checks the events of all queues, and reads their files. The languages are those whose texts an
 * event may have, and not kept; nor is the configuration. NULL on failure, with the place in the
 * file; freed with tl_event_looks_free. */
struct tl_event_looks *tl_event_looks_new(const struct tl_config *config,
                                          const struct tl_languages *languages,
                                          struct tl_error *err);
/* The same for a process that is started again: the program checked all this when it started or
 * read its configuration again, and a file that was changed or deleted since is no reason to serve
 * no one. An event that cannot be made is left out, and the log says why. NULL: no memory. */
struct tl_event_looks *tl_event_looks_again(const struct tl_config *config,
                                            const struct tl_languages *languages,
                                            struct tl_error *err);
void tl_event_looks_free(struct tl_event_looks **looks);

/* The queue's look, or NULL if it has no event; valid as long as the looks. */
const struct tl_event_look *tl_event_looks_find(const struct tl_event_looks *looks,
                                                const char *queue);
/* The asset with exactly this path, or NULL; valid likewise. */
const struct tl_asset *tl_event_looks_asset(const struct tl_event_looks *looks, const char *path);

/* The text in this language, else for all languages, else in English, else as it is written first;
 * NULL if there is none. Valid as long as the looks. */
const struct tl_event_wording *tl_event_look_text(const struct tl_event_look *look,
                                                  enum tl_event_text text, const char *language);

/* The check of everything that the configuration says about pages, before anything runs: reads the
 * brand and the events of the queues, with their files. On failure err says what is wrong and
 * where. */
bool tl_page_check(const struct tl_config *config, const struct tl_languages *languages,
                   struct tl_error *err);

#endif
