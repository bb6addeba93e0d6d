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
#include "worker/page/template.h"

#define REFRESH_MIN_S 5 /* without the script the page never reloads faster */
#define GO_ON_AFTER_S 3 /* how long "it is your turn" shows before the page goes on */

/* ---- addresses ---- */

/* Appends "?name=value" or "&name=value", encoded; nothing when there is no value. */
static void append_parameter(struct tl_text *out, bool *first, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    tl_text_append(out, "%c%s=", *first ? '?' : '&', name);
    *first = false;
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        tl_text_append(out, plain ? "%c" : "%%%02X", c);
    }
}

static uint64_t first_position(const struct tl_page_view *view)
{
    return view->from > view->position ? view->from : view->position;
}

static const char *valid_or_null(const char *address)
{
    return address != NULL && tl_address_valid(address) ? address : NULL;
}

/* solution: a signed wait that serves as one, or NULL. */
static void append_joining(const struct tl_page_view *view, const char *action,
                           const char *language, const char *solution, struct tl_text *out)
{
    bool first = true;
    char from[24] = "";
    bool waiting = view->state == TL_PAGE_WAITING || view->state == TL_PAGE_DOWN;
    if (waiting && first_position(view) > 0)
        snprintf(from, sizeof(from), "%" PRIu64, first_position(view));
    tl_text_append(out, "/q/%s%s", view->queue, action);
    append_parameter(out, &first, "lang", language);
    append_parameter(out, &first, "ticket", view->ticket);
    append_parameter(out, &first, "invite", view->invite);
    append_parameter(out, &first, "from", from);
    append_parameter(out, &first, "return", valid_or_null(view->return_url));
    append_parameter(out, &first, "solution", solution);
}

void tl_page_address(const struct tl_page_view *view, const char *action, const char *language,
                     struct tl_text *out)
{
    append_joining(view, action, language, NULL, out);
}

/* ---- the fields of one page ---- */

struct page {
    const struct tl_page_view *view;
    const struct tl_brand_look *look;
    enum tl_language language;
    const char *values[N_FIELDS];   /* borrowed */
    struct tl_text texts[N_FIELDS]; /* owned; used where `values` has none */
};

static void set_if(struct page *page, enum tl_page_field field, bool condition)
{
    page->values[field] = condition ? "1" : NULL;
}

static void set_text(struct page *page, enum tl_page_field field, const char *text)
{
    tl_text_append(&page->texts[field], "%s", text);
}

static void set_number(struct page *page, enum tl_page_field field, int64_t number)
{
    tl_text_append(&page->texts[field], "%" PRId64, number);
}

/* The field becomes the message with {0} replaced by `value`. */
static void set_message(struct page *page, enum tl_page_field field, const char *message,
                        const char *value)
{
    char text[TL_PAGE_TEXT_MAX];
    tl_page_message_format(message, page->language, value, NULL, text, sizeof(text));
    set_text(page, field, text);
}

static void set_duration(struct page *page, enum tl_page_field field, const char *message,
                         int64_t seconds)
{
    char text[TL_PAGE_TEXT_MAX];
    tl_write_duration(seconds, page->language, text, sizeof(text));
    set_message(page, field, message, text);
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
    [TL_PAGE_REMOVED] = {"removed", "title_over"},
    [TL_PAGE_BLOCKED] = {"blocked", "title_blocked"},
    [TL_PAGE_CLOSED] = {"closed", "title_closed"},
    [TL_PAGE_INVITED] = {"invited", "title_invited"},
    [TL_PAGE_FULL] = {"full", "title_full"},
    [TL_PAGE_OUTSIDE] = {"outside", "title_outside"},
    [TL_PAGE_CHALLENGE] = {"challenge", "title_pending"},
    [TL_PAGE_SHUT] = {"shut", "title_shut"},
    [TL_PAGE_SOLD_OUT] = {"sold_out", "title_sold_out"},
    [TL_PAGE_PASSTHROUGH] = {"passthrough", "title_passthrough"},
    [TL_PAGE_DOWN] = {"down", "title_down"},
};

static const char *path_of(const struct tl_asset *asset)
{
    return asset == NULL ? NULL : asset->path;
}

