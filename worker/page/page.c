/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/config/texts.h"

#include "worker/page/look.h"
#include "worker/page/page.h"
#include "worker/page/page_address.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_fields.h"
#include "worker/page/page_source.h"
#include "worker/page/page_text.h"
#include "worker/page/template.h"

#define REFRESH_MIN_S 5   /* without the script the page never reloads faster */
#define ALMOST        20  /* "almost there" from this many ahead on */
#define CODE_S        120 /* how long a code is good, TL_TICKET_CODE_S */
#define GO_ON_AFTER_S 3   /* how long "it is your turn" shows before the page goes on */
#define PARTS_MAX     16  /* values that the messages of one page hold */

/* ---- the fields of one page ---- */

static const struct tl_queue_settings no_settings;

struct page {
    const struct tl_view *view;
    const struct tl_queue_settings *queue; /* of the queue, as far as it is known here */
    const struct tl_queue_settings *place; /* the same, for a place in it; for no place none */
    enum tl_queue_mode mode;               /* what those who wait are told */
    bool no_capacity;                      /* no one is admitted, as the capacity is 0 */
    const struct tl_brand *brand;
    const struct tl_catalogue *language;
    const char *values[N_FIELDS + TL_CATALOGUE_TEXTS_MAX]; /* borrowed */
    struct tl_text texts[N_FIELDS];                        /* owned; used where `values` has none */
    struct tl_text parts[PARTS_MAX];                       /* owned: what messages hold */
    unsigned n_parts;
};

static void set_if(struct page *page, int field, bool condition)
{
    page->values[field] = condition ? "1" : NULL;
}

static void set_text(struct page *page, int field, const char *text)
{
    tl_text_append(&page->texts[field], "%s", text);
}

static void set_number(struct page *page, int field, int64_t number)
{
    tl_text_append(&page->texts[field], "%" PRId64, number);
}

/* The message with {0} replaced. */
static void set_message(struct page *page, int field, const char *message, const char *value)
{
    tl_page_message_format(message, page->language, value, NULL, &page->texts[field]);
}

/* Where to write a value of a message. */
static struct tl_text *new_part(struct page *page)
{
    assert(page->n_parts < PARTS_MAX);
    return &page->parts[page->n_parts++];
}

static const char *duration(struct page *page, int64_t seconds)
{
    struct tl_text *written = new_part(page);
    tl_write_duration(seconds, page->language, written);
    return written->data;
}

static const char *number(struct page *page, uint64_t value)
{
    struct tl_text *written = new_part(page);
    tl_write_number(value, page->language, written);
    return written->data;
}

/* Are the times that the page names in the zone of the process? Else they are in UTC. */
static bool in_zone(const struct page *page)
{
    return page->brand->settings->timezone[0] != '\0';
}

/* A time, as the page's script reads it, and as it is written. */
static void set_time(struct page *page, int iso_field, int field, int64_t unix_ms)
{
    char text[64];
    tl_time_format(unix_ms, text, sizeof(text));
    set_text(page, iso_field, text);
    tl_write_time(unix_ms, page->language, in_zone(page), &page->texts[field]);
}

static const struct tl_page_source *source_of(const struct tl_view *view,
                                              const struct tl_brand *brand, unsigned i)
{
    return i == TL_SOURCE_EVENT && view->event != NULL ? &view->event->style : &brand->sources[i];
}

/* In the page's language, or in another one, which is then named. */
/* The text that this page's visitor reads, and the code of its language where it is another one
 * than the page's. */
static const char *pick_text(const struct page *page, const char *texts, const char **language)
{
    const char *own = page->language->code;
    const char *text = tl_texts_pick(texts, own, language);
    if (*language != NULL && strcmp(*language, own) == 0)
        *language = NULL;
    return text;
}

static void set_event_text(struct page *page, enum tl_event_text text)
{
    const char *language;
    const char *said = pick_text(page, tl_event_look_texts(page->view->event, text), &language);
    if (said[0] == '\0')
        return;
    page->values[FIELD_event_title + text] = said;
    page->values[FIELD_event_title_lang + text] = language;
}

