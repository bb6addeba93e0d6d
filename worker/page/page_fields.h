/* The fields of the waiting page: values that its template can insert, made from a view. Private to
 * worker/page. */
#ifndef TL_PAGE_FIELDS_H
#define TL_PAGE_FIELDS_H

#include "worker/page/page_view.h"

enum tl_page_field {
    FIELD_LANG,
    FIELD_IS_EN,
    FIELD_IS_KO,
    FIELD_EN_URL,
    FIELD_KO_URL,
    FIELD_TITLE,
    FIELD_BRAND,
    FIELD_BRAND_TEXT,
    FIELD_COLOURS_URL,
    FIELD_BRAND_STYLE_URL,
    FIELD_LOGO_URL,
    FIELD_NO_LOGO,
    FIELD_FAVICON_URL,
    FIELD_STYLE_URL,
    FIELD_SCRIPT_URL,
    FIELD_REFRESH,
    FIELD_REFRESH_EVERY,
    FIELD_SELF_URL,
    FIELD_JOIN_URL,
    FIELD_LEAVE_URL,
    FIELD_JOIN_LABEL,
    FIELD_QUEUE,
    FIELD_STATE,
    FIELD_VISITOR,
    FIELD_POSITION,
    FIELD_POSITION_RAW,
    FIELD_FROM_RAW,
    FIELD_PROGRESS,
    FIELD_AHEAD,
    FIELD_ETA,
    FIELD_ETA_WHY,
    FIELD_NO_ETA_WHY,
    FIELD_NO_ETA, /* before the opening, when nothing is known */
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
    FIELD_SOLD_OUT_SAYS,
    FIELD_DRAWING,
    FIELD_NOT_DRAWING,
    FIELD_NOT_CALLED,
    FIELD_KEPT_MS,
    FIELD_KEPT,
    FIELD_ABSENT,
    FIELD_UPDATED,
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
    FIELD_UNTIL,
    FIELD_NO_UNTIL,
    /* Fields that hide parts of the page. */
    FIELD_NO_JOIN,             /* in line, admitted, or not able to join */
    FIELD_NOT_IN_LINE,         /* neither waiting nor pending nor down */
    FIELD_NOT_IN_LINE_OR_DOWN, /* neither waiting nor pending */
    FIELD_NOT_STATE,           /* the first of TL_PAGE_STATES: "not_waiting", ... */
    N_FIELDS = FIELD_NOT_STATE + TL_PAGE_STATES
};

/* The name by which the template refers to the field. Static storage. */
const char *tl_page_field_name(enum tl_page_field field);

#endif
