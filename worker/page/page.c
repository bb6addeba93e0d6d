#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/units.h"

#include "worker/page/page.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_fields.h"
#include "worker/page/page_text.h"
#include "worker/page/return_address.h"

/* ---- addresses ---- */

static void append_encoded(struct tl_text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        if (plain)
            tl_text_append(out, "%c", c);
        else
            tl_text_append(out, "%%%02X", c);
    }
}

static void append_parameter(struct tl_text *out, bool *first, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    tl_text_append(out, "%c%s=", *first ? '?' : '&', name);
    append_encoded(out, value);
    *first = false;
}

static uint64_t first_position(const struct tl_page_view *view)
{
    return view->from > view->position ? view->from : view->position;
}

static const char *sound_or_null(const char *address)
{
    return address != NULL && tl_address_sound(address) ? address : NULL;
}

static void append_address(const struct tl_page_view *view, const char *action,
                           const char *language, struct tl_text *out)
{
    bool first = true;
    char from[24] = "";
    bool waiting = view->state == TL_PAGE_WAITING || view->state == TL_PAGE_DOWN;
    if (waiting && first_position(view) > 0)
        snprintf(from, sizeof(from), "%" PRIu64, first_position(view));
    tl_text_append(out, "/q/%s%s", view->queue, action);
    append_parameter(out, &first, "lang", language);
    append_parameter(out, &first, "ticket", view->ticket);
    append_parameter(out, &first, "from", from);
    append_parameter(out, &first, "return", sound_or_null(view->return_url));
}

void tl_page_address(const struct tl_page_view *view, const char *action, struct tl_text *out)
{
    append_address(view, action, NULL, out);
}

/* ---- the values of one page ---- */

struct page {
    const struct tl_page_view *view;
    const struct tl_brand *brand;
    enum tl_language language;
    const char *values[N_FIELDS];
    struct tl_text made[N_FIELDS]; /* values that were put together here */
    bool failed;
};

static void set_if(struct page *page, enum tl_page_field field, bool condition)
{
    page->values[field] = condition ? "1" : NULL;
}

/* A copy that lives as long as the page. */
static void set_copy(struct page *page, enum tl_page_field field, const char *text)
{
    struct tl_text *made = &page->made[field];
    tl_text_append(made, "%s", text);
    page->failed |= made->failed;
    page->values[field] = made->data;
}

static void set_number(struct page *page, enum tl_page_field field, int64_t number)
{
    char text[TL_UNITS_TEXT_MAX];
    snprintf(text, sizeof(text), "%" PRId64, number);
    set_copy(page, field, text);
}

static void set_address(struct page *page, enum tl_page_field field, const char *action,
                        const char *language)
{
    struct tl_text *made = &page->made[field];
    append_address(page->view, action, language, made);
    page->failed |= made->failed;
    page->values[field] = made->data;
}

static void set_phrase(struct page *page, enum tl_page_field field, const char *word,
                       const char *first, const char *second)
{
    char text[TL_PHRASE_MAX];
    tl_phrase(word, page->language, first, second, text, sizeof(text));
    set_copy(page, field, text);
}

static void set_duration(struct page *page, enum tl_page_field field, const char *word,
                         int64_t seconds)
{
    char text[TL_PHRASE_MAX];
    tl_write_duration(seconds, page->language, text, sizeof(text));
    set_phrase(page, field, word, text, NULL);
}

struct state_text {
    const char *name, *title;
};

static const struct state_text states[TL_PAGE_STATES] = {
    [TL_PAGE_WAITING] = {"waiting", "title_waiting"},
    [TL_PAGE_PENDING] = {"pending", "title_pending"},
    [TL_PAGE_ACTIVE] = {"active", "title_active"},
    [TL_PAGE_COMPLETED] = {"completed", "title_over"},
    [TL_PAGE_LEFT] = {"left", "title_over"},
    [TL_PAGE_EXPIRED] = {"expired", "title_over"},
    [TL_PAGE_UNCLAIMED] = {"unclaimed", "title_over"},
    [TL_PAGE_ABSENT] = {"absent", "title_over"},
    [TL_PAGE_ENDED] = {"ended", "title_over"},
    [TL_PAGE_LOST] = {"lost", "title_over"},
    [TL_PAGE_CLOSED] = {"closed", "title_over"},
    [TL_PAGE_INVITED] = {"invited", "title_over"},
    [TL_PAGE_DOWN] = {"down", "title_down"},
};

static bool is_over(enum tl_page_state state)
{
    return state >= TL_PAGE_COMPLETED && state <= TL_PAGE_LOST;
}