/* A time is written like any other, and the script writes it again in the visitor's zone. */
static void set_event_date(struct page *page)
{
    const int64_t date_ms = page->view->event->date_ms;
    set_number(page, FIELD_event_date_ms, date_ms);
    page->values[FIELD_event_date] = NULL; /* as it is in the file */
    set_time(page, FIELD_event_date_iso, FIELD_event_date, date_ms);
}

static void set_event(struct page *page)
{
    const struct tl_event_look *event = page->view->event;
    page->values[FIELD_name] = page->values[FIELD_brand];
    if (event == NULL)
        return;
    for (unsigned text = 0; text < TL_EVENT_TEXTS; text++)
        set_event_text(page, (enum tl_event_text)text);
    if (event->date_ms != 0)
        set_event_date(page);
    set_if(page, FIELD_event, event->has_head || event->image.bytes != NULL);
    page->values[FIELD_event_image_url] = event->image.asset.path;
    page->values[FIELD_help_url] = event->page->help;
    if (event->logo.bytes != NULL) {
        page->values[FIELD_logo_url] = event->logo.asset.path;
        page->values[FIELD_logo_dark_url] = event->logo_dark.asset.path;
    }
    const char *title = page->values[FIELD_event_title];
    if (title == NULL)
        return;
    page->values[FIELD_name] = title;
    if (page->brand->settings->name[0] == '\0')
        page->values[FIELD_brand] = title; /* of the logo */
}

/* Brand, event, style sheets, scripts. */
static void set_look(struct page *page)
{
    const struct tl_brand *brand = page->brand;
    page->values[FIELD_brand] =
        brand->settings->name[0] == '\0' ? page->view->queue : brand->settings->name;
    page->values[FIELD_brand_text] =
        pick_text(page, brand->settings->text, &page->values[FIELD_brand_lang]);
    page->values[FIELD_logo_url] = brand->logo.asset.path;
    set_event(page);
    /* Without a name of its own, the header would repeat the event's. */
    set_if(page, FIELD_says_brand,
           page->values[FIELD_logo_url] == NULL &&
               (brand->settings->name[0] != '\0' || page->values[FIELD_event_title] == NULL));
    page->values[FIELD_favicon_url] = tl_page_icon.path;
    for (unsigned i = 0; i < TL_PAGE_SOURCES; i++)
        page->values[FIRST_SOURCE + i] = source_of(page->view, brand, i)->text;
}

/* A browser without cookies carries the ticket, and so the language, which it does not remember. */
static void append_address(struct page *page, int field, const char *action, const char *solution)
{
    const char *carried = page->view->ticket == NULL ? NULL : page->language->code;
    tl_page_address(page->view, action, carried, solution, &page->texts[field]);
}

/* The page's own addresses, how it reloads itself without the script, and where it takes an
 * admitted visitor. */
static void set_addresses(struct page *page)
{
    const struct tl_view *view = page->view;
    page->values[FIELD_lang] = page->language->code;
    page->values[FIELD_language] = page->language->name;
    page->values[FIELD_dir] = page->language->direction;
    page->values[FIELD_locale] = page->language->locale;
    page->values[FIELD_plurals] = page->language->forms;
    append_address(page, FIELD_self_url, "", NULL);
    append_address(page, FIELD_join_url, "/join", NULL);
    append_address(page, FIELD_leave_url, "/leave", NULL);
    if (!view->no_transfer)
        append_address(page, FIELD_transfer_url, "/transfer", NULL);
    if (view->proves)
        append_address(page, FIELD_proof_url, "/proof", NULL);
    append_address(page, FIELD_move_url, "/move", NULL);
    page->values[FIELD_move_code_value] = view->move;
    page->values[FIELD_move_device] = view->device;
    bool reloads = view->page == TL_PAGE_WAITING || view->page == TL_PAGE_PENDING ||
                   view->page == TL_PAGE_FULL || view->page == TL_PAGE_DOWN;
    if (reloads && view->preview == NULL) {
        int64_t seconds = (view->poll_after_ms + 999) / 1000;
        if (seconds < REFRESH_MIN_S)
            seconds = REFRESH_MIN_S;
        tl_text_append(&page->texts[FIELD_refresh], "%" PRId64 ";url=", seconds);
        append_address(page, FIELD_refresh, "", NULL);
        set_message(page, FIELD_refresh_every, "refreshes_every", duration(page, seconds));
    }
    const char *return_url = tl_address_or_null(view->return_url);
    const char *target = NULL;
    if (view->page == TL_PAGE_ACTIVE)
        target = return_url != NULL ? return_url : tl_address_or_null(page->queue->target_url);
    page->values[FIELD_return_url] = return_url;
    page->values[FIELD_target_url] = target;
    if (target != NULL && view->preview == NULL)
        tl_text_append(&page->texts[FIELD_refresh], "%d;url=%s", GO_ON_AFTER_S, target);
}

