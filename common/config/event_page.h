/* SPDX-License-Identifier: Apache-2.0 */
/* The event that a queue's waiting page is for: `page:` of a queue in the file. In the file only,
 * never in the store: it names files of the machine. What the values mean is checked where pages
 * are made (worker/page/look.h). */
#ifndef TL_EVENT_PAGE_H
#define TL_EVENT_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/yaml.h"

enum {
    TL_EVENT_COLOURS_MAX = 3,
    TL_EVENT_HEAD_MAX = 200,    /* bytes of title, place and date */
    TL_EVENT_MOMENT_MAX = 1000, /* bytes of a text of a moment */
    TL_EVENT_VALUE_MAX = 512,   /* bytes of any other value, with the terminating zero */
    TL_EVENT_LANGUAGE_MAX = 36  /* bytes of a language's code, likewise */
};

/* Texts that may differ by language. */
enum tl_event_text {
    TL_EVENT_TITLE,
    TL_EVENT_PLACE,
    TL_EVENT_DATE,
    TL_EVENT_BEFORE, /* the opening; from here on the moments of a visitor */
    TL_EVENT_WAITING,
    TL_EVENT_TURN,
    TL_EVENT_AFTER, /* the sale */
    TL_EVENT_TEXTS
};

/* A text in one language. */
struct tl_event_wording {
    char language[TL_EVENT_LANGUAGE_MAX]; /* "": for all languages */
    char *text;                           /* owned */
    struct tl_yaml_place place;
};

/* A value and where it is written; "": it is not. */
struct tl_event_value {
    char text[TL_EVENT_VALUE_MAX];
    struct tl_yaml_place place;
};

struct tl_event_page {
    struct {
        size_t n; /* 0: there is no such text */
        struct tl_event_wording *wordings;
    } texts[TL_EVENT_TEXTS];
    struct tl_event_value image, logo, logo_dark; /* paths of files */
    struct tl_event_value accent, help;
    size_t n_colours; /* of the gradient */
    struct tl_event_value colours[TL_EVENT_COLOURS_MAX];
};

/* Reads the mapping. `name` stands for the file in messages, owner ("queues.demo") for the queue.
 * NULL on failure; freed with tl_event_page_free. */
struct tl_event_page *tl_event_page_read(const char *name, const char *owner,
                                         const struct tl_yaml *mapping, struct tl_error *err);
/* A copy, freed likewise. NULL when out of memory. */
struct tl_event_page *tl_event_page_copy(const struct tl_event_page *page);
void tl_event_page_free(struct tl_event_page **page);
/* Its name in the file: "title", "texts.before". Static storage. */
const char *tl_event_text_name(enum tl_event_text text);

#endif