/* Brand, style sheets, script. */
static void set_look(struct page *page)
{
    const struct tl_brand_look *look = page->look;
    page->values[FIELD_BRAND] = look->name[0] == '\0' ? page->view->queue : look->name;
    page->values[FIELD_BRAND_TEXT] = look->text[page->language];
    page->values[FIELD_LOGO_URL] = path_of(look->logo);
    set_if(page, FIELD_NO_LOGO, look->logo == NULL);
    page->values[FIELD_FAVICON_URL] = tl_page_icon.path;
    page->values[FIELD_STYLE_URL] = tl_page_style.path;
    page->values[FIELD_COLOURS_URL] = path_of(look->colours);
    page->values[FIELD_BRAND_STYLE_URL] = path_of(look->style);
    page->values[FIELD_SCRIPT_URL] = tl_page_script.path;
}

/* The page's own addresses, how it reloads itself without the script, and where it takes an
 * admitted visitor. */
static void set_addresses(struct page *page)
{
    const struct tl_page_view *view = page->view;
    const char *code = tl_language_code(page->language);
    /* A browser without cookies does not remember the language either. */
    const char *carried = view->ticket == NULL ? NULL : code;
    page->values[FIELD_LANG] = code;
    set_if(page, FIELD_IS_EN, page->language == TL_LANGUAGE_EN);
    set_if(page, FIELD_IS_KO, page->language == TL_LANGUAGE_KO);
    tl_page_address(view, "", tl_language_code(TL_LANGUAGE_EN), &page->texts[FIELD_EN_URL]);
    tl_page_address(view, "", tl_language_code(TL_LANGUAGE_KO), &page->texts[FIELD_KO_URL]);
    tl_page_address(view, "", carried, &page->texts[FIELD_SELF_URL]);
    tl_page_address(view, "/join", carried, &page->texts[FIELD_JOIN_URL]);
    tl_page_address(view, "/leave", carried, &page->texts[FIELD_LEAVE_URL]);
    if (view->state == TL_PAGE_WAITING || view->state == TL_PAGE_PENDING ||
        view->state == TL_PAGE_FULL || view->state == TL_PAGE_DOWN) {
        int64_t seconds = (view->poll_after_ms + 999) / 1000;
        if (seconds < REFRESH_MIN_S)
            seconds = REFRESH_MIN_S;
        tl_text_append(&page->texts[FIELD_REFRESH], "%" PRId64 ";url=", seconds);
        tl_page_address(view, "", carried, &page->texts[FIELD_REFRESH]);
        set_duration(page, FIELD_REFRESH_EVERY, "refreshes_every", seconds);
    }
    const char *return_url = valid_or_null(view->return_url);
    const char *target = NULL;
    if (view->state == TL_PAGE_ACTIVE)
        target = return_url != NULL ? return_url : valid_or_null(view->target_url);
    page->values[FIELD_RETURN_URL] = return_url;
    page->values[FIELD_TARGET_URL] = target;
    set_if(page, FIELD_NO_TARGET, target == NULL);
    if (target != NULL)
        tl_text_append(&page->texts[FIELD_REFRESH], "%d;url=%s", GO_ON_AFTER_S, target);
}

/* The puzzle; and how a browser without scripts joins after the signed wait: by itself, or with the
 * button. */
static void set_puzzle(struct page *page)
{
    const struct tl_page_view *view = page->view;
    const char *carried = view->ticket == NULL ? NULL : tl_language_code(page->language);
    page->values[FIELD_PUZZLE] = view->puzzle;
    if (view->puzzle == NULL)
        return;
    page->values[FIELD_CHALLENGE_URL] = tl_page_challenge.path;
    set_number(page, FIELD_PUZZLE_PARTS, view->puzzle_parts);
    set_number(page, FIELD_PUZZLE_BITS, view->puzzle_bits);
    tl_text_append(&page->texts[FIELD_REFRESH], "%" PRId64 ";url=", view->wait_s + 1);
    append_joining(view, "", carried, view->wait, &page->texts[FIELD_REFRESH]);
    append_joining(view, "/join", carried, view->wait, &page->texts[FIELD_WAIT_URL]);
    set_duration(page, FIELD_CHALLENGE_WAIT, "challenge_wait_text", view->wait_s);
}

/* The challenge service: what the script needs, and whose it is. */
static void set_service(struct page *page)
{
    const struct tl_page_service *service = page->view->service;
    if (service == NULL)
        return;
    page->values[FIELD_CHALLENGE_URL] = tl_page_challenge.path;
    page->values[FIELD_SERVICE] = service->name;
    page->values[FIELD_SERVICE_KEY] = service->site_key;
    page->values[FIELD_SERVICE_SCRIPT] = service->script;
    set_if(page, FIELD_SERVICE_SCORED, service->scored);
    set_message(page, FIELD_SERVICE_BY, "service_by_text", service->title);
}