/* The code for another device. When it is over, the page goes back to the place. */
static void set_code(struct page *page)
{
    const struct tl_view *view = page->view;
    if (view->qr == NULL)
        return;
    page->values[FIELD_code_address] = view->code_address;
    page->values[FIELD_qr_path] = view->qr->path.data;
    tl_text_append(&page->texts[FIELD_qr_view], "0 0 %u %u", view->qr->size, view->qr->size);
    set_message(page, FIELD_code_left, "move_left", duration(page, CODE_S));
    if (view->preview != NULL)
        return;
    tl_text_append(&page->texts[FIELD_refresh], "%d;url=", CODE_S);
    tl_page_address(view, "", NULL, NULL, &page->texts[FIELD_refresh]);
}

/* The puzzle; and how a browser without scripts joins after the signed wait: by itself, or with the
 * button. */
static void set_puzzle(struct page *page)
{
    const struct tl_view *view = page->view;
    page->values[FIELD_puzzle] = view->puzzle;
    if (view->puzzle == NULL)
        return;
    page->values[FIELD_challenge_url] = tl_page_challenge.path;
    set_number(page, FIELD_puzzle_parts, view->puzzle_parts);
    set_number(page, FIELD_puzzle_bits, view->puzzle_bits);
    tl_text_append(&page->texts[FIELD_refresh], "%" PRId64 ";url=", view->wait_s + 1);
    append_address(page, FIELD_refresh, "", view->wait);
    append_address(page, FIELD_wait_url, "/join", view->wait);
    set_message(page, FIELD_challenge_wait, "challenge_wait_text", duration(page, view->wait_s));
}

/* The challenge service: what the script needs, and whose it is. */
static void set_service(struct page *page)
{
    const struct tl_page_service *service = page->view->service;
    if (service == NULL)
        return;
    page->values[FIELD_challenge_url] = tl_page_challenge.path;
    page->values[FIELD_service] = service->name;
    page->values[FIELD_service_key] = service->site_key;
    page->values[FIELD_service_script] = service->script;
    set_if(page, FIELD_service_scored, service->scored);
    set_message(page, FIELD_service_by, "service_by_text", service->title);
}

/* The state, which parts of the page it hides, and the title. */
static void set_state(struct page *page)
{
    const struct tl_view *view = page->view;
    enum tl_page_state state = view->page;
    page->values[FIELD_state] = tl_page_states[state].page;
    page->values[FIELD_queue] = view->queue;
    page->values[FIELD_visitor] = view->visitor;
    page->values[FIELD_preview] = view->preview;
    page->values[FIELD_is_waiting + state] = "1";
    bool over = state >= TL_PAGE_COMPLETED && state <= TL_PAGE_LOST;
    set_if(page, FIELD_may_join, over || state == TL_PAGE_OUTSIDE);
    page->values[FIELD_join_label] =
        tl_page_message(state == TL_PAGE_OUTSIDE ? "join" : "join_again", page->language);
    set_if(page, FIELD_in_line, state == TL_PAGE_WAITING || state == TL_PAGE_PENDING);

    bool drawing = state == TL_PAGE_WAITING && view->drawing;
    set_message(page, FIELD_title, drawing ? "drawing_head" : tl_page_states[state].title,
                number(page, tl_view_position(view)));
    tl_text_append(&page->texts[FIELD_title], " – %s", page->values[FIELD_name]);
}

