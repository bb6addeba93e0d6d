#include <string.h>

#include "worker/page/page_fields.h"
#include "worker/page/page_text.h"

static const char *const field_names[N_FIELDS] = {
    [FIELD_LANG] = "lang",
    [FIELD_IS_EN] = "is_en",
    [FIELD_IS_KO] = "is_ko",
    [FIELD_EN_URL] = "en_url",
    [FIELD_KO_URL] = "ko_url",
    [FIELD_TITLE] = "title",
    [FIELD_BRAND] = "brand",
    [FIELD_BRAND_TEXT] = "brand_text",
    [FIELD_COLOURS_URL] = "colours_url",
    [FIELD_BRAND_STYLE_URL] = "brand_style_url",
    [FIELD_LOGO_URL] = "logo_url",
    [FIELD_NO_LOGO] = "no_logo",
    [FIELD_FAVICON_URL] = "favicon_url",
    [FIELD_STYLE_URL] = "style_url",
    [FIELD_SCRIPT_URL] = "script_url",
    [FIELD_REFRESH] = "refresh",
    [FIELD_REFRESH_EVERY] = "refresh_every",
    [FIELD_SELF_URL] = "self_url",
    [FIELD_JOIN_URL] = "join_url",
    [FIELD_LEAVE_URL] = "leave_url",
    [FIELD_QUEUE] = "queue",
    [FIELD_STATE] = "state",
    [FIELD_VISITOR] = "visitor",
    [FIELD_POSITION] = "position",
    [FIELD_POSITION_RAW] = "position_raw",
    [FIELD_FROM_RAW] = "from_raw",
    [FIELD_PROGRESS] = "progress",
    [FIELD_AHEAD] = "ahead",
    [FIELD_ETA] = "eta",
    [FIELD_POLL_MS] = "poll_ms",
    [FIELD_NOW_MS] = "now_ms",
    [FIELD_OPENS_MS] = "opens_ms",
    [FIELD_OPENS_ISO] = "opens_iso",
    [FIELD_OPENS] = "opens",
    [FIELD_COUNTDOWN] = "countdown",
    [FIELD_NOT_BEFORE] = "not_before",
    [FIELD_NOT_PAUSED] = "not_paused",
    [FIELD_KEPT_MS] = "kept_ms",
    [FIELD_KEPT] = "kept",
    [FIELD_ABSENT] = "absent",
    [FIELD_UPDATED] = "updated",
    [FIELD_NOTICE] = "notice",
    [FIELD_NO_NOTICE] = "no_notice",
    [FIELD_TARGET_URL] = "target_url",
    [FIELD_NO_TARGET] = "no_target",
    [FIELD_RETURN_URL] = "return_url",
    [FIELD_UNTIL] = "until",
    [FIELD_NO_UNTIL] = "no_until",
    [FIELD_NOT_OVER] = "not_over",
    [FIELD_NOT_IN_LINE] = "not_in_line",
    [FIELD_NOT_IN_LINE_OR_DOWN] = "not_in_line_or_down",
    [FIELD_NOT_STATE + TL_PAGE_WAITING] = "not_waiting",
    [FIELD_NOT_STATE + TL_PAGE_PENDING] = "not_pending",
    [FIELD_NOT_STATE + TL_PAGE_ACTIVE] = "not_active",
    [FIELD_NOT_STATE + TL_PAGE_COMPLETED] = "not_completed",
    [FIELD_NOT_STATE + TL_PAGE_LEFT] = "not_left",
    [FIELD_NOT_STATE + TL_PAGE_EXPIRED] = "not_expired",
    [FIELD_NOT_STATE + TL_PAGE_UNCLAIMED] = "not_unclaimed",
    [FIELD_NOT_STATE + TL_PAGE_ABSENT] = "not_absent",
    [FIELD_NOT_STATE + TL_PAGE_ENDED] = "not_ended",
    [FIELD_NOT_STATE + TL_PAGE_LOST] = "not_lost",
    [FIELD_NOT_STATE + TL_PAGE_CLOSED] = "not_closed",
    [FIELD_NOT_STATE + TL_PAGE_INVITED] = "not_invited",
    [FIELD_NOT_STATE + TL_PAGE_DOWN] = "not_down",
};

const char *tl_page_template_name(size_t i)
{
    if (i < N_FIELDS)
        return field_names[i];
    return tl_word_name(i - N_FIELDS);
}

static int find_name(const char *name, size_t length)
{
    for (int i = 0; i < N_FIELDS; i++) {
        if (strlen(field_names[i]) == length && memcmp(field_names[i], name, length) == 0)
            return i;
    }
    int word = tl_word_find(name, length);
    return word < 0 ? -1 : N_FIELDS + word;
}

struct tl_template *tl_page_template(const char *label, const void *bytes, size_t length,
                                     struct tl_error *err)
{
    return tl_template_parse(label, bytes, length, find_name, err);
}