static void set_brand(struct page *page)
{
    const struct tl_asset *colours = tl_brand_colours(page->brand);
    const struct tl_asset *style = tl_brand_style(page->brand);
    const struct tl_asset *logo = tl_brand_logo(page->brand);
    const char *name = tl_brand_name(page->brand);
    page->values[FIELD_BRAND] = name[0] == '\0' ? page->view->queue : name;
    page->values[FIELD_BRAND_TEXT] = tl_brand_text(page->brand, page->language);
    page->values[FIELD_COLOURS_URL] = colours == NULL ? NULL : colours->path;
    page->values[FIELD_BRAND_STYLE_URL] = style == NULL ? NULL : style->path;
    page->values[FIELD_LOGO_URL] = logo == NULL ? NULL : logo->path;
    set_if(page, FIELD_NO_LOGO, logo == NULL);
    page->values[FIELD_FAVICON_URL] = tl_page_icon()->path;
    page->values[FIELD_STYLE_URL] = tl_page_style()->path;
    page->values[FIELD_SCRIPT_URL] = tl_page_script()->path;
}

/* A browser that keeps no cookies does not keep the language either. */
static const char *kept_language(const struct page *page)
{
    return page->view->ticket == NULL ? NULL : tl_language_code(page->language);
}

static void set_language(struct page *page)
{
    page->values[FIELD_LANG] = tl_language_code(page->language);
    set_if(page, FIELD_IS_EN, page->language == TL_LANGUAGE_EN);
    set_if(page, FIELD_IS_KO, page->language == TL_LANGUAGE_KO);
    set_address(page, FIELD_EN_URL, "", tl_language_code(TL_LANGUAGE_EN));
    set_address(page, FIELD_KO_URL, "", tl_language_code(TL_LANGUAGE_KO));
    set_address(page, FIELD_SELF_URL, "", kept_language(page));
    set_address(page, FIELD_JOIN_URL, "/join", kept_language(page));
    set_address(page, FIELD_LEAVE_URL, "/leave", kept_language(page));
}

static void set_state(struct page *page)
{
    const struct tl_page_view *view = page->view;
    char position[TL_UNITS_TEXT_MAX];
    char title[TL_PHRASE_MAX];
    page->values[FIELD_STATE] = states[view->state].name;
    page->values[FIELD_QUEUE] = view->queue;
    page->values[FIELD_VISITOR] = view->visitor;
    for (unsigned i = 0; i < TL_PAGE_STATES; i++)
        set_if(page, (enum tl_page_field)(FIELD_NOT_STATE + i), i != view->state);
    bool in_line = view->state == TL_PAGE_WAITING || view->state == TL_PAGE_PENDING;
    set_if(page, FIELD_NOT_OVER, !is_over(view->state));
    set_if(page, FIELD_NOT_IN_LINE, !in_line && view->state != TL_PAGE_DOWN);
    set_if(page, FIELD_NOT_IN_LINE_OR_DOWN, !in_line);
    tl_write_number(view->position, position, sizeof(position));
    tl_phrase(states[view->state].title, page->language, position, NULL, title, sizeof(title));
    struct tl_text *made = &page->made[FIELD_TITLE];
    tl_text_append(made, "%s – %s", title, page->values[FIELD_BRAND]);
    page->failed |= made->failed;
    page->values[FIELD_TITLE] = made->data;
}

/* How far the place has come since the first one known, in thousandths. */
static int64_t progress(const struct tl_page_view *view)
{
    uint64_t from = first_position(view);
    if (view->position == 0 || from == 0)
        return 0;
    return (int64_t)((double)(from - view->position) * 1000 / (double)from);
}

static void set_place(struct page *page)
{
    const struct tl_page_view *view = page->view;
    char text[TL_PHRASE_MAX];
    if (view->position > 0) {
        tl_write_number(view->position, text, sizeof(text));
        set_copy(page, FIELD_POSITION, text);
        set_number(page, FIELD_POSITION_RAW, (int64_t)view->position);
        set_number(page, FIELD_FROM_RAW, (int64_t)first_position(view));
    }
    set_number(page, FIELD_PROGRESS, progress(view));
    tl_write_number(view->ahead, text, sizeof(text));
    set_phrase(page, FIELD_AHEAD, "ahead_value", text, NULL);
    if (view->has_eta)
        tl_write_range(view->eta_low_s, view->eta_high_s, page->language, text, sizeof(text));
    set_copy(page, FIELD_ETA,
             view->has_eta ? text : tl_word_named("range_unknown", page->language));
    set_if(page, FIELD_NOT_PAUSED, !view->paused);
    bool notice = view->notice != NULL && view->notice[0] != '\0';
    page->values[FIELD_NOTICE] = view->notice;
    set_if(page, FIELD_NO_NOTICE, !notice);
}