/* The operator's text, and its language in the next field; else the built-in one. */
static void set_said(struct page *page, int field, const char *texts, const char *built_in)
{
    const char *said = pick_text(page, texts, &page->values[field + 1]);
    page->values[field] = said[0] != '\0' ? said : tl_page_message(built_in, page->language);
}

/* What the mode and the capacity mean for those who wait, and for those who cannot join. */
static void set_mode(struct page *page)
{
    set_if(page, FIELD_paused, page->mode == TL_MODE_PAUSED);
    set_if(page, FIELD_draining, page->mode == TL_MODE_DRAINING);
    set_if(page, FIELD_closing, page->mode == TL_MODE_CLOSED);
    set_if(page, FIELD_sold_out, page->mode == TL_MODE_SOLD_OUT);
    set_if(page, FIELD_no_capacity, page->no_capacity);
    set_said(page, FIELD_shut_says, page->queue->closed_text, "shut_text");
    set_said(page, FIELD_sold_out_says, page->queue->sold_out_text, "sold_out_text");
}

/* The estimate, and why it is so; a reason that this version has no words for is not named. */
static void set_eta(struct page *page)
{
    const struct tl_view *view = page->view;
    const char *reason = view->eta_reason;
    char name[40];
    if (view->has_eta) {
        int64_t low_s = (int64_t)view->eta_low_s;
        int64_t high_s = (int64_t)view->eta_high_s + 1;
        tl_write_range(low_s, high_s, page->language, &page->texts[FIELD_eta]);
        set_number(page, FIELD_eta_low, low_s);
        set_number(page, FIELD_eta_high, high_s);
    } else {
        page->values[FIELD_eta] = tl_page_message("range_unknown", page->language);
    }
    snprintf(name, sizeof(name), "why_%s", reason != NULL ? reason : "");
    page->values[FIELD_eta_why] = reason != NULL ? tl_page_message(name, page->language) : "";
    bool said = page->mode == TL_MODE_PAUSED || page->no_capacity; /* by a note */
    set_if(page, FIELD_shows_why, page->values[FIELD_eta_why][0] != '\0' && !said);
}

static void set_place(struct page *page)
{
    const struct tl_view *view = page->view;
    uint64_t position = tl_view_position(view);
    uint64_t ahead = position > 0 ? position - 1 : 0;
    int64_t progress = 0; /* since the first known position, in thousandths */
    if (position > 0) {
        uint64_t from = tl_view_first_position(view);
        progress = (int64_t)((double)(from - position) * 1000 / (double)from);
        set_number(page, FIELD_position_raw, (int64_t)position);
        set_number(page, FIELD_from_raw, (int64_t)from);
    }
    set_number(page, FIELD_progress, progress);
    set_message(page, FIELD_progress_text, "progress_value", number(page, (uint64_t)progress / 10));
    tl_page_message_count("ahead_value", page->language, ahead, &page->texts[FIELD_ahead]);
    tl_page_message_count("ahead_value", page->language, view->admitted,
                          &page->texts[FIELD_admitted]);
    set_if(page, FIELD_has_admitted, view->has_admitted);
    set_eta(page);
    bool moves = view->settings != NULL && page->mode != TL_MODE_PAUSED && !view->recovering &&
                 !page->no_capacity && !view->state.called &&
                 page->place->opens_at_ms <= view->store_ms;
    set_if(page, FIELD_shows_eta, view->has_eta || moves);
    set_if(page, FIELD_almost, moves && position > 0 && ahead < ALMOST);
    set_if(page, FIELD_recovering, view->recovering);
    set_mode(page);
    set_if(page, FIELD_drawing, view->drawing);
    set_if(page, FIELD_called, view->state.called);
    page->values[FIELD_reference] = view->reference;
    page->values[FIELD_notice] = view->notice;
}

/* The opening time and the time left until then; nothing when the queue is open. */
static void set_opening(struct page *page)
{
    int64_t opens_at_ms = page->place->opens_at_ms;
    int64_t left_ms = opens_at_ms - page->view->store_ms;
    if (left_ms <= 0)
        return;
    set_number(page, FIELD_opens_ms, opens_at_ms);
    set_time(page, FIELD_opens_iso, FIELD_opens, opens_at_ms);
    tl_write_duration((left_ms + 999) / 1000, page->language, &page->texts[FIELD_countdown]);
}