/* The state, which parts of the page it hides, and the title. */
static void set_state(struct page *page)
{
    const struct tl_page_view *view = page->view;
    enum tl_page_state state = view->state;
    page->values[FIELD_STATE] = states[state].name;
    page->values[FIELD_QUEUE] = view->queue;
    page->values[FIELD_VISITOR] = view->visitor;
    for (unsigned i = 0; i < TL_PAGE_STATES; i++)
        set_if(page, (enum tl_page_field)(FIELD_NOT_STATE + i), i != state);
    bool over = state >= TL_PAGE_COMPLETED && state <= TL_PAGE_LOST;
    bool in_line = state == TL_PAGE_WAITING || state == TL_PAGE_PENDING;
    set_if(page, FIELD_NO_JOIN, !over && state != TL_PAGE_OUTSIDE);
    page->values[FIELD_JOIN_LABEL] =
        tl_page_message(state == TL_PAGE_OUTSIDE ? "join" : "join_again", page->language);
    set_if(page, FIELD_NOT_IN_LINE, !in_line && state != TL_PAGE_DOWN && state != TL_PAGE_FULL);
    set_if(page, FIELD_NOT_IN_LINE_OR_DOWN, !in_line);

    char position[TL_UNITS_TEXT_MAX];
    tl_write_number(view->position, position, sizeof(position));
    bool drawing = state == TL_PAGE_WAITING && view->drawing;
    set_message(page, FIELD_TITLE, drawing ? "drawing_head" : states[state].title, position);
    tl_text_append(&page->texts[FIELD_TITLE], " – %s", page->values[FIELD_BRAND]);
}

/* What the mode and the capacity mean for those who wait, and for those who cannot join. */
static void set_mode(struct page *page)
{
    const struct tl_page_view *view = page->view;
    const char *closed = view->closed_text, *sold_out = view->sold_out_text;
    set_if(page, FIELD_NO_DRAINING, !view->draining);
    set_if(page, FIELD_NO_CLOSING, !view->closed);
    set_if(page, FIELD_NO_SOLD_OUT, !view->sold_out);
    set_if(page, FIELD_HAS_CAPACITY, !view->no_capacity);
    page->values[FIELD_SHUT_SAYS] =
        closed != NULL && closed[0] != '\0' ? closed : tl_page_message("shut_text", page->language);
    page->values[FIELD_SOLD_OUT_SAYS] = sold_out != NULL && sold_out[0] != '\0'
                                            ? sold_out
                                            : tl_page_message("sold_out_text", page->language);
}

/* A reason that this version has no words for is not named. */
static void set_eta_reason(struct page *page)
{
    char name[40];
    const char *reason = page->view->eta_reason;
    snprintf(name, sizeof(name), "why_%s", reason != NULL ? reason : "");
    page->values[FIELD_ETA_WHY] = reason != NULL ? tl_page_message(name, page->language) : "";
    set_if(page, FIELD_NO_ETA_WHY, page->values[FIELD_ETA_WHY][0] == '\0');
}

static void set_place(struct page *page)
{
    const struct tl_page_view *view = page->view;
    char text[TL_PAGE_TEXT_MAX];
    int64_t progress = 0; /* since the first known position, in thousandths */
    if (view->position > 0) {
        uint64_t from = first_position(view);
        progress = (int64_t)((double)(from - view->position) * 1000 / (double)from);
        tl_write_number(view->position, text, sizeof(text));
        set_text(page, FIELD_POSITION, text);
        set_number(page, FIELD_POSITION_RAW, (int64_t)view->position);
        set_number(page, FIELD_FROM_RAW, (int64_t)from);
    }
    set_number(page, FIELD_PROGRESS, progress);
    tl_write_number(view->ahead, text, sizeof(text));
    set_message(page, FIELD_AHEAD, "ahead_value", text);
    if (view->has_eta) {
        tl_write_range(view->eta_low_s, view->eta_high_s, page->language, text, sizeof(text));
        set_text(page, FIELD_ETA, text);
    } else {
        page->values[FIELD_ETA] = tl_page_message("range_unknown", page->language);
    }
    set_if(page, FIELD_NO_ETA, !view->has_eta && view->opens_at_ms > view->now_ms);
    set_eta_reason(page);
    set_if(page, FIELD_NOT_PAUSED, !view->paused);
    set_if(page, FIELD_NOT_RECOVERING, !view->recovering);
    set_mode(page);
    set_if(page, FIELD_DRAWING, view->drawing);
    set_if(page, FIELD_NOT_DRAWING, !view->drawing);
    set_if(page, FIELD_NOT_CALLED, !view->called);
    page->values[FIELD_NOTICE] = view->notice;
    set_if(page, FIELD_NO_NOTICE, view->notice == NULL || view->notice[0] == '\0');
}