static void set_clock_time(struct page *page)
{
    char clock[TL_UNITS_TEXT_MAX] = "";
    struct tm tm;
    time_t seconds = (time_t)(page->view->now_ms / 1000);
    if (gmtime_r(&seconds, &tm) != NULL)
        snprintf(clock, sizeof(clock), "%02d:%02d:%02d UTC", tm.tm_hour, tm.tm_min, tm.tm_sec);
    set_phrase(page, FIELD_UPDATED, "updated_at", clock, NULL);
}

static void set_times(struct page *page)
{
    const struct tl_page_view *view = page->view;
    char text[TL_PHRASE_MAX];
    set_number(page, FIELD_NOW_MS, view->now_ms);
    set_number(page, FIELD_POLL_MS, view->poll_after_ms);
    set_clock_time(page);
    bool before = view->opens_at_ms > view->now_ms;
    set_if(page, FIELD_NOT_BEFORE, !before);
    if (before) {
        set_number(page, FIELD_OPENS_MS, view->opens_at_ms);
        tl_time_format(view->opens_at_ms, text, sizeof(text));
        set_copy(page, FIELD_OPENS_ISO, text);
        tl_write_time(view->opens_at_ms, page->language, text, sizeof(text));
        set_copy(page, FIELD_OPENS, text);
        tl_write_duration((view->opens_at_ms - view->now_ms + 999) / 1000, page->language, text,
                          sizeof(text));
        set_copy(page, FIELD_COUNTDOWN, text);
    }
    set_number(page, FIELD_KEPT_MS, view->waiting_ttl_ms);
    if (view->waiting_ttl_ms > 0)
        set_duration(page, FIELD_KEPT, "kept_text", view->waiting_ttl_ms / 1000);
    set_duration(page, FIELD_ABSENT, "absent_text", view->waiting_ttl_ms / 1000);
    set_if(page, FIELD_NO_UNTIL, view->expires_at_ms == 0);
    if (view->expires_at_ms > 0) {
        tl_write_time(view->expires_at_ms, page->language, text, sizeof(text));
        set_phrase(page, FIELD_UNTIL, "active_until", text, NULL);
    }
}

/* Where the page goes on to, and how it refreshes itself without the script. */
static void set_way_on(struct page *page)
{
    const struct tl_page_view *view = page->view;
    char refresh[TL_RETURN_ADDRESS_MAX + 32];
    page->values[FIELD_RETURN_URL] = sound_or_null(view->return_url);
    const char *target = page->values[FIELD_RETURN_URL];
    if (target == NULL)
        target = sound_or_null(view->target_url);
    if (view->state != TL_PAGE_ACTIVE)
        target = NULL;
    page->values[FIELD_TARGET_URL] = target;
    set_if(page, FIELD_NO_TARGET, target == NULL);
    if (view->state == TL_PAGE_ACTIVE && target != NULL) {
        snprintf(refresh, sizeof(refresh), "%d;url=%s", TL_PAGE_GO_ON_S, target);
        set_copy(page, FIELD_REFRESH, refresh);
    } else if (view->state == TL_PAGE_WAITING || view->state == TL_PAGE_PENDING ||
               view->state == TL_PAGE_DOWN) {
        int64_t seconds = (view->poll_after_ms + 999) / 1000;
        if (seconds < TL_PAGE_REFRESH_MIN_S)
            seconds = TL_PAGE_REFRESH_MIN_S;
        struct tl_text *made = &page->made[FIELD_REFRESH];
        tl_text_append(made, "%" PRId64 ";url=", seconds);
        append_address(view, "", kept_language(page), made);
        page->failed |= made->failed;
        page->values[FIELD_REFRESH] = made->data;
        set_duration(page, FIELD_REFRESH_EVERY, "refreshes_every", seconds);
    }
}

static const char *value_of(const void *context, int number)
{
    const struct page *page = context;
    return number < N_FIELDS ? page->values[number] : tl_word(number - N_FIELDS, page->language);
}

void tl_page_render(const struct tl_page_view *view, const struct tl_brand *brand,
                    enum tl_language language, struct tl_text *out)
{
    struct page page = {.view = view, .brand = brand, .language = language};
    set_brand(&page);
    set_language(&page);
    set_way_on(&page);
    set_state(&page);
    set_place(&page);
    set_times(&page);
    if (page.failed)
        out->failed = true;
    else
        tl_template_render(tl_brand_template(brand), value_of, &page, out);
    for (size_t i = 0; i < N_FIELDS; i++)
        tl_text_free(&page.made[i]);
}