/* What happens at the turn, how long the session then is, and how long one may be away. */
static void set_outlook(struct page *page)
{
    const struct tl_queue_settings *place = page->place;
    int64_t longest_ms = tl_queue_session_longest_ms(place);
    bool goes_on = tl_address_or_null(page->view->return_url) != NULL ||
                   tl_address_or_null(page->queue->target_url) != NULL;
    page->values[FIELD_next_step] =
        tl_page_message(goes_on ? "next_text" : "next_nowhere", page->language);
    if (place->session_sliding && place->session_ttl_ms > 0 && place->session_ttl_ms < longest_ms) {
        tl_page_message_format("session_sliding", page->language, duration(page, longest_ms / 1000),
                               duration(page, place->session_ttl_ms / 1000),
                               &page->texts[FIELD_session_then]);
    } else if (longest_ms > 0) {
        set_message(page, FIELD_session_then, "session_time", duration(page, longest_ms / 1000));
    }
    int64_t kept_ms = page->queue->waiting_ttl_ms;
    if (kept_ms > 0)
        set_message(page, FIELD_kept, "kept_text", duration(page, kept_ms / 1000));
    if (kept_ms > 0 && place->claim_ttl_ms > 0) {
        set_text(page, FIELD_kept, " ");
        set_message(page, FIELD_kept, "claim_time", duration(page, place->claim_ttl_ms / 1000));
    }
}

/* The time of this view, and when the session ends. */
static void set_times(struct page *page)
{
    const struct tl_view *view = page->view;
    struct tl_text *clock = new_part(page);
    bool stale = view->as_of_ms != 0;
    int64_t kept_ms = page->queue->waiting_ttl_ms;
    int64_t ends_ms = view->page == TL_PAGE_ACTIVE ? view->state.deadline_ms : 0;
    tl_write_clock(stale ? view->as_of_ms : view->store_ms, in_zone(page), clock);
    if (stale && view->page == TL_PAGE_PENDING) /* no place is saved yet */
        page->values[FIELD_updated] = tl_page_message("trouble_pending", page->language);
    else
        set_message(page, FIELD_updated, stale ? "stale_at" : "updated_at", clock->data);
    set_number(page, FIELD_now_ms, view->store_ms);
    set_number(page, FIELD_poll_ms, view->poll_after_ms);
    set_number(page, FIELD_kept_ms, kept_ms);
    set_message(page, FIELD_absent, "absent_text", duration(page, kept_ms / 1000));
    set_number(page, FIELD_stale, stale ? view->store_ms - view->as_of_ms : 0);
    set_if(page, FIELD_claimed, view->claimed);
    if (ends_ms > 0) {
        set_number(page, FIELD_ends_ms, ends_ms);
        struct tl_text *ends = new_part(page);
        tl_write_time(ends_ms, page->language, in_zone(page), ends);
        set_message(page, FIELD_until, view->claimed ? "session_until" : "claim_until", ends->data);
    }
}

/* Appends the hashes of the sources from `first` to before `end` that exist. */
static void append_hashes(struct tl_text *out, const struct tl_view *view,
                          const struct tl_brand *brand, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        const struct tl_page_source *source = source_of(view, brand, i);
        if (source->text != NULL)
            tl_text_append(out, " %s", source->hash);
    }
}

void tl_page_policy(const struct tl_view *view, const struct tl_brand *brand, struct tl_text *out)
{
    bool challenge = view->puzzle != NULL || view->service != NULL;
    const char *service = view->service != NULL ? view->service->sources : "";
    const char *space = view->service != NULL ? " " : "";
    const char *asks = view->preview != NULL ? "'none'" : "'self'";
    tl_text_append(out, "default-src 'none'; script-src");
    append_hashes(out, view, brand, 0, challenge ? TL_SOURCE_LOOK : TL_SOURCE_CHALLENGE);
    tl_text_append(out, "%s%s; style-src", space, service);
    append_hashes(out, view, brand, TL_SOURCE_LOOK, TL_PAGE_SOURCES);
    tl_text_append(out, "%s%s", space, service);
    if (view->puzzle != NULL)
        tl_text_append(out, "; worker-src 'self'");
    if (view->service != NULL)
        tl_text_append(out, "; frame-src %s", service);
    tl_text_append(out,
                   "; img-src 'self'; connect-src %s%s%s; form-action %s; "
                   "frame-ancestors 'none'; base-uri 'none'",
                   asks, space, service, asks);
}

