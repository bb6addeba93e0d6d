/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the waiting page: values that its template can insert, made from a view. Private to
 * worker/page. */
#ifndef TL_PAGE_FIELDS_H
#define TL_PAGE_FIELDS_H

#include "common/config/event_page.h"
#include "worker/page/page_source.h"
#include "worker/page/page_view.h"

enum tl_page_field {
    FIELD_LANG,
    FIELD_DIR,       /* of the writing: ltr or rtl */
    FIELD_LOCALE,    /* for the browser's Intl */
    FIELD_PLURALS,   /* the names of the plural forms, joined */
    FIELD_LANGUAGE,  /* the name of the page's own */
    FIELD_LANGUAGES, /* a list; of each item: */
    FIELD_ITEM_CODE,
    FIELD_ITEM_NAME,
    FIELD_ITEM_URL,
    FIELD_ITEM_CURRENT,
    FIELD_TITLE,
    FIELD_BRAND,
    FIELD_BRAND_TEXT,
    FIELD_BRAND_LANG, /* of the text, where it is not the page's */
    FIELD_LOGO_URL,
    FIELD_NO_LOGO,
    FIELD_NAME, /* of the event, else of the brand */
    FIELD_LOGO_DARK_URL,
    FIELD_EVENT,      /* is there anything for the head of the card? */
    FIELD_EVENT_TEXT, /* the first of TL_EVENT_TEXTS: "event_title", ... */
    FIELD_EVENT_LANG = FIELD_EVENT_TEXT + TL_EVENT_TEXTS,    /* likewise; set if not the page's */
    FIELD_EVENT_DATE_MS = FIELD_EVENT_LANG + TL_EVENT_TEXTS, /* absent: the date is a text */
    FIELD_EVENT_DATE_ISO,
    FIELD_EVENT_IMAGE_URL,
    FIELD_HAS_EVENT_STYLE,
    FIELD_HELP_URL,
    FIELD_FAVICON_URL,
    FIELD_HAS_COLOURS,
    FIELD_HAS_OWN_STYLE,
    FIELD_REFRESH,
    FIELD_REFRESH_EVERY,
    FIELD_SELF_URL,
    FIELD_JOIN_URL,
    FIELD_LEAVE_URL,
    FIELD_TRANSFER_URL,
    FIELD_MOVE_URL,
    FIELD_MOVE_CODE,
    FIELD_NO_MOVE_CODE,
    FIELD_MOVE_DEVICE,
    FIELD_CODE_ADDRESS,
    FIELD_CODE_LEFT,
    FIELD_QR_VIEW,
    FIELD_QR_PATH,
    FIELD_JOIN_LABEL,
    FIELD_QUEUE,
    FIELD_STATE,
    FIELD_VISITOR,
    FIELD_POSITION_RAW,
    FIELD_FROM_RAW,
    FIELD_PROGRESS,
    FIELD_AHEAD,
    FIELD_ETA,
    FIELD_ETA_WHY,
    FIELD_NO_ETA_WHY,
    FIELD_NO_ETA, /* nothing is known, and something else says why */
    FIELD_POLL_MS,
    FIELD_NOW_MS,
    FIELD_OPENS_MS,
    FIELD_OPENS_ISO,
    FIELD_OPENS,
    FIELD_COUNTDOWN,
    FIELD_NOT_BEFORE,
    FIELD_NOT_PAUSED,
    FIELD_NOT_RECOVERING,
    FIELD_NO_DRAINING,
    FIELD_NO_CLOSING,
    FIELD_NO_SOLD_OUT,
    FIELD_HAS_CAPACITY,
    FIELD_SHUT_SAYS,
    FIELD_SHUT_LANG, /* where it is not the page's */
    FIELD_SOLD_OUT_SAYS,
    FIELD_SOLD_OUT_LANG,
    FIELD_DRAWING,
    FIELD_NOT_DRAWING,
    FIELD_NOT_CALLED,
    FIELD_KEPT_MS,
    FIELD_KEPT,
    FIELD_ABSENT,
    FIELD_UPDATED,
    FIELD_REFERENCE,
    FIELD_NO_REFERENCE,
    FIELD_NOTICE,
    FIELD_NO_NOTICE,
    FIELD_TARGET_URL,
    FIELD_NO_TARGET,
    FIELD_RETURN_URL,
    FIELD_CHALLENGE_URL,
    FIELD_PUZZLE,
    FIELD_PUZZLE_PARTS,
    FIELD_PUZZLE_BITS,
    FIELD_WAIT_URL,
    FIELD_CHALLENGE_WAIT,
    FIELD_SERVICE,
    FIELD_SERVICE_KEY,
    FIELD_SERVICE_SCRIPT,
    FIELD_SERVICE_SCORED,
    FIELD_SERVICE_BY,
    FIELD_NOT_ALMOST,
    FIELD_PROGRESS_TEXT,
    FIELD_ADMITTED,
    FIELD_NO_ADMITTED,
    FIELD_CLAIMED,
    FIELD_NOT_CLAIMED,
    FIELD_SESSION_THEN,
    FIELD_NEXT_STEP,
    FIELD_STALE,
    FIELD_PREVIEW,
    FIELD_ETA_LOW, /* seconds, for the script */
    FIELD_ETA_HIGH,
    FIELD_ENDS_MS,
    FIELD_UNTIL,
    FIELD_NO_UNTIL,
    /* Fields that hide parts of the page. */
    FIELD_NO_JOIN,     /* in line, admitted, or not able to join */
    FIELD_NOT_IN_LINE, /* neither waiting nor pending */
    FIELD_NOT_STATE,   /* the first of TL_PAGE_STATES: "not_waiting", ... */
    /* The sources, in the order of enum tl_page_sources. */
    FIRST_SOURCE = FIELD_NOT_STATE + TL_PAGE_STATES,
    N_FIELDS = FIRST_SOURCE + TL_PAGE_SOURCES
};

/* The name by which the template refers to the field. Static storage. */
const char *tl_page_field_name(enum tl_page_field field);

#endif