/* The opening time and the time left until then; nothing when the queue is open. */
static void set_opening(struct page *page)
{
    const struct tl_page_view *view = page->view;
    int64_t left_ms = view->opens_at_ms - view->now_ms;
    char text[TL_PAGE_TEXT_MAX];
    set_if(page, FIELD_NOT_BEFORE, left_ms <= 0);
    if (left_ms <= 0)
        return;
    set_number(page, FIELD_OPENS_MS, view->opens_at_ms);
    tl_time_format(view->opens_at_ms, text, sizeof(text));
    set_text(page, FIELD_OPENS_ISO, text);
    tl_write_time(view->opens_at_ms, page->language, text, sizeof(text));
    set_text(page, FIELD_OPENS, text);
    tl_write_duration((left_ms + 999) / 1000, page->language, text, sizeof(text));
    set_text(page, FIELD_COUNTDOWN, text);
}

/* The time of this view, how long the place is kept, when the session ends. */
static void set_times(struct page *page)
{
    const struct tl_page_view *view = page->view;
    char text[TL_PAGE_TEXT_MAX] = "";
    struct tm tm;
    bool stale = view->as_of_ms != 0;
    time_t updated_s = (time_t)((stale ? view->as_of_ms : view->now_ms) / 1000);
    if (gmtime_r(&updated_s, &tm) != NULL)
        snprintf(text, sizeof(text), "%02d:%02d:%02d UTC", tm.tm_hour, tm.tm_min, tm.tm_sec);
    set_message(page, FIELD_UPDATED, stale ? "stale_at" : "updated_at", text);
    set_number(page, FIELD_NOW_MS, view->now_ms);
    set_number(page, FIELD_POLL_MS, view->poll_after_ms);
    set_number(page, FIELD_KEPT_MS, view->waiting_ttl_ms);
    if (view->waiting_ttl_ms > 0)
        set_duration(page, FIELD_KEPT, "kept_text", view->waiting_ttl_ms / 1000);
    set_duration(page, FIELD_ABSENT, "absent_text", view->waiting_ttl_ms / 1000);
    set_if(page, FIELD_NO_UNTIL, view->expires_at_ms == 0);
    if (view->expires_at_ms > 0) {
        tl_write_time(view->expires_at_ms, page->language, text, sizeof(text));
        set_message(page, FIELD_UNTIL, "active_until", text);
    }
}

void tl_page_policy(const struct tl_page_view *view, char policy[TL_PAGE_POLICY_MAX])
{
    if (view->service == NULL) {
        snprintf(policy, TL_PAGE_POLICY_MAX, "%s", TL_PAGE_POLICY);
        return;
    }
    const char *sources = view->service->sources;
    snprintf(policy, TL_PAGE_POLICY_MAX,
             "default-src 'none'; script-src 'self' %s; frame-src %s; style-src 'self' %s; "
             "img-src 'self'; connect-src 'self' %s; form-action 'self'; frame-ancestors 'none'; "
             "base-uri 'none'",
             sources, sources, sources, sources);
}

/* ---- rendering ---- */

static const char *value_of(const void *context, int number)
{
    const struct page *page = context;
    if (number >= N_FIELDS) {
        size_t n;
        return tl_page_messages(&n)[number - N_FIELDS].in[page->language];
    }
    const char *value = page->values[number];
    return value != NULL ? value : page->texts[number].data;
}

void tl_page_render(const struct tl_page_view *view, const struct tl_brand *brand,
                    enum tl_language language, struct tl_text *out)
{
    struct page page = {.view = view, .look = tl_brand_look(brand), .language = language};
    set_look(&page);
    set_addresses(&page);
    set_puzzle(&page);
    set_service(&page);
    set_state(&page);
    set_place(&page);
    set_opening(&page);
    set_times(&page);
    for (size_t i = 0; i < N_FIELDS; i++)
        out->failed = out->failed || page.texts[i].failed;
    if (!out->failed)
        tl_template_render(page.look->template, value_of, &page, out);
    for (size_t i = 0; i < N_FIELDS; i++)
        tl_text_free(&page.texts[i]);
}