/* ---- rendering ---- */

/* The languages that a visitor can choose. */
static bool take_language(struct page *page, size_t i)
{
    const struct tl_languages *languages = page->brand->languages;
    if (i == languages->n)
        return false;
    const struct tl_catalogue *language = languages->all[i];
    struct tl_text *url = &page->texts[FIELD_item_url];
    page->values[FIELD_item_code] = language->code;
    page->values[FIELD_item_name] = language->name;
    set_if(page, FIELD_item_current, language == page->language);
    tl_text_free(url);
    tl_page_address(page->view, page->view->page == TL_PAGE_MOVE ? "/move" : "", language->code,
                    NULL, url);
    page->values[FIELD_item_url] = url->data;
    return true;
}

/* The states whose part of the page is a heading and a text. */
static bool take_state(struct page *page, enum tl_page_state state, enum tl_page_state last)
{
    char name[40];
    if (state > last)
        return false;
    page->values[FIELD_item_code] = tl_page_states[state].page;
    set_if(page, FIELD_item_current, state == page->view->page);
    snprintf(name, sizeof(name), "%s_head", tl_page_states[state].page);
    page->values[FIELD_item_head] = tl_page_message(name, page->language);
    snprintf(name, sizeof(name), "%s_text", tl_page_states[state].page);
    page->values[FIELD_item_text] = state == TL_PAGE_ABSENT ? page->texts[FIELD_absent].data
                                                            : tl_page_message(name, page->language);
    return true;
}

static bool take_item(void *context, size_t field, size_t i)
{
    if (field == FIELD_languages)
        return take_language(context, i);
    if (field == FIELD_over_states)
        return take_state(context, TL_PAGE_COMPLETED + (unsigned)i, TL_PAGE_CODE_OVER);
    if (field == FIELD_refused_states)
        return take_state(context, TL_PAGE_BLOCKED + (unsigned)i, TL_PAGE_OUTSIDE);
    return field == FIELD_last_states &&
           take_state(context, TL_PAGE_PASSTHROUGH + (unsigned)i, TL_PAGE_DOWN);
}

void tl_page_render(const struct tl_view *view, const struct tl_brand *brand,
                    const struct tl_catalogue *language, struct tl_text *out)
{
    const struct tl_queue_settings *settings =
        view->settings != NULL ? view->settings : &no_settings;
    bool of_place = view->visitor != NULL;
    struct page page = {.view = view,
                        .queue = settings,
                        .place = of_place ? settings : &no_settings,
                        .mode = tl_view_told_mode(view),
                        .no_capacity = of_place && view->settings != NULL &&
                                       settings->policy != TL_POLICY_RATE &&
                                       settings->capacity == 0,
                        .brand = brand,
                        .language = language};
    set_look(&page);
    set_addresses(&page);
    set_code(&page);
    set_puzzle(&page);
    set_service(&page);
    set_state(&page);
    set_place(&page);
    set_opening(&page);
    set_times(&page);
    set_outlook(&page);
    for (size_t i = 0; i < N_FIELDS; i++) {
        out->failed = out->failed || page.texts[i].failed;
        if (page.values[i] == NULL)
            page.values[i] = page.texts[i].data;
    }
    for (size_t i = 0; i < language->n_texts; i++)
        page.values[N_FIELDS + i] = tl_catalogue_text(language, (int)i);
    for (unsigned i = 0; i < page.n_parts; i++)
        out->failed = out->failed || page.parts[i].failed;
    if (!out->failed)
        tl_template_render(page.brand->template, page.values, take_item, &page, out);
    out->failed = out->failed || page.texts[FIELD_item_url].failed;
    for (size_t i = 0; i < N_FIELDS; i++)
        tl_text_free(&page.texts[i]);
    for (unsigned i = 0; i < page.n_parts; i++)
        tl_text_free(&page.parts[i]);
}
