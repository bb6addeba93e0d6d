#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/api/answer.h"
#include "worker/api/page_http.h"
#include "worker/api/routes.h"
#include "worker/page/page.h"
#include "worker/page/return_address.h"
#include "worker/process/edge.h"
#include "worker/queue/hold.h"

enum { ALLOWED_MAX = 32, RETRY_TEXT = 16, LANGUAGE_COOKIE_MAX = 96 };

static const char prefix[] = "/q/";

bool tl_page_wanted(const struct tl_request *request)
{
    return strncmp(tl_request_path(request), prefix, sizeof(prefix) - 1) == 0;
}

struct tl_brand *tl_page_load_brand(const struct tl_config *config, struct tl_error *err)
{
    const struct tl_brand_settings settings = {
        .name = config->page.name,
        .accent_light = config->page.accent_light,
        .accent_dark = config->page.accent_dark,
        .style_file = config->page.style,
        .logo_file = config->page.logo,
        .text = {[TL_LANGUAGE_EN] = config->page.text_en, [TL_LANGUAGE_KO] = config->page.text_ko}};
    return tl_brand_load(&settings, err);
}

/* ---- what the request carries ---- */

static enum tl_language language_of(const struct tl_request *request)
{
    return tl_language_choose(tl_request_query(request, "lang"),
                              tl_request_cookie(request, "tellerline_lang"),
                              tl_request_header(request, "Accept-Language"));
}

/* `?return=` if it leads to the site that the queue guards, or to one the operator named. */
static const char *return_address(const struct tl_request *request, const char *target_url)
{
    const struct tl_edge *edge = tl_request_context(request);
    const char *wanted = tl_request_query(request, "return");
    char copy[sizeof(edge->config->page.return_urls)];
    const char *allowed[ALLOWED_MAX];
    size_t n = 0;
    if (wanted == NULL)
        return NULL;
    snprintf(copy, sizeof(copy), "%s", edge->config->page.return_urls);
    char *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL && n < ALLOWED_MAX;
         word = strtok_r(NULL, " ", &rest))
        allowed[n++] = word;
    return tl_return_address_allowed(wanted, target_url, allowed, n) ? wanted : NULL;
}

/* The queue's name in "/q/NAME" or "/q/NAME/join". */
static void queue_of(const struct tl_request *request, char queue[TL_QUEUE_NAME_MAX + 1])
{
    const char *name = tl_request_path(request) + sizeof(prefix) - 1;
    snprintf(queue, TL_QUEUE_NAME_MAX + 1, "%.*s", (int)strcspn(name, "/"), name);
}

/* Does the browser keep the ticket's cookie? Until it has shown so, addresses carry the ticket. */
static bool keeps_cookies(const struct tl_room *room, const struct tl_request *request)
{
    char name[16 + TL_QUEUE_NAME_MAX];
    snprintf(name, sizeof(name), "tellerline_%s", room->name);
    return tl_request_cookie(request, name) != NULL;
}

/* ---- answering ---- */

static void add_header(struct tl_answer *answer, const char *name, const char *value)
{
    if (value != NULL && answer->n_headers < TL_ANSWER_HEADERS_MAX)
        answer->headers[answer->n_headers++] = (struct tl_header){name, value};
}

static void send_page(struct tl_request *request, const struct tl_page_view *view, unsigned status,
                      unsigned retry_after_s, const char *cookie)
{
    const struct tl_edge *edge = tl_request_context(request);
    enum tl_language language = language_of(request);
    char retry_after[RETRY_TEXT];
    char chosen[LANGUAGE_COOKIE_MAX];
    struct tl_text text = {0};
    tl_page_render(view, edge->brand, language, &text);
    struct tl_answer answer = {.status = status,
                               .type = "text/html; charset=utf-8",
                               .body = text.data,
                               .length = text.length};
    if (text.failed) {
        static const char sorry[] = "Please try again in a moment. 잠시 후 다시 시도해 주세요.\n";
        answer = (struct tl_answer){.status = 503,
                                    .type = "text/plain; charset=utf-8",
                                    .body = sorry,
                                    .length = sizeof(sorry) - 1};
    }
    add_header(&answer, "Content-Security-Policy", TL_PAGE_POLICY);
    add_header(&answer, "Referrer-Policy", TL_PAGE_REFERRER_POLICY);
    add_header(&answer, "X-Content-Type-Options", "nosniff");
    add_header(&answer, "Vary", "Accept-Language, Cookie");
    add_header(&answer, "Set-Cookie", cookie);
    if (retry_after_s > 0) {
        snprintf(retry_after, sizeof(retry_after), "%u", retry_after_s);
        add_header(&answer, "Retry-After", retry_after);
    }
    if (tl_request_query(request, "lang") != NULL) {
        snprintf(chosen, sizeof(chosen),
                 "tellerline_lang=%s; Path=/q/; Max-Age=31536000; SameSite=Lax",
                 tl_language_code(language));
        add_header(&answer, "Set-Cookie", chosen);
    }
    tl_request_answer(request, &answer);
    tl_text_free(&text);
}

/* After a form: back to the page by GET, so that a reload sends nothing twice. */
static void send_back(struct tl_request *request, const struct tl_page_view *view,
                      const char *cookie)
{
    struct tl_text address = {0};
    tl_page_address(view, "", &address);
    struct tl_answer answer = {.status = 303};
    add_header(&answer, "Location", address.failed ? "/" : address.data);
    add_header(&answer, "Set-Cookie", cookie);
    tl_request_answer(request, &answer);
    tl_text_free(&address);
}

static enum tl_page_state state_of(const struct tl_view *view)
{
    static const enum tl_page_state ends[] = {
        [TL_REASON_COMPLETED] = TL_PAGE_COMPLETED, [TL_REASON_LEFT] = TL_PAGE_LEFT,
        [TL_REASON_EXPIRED] = TL_PAGE_EXPIRED,     [TL_REASON_UNCLAIMED] = TL_PAGE_UNCLAIMED,
        [TL_REASON_ABSENT] = TL_PAGE_ABSENT,
    };
    if (tl_place_seq(view->place) == 0)
        return TL_PAGE_PENDING;
    if (view->state.status == TL_LINE_WAITING)
        return TL_PAGE_WAITING;
    if (view->state.status == TL_LINE_ACTIVE)
        return TL_PAGE_ACTIVE;
    return view->state.status == TL_LINE_ENDED ? ends[view->state.reason] : TL_PAGE_ENDED;
}

void tl_page_answer_view(struct tl_room *room, struct tl_request *request,
                         const struct tl_view *view, const char *cookie)
{
    const struct tl_queue_settings *settings = &room->settings;
    const char *from = tl_request_query(request, "from");
    const char *given = tl_request_query(request, "ticket");
    struct tl_page_view page = {.state = state_of(view),
                                .queue = room->name,
                                .visitor = view->visitor,
                                .from = from != NULL ? strtoull(from, NULL, 10) : 0,
                                .paused = settings->paused,
                                .opens_at_ms = settings->opens_at_ms,
                                .now_ms = view->redis_ms,
                                .waiting_ttl_ms = settings->waiting_ttl_ms,
                                .poll_after_ms = tl_view_poll_after_ms(view),
                                .notice = view->notice,
                                .target_url = settings->target_url,
                                .return_url = return_address(request, settings->target_url)};
    if (!keeps_cookies(room, request))
        page.ticket = view->ticket != NULL ? view->ticket : given;
    if (page.state == TL_PAGE_WAITING) {
        page.position = view->state.ahead + 1;
        page.ahead = view->state.ahead;
    }
    if (view->eta != NULL) {
        page.has_eta = true;
        page.eta_low_s = (int64_t)view->eta->low_s;
        page.eta_high_s = (int64_t)view->eta->high_s + 1;
    }
    if (page.state == TL_PAGE_ACTIVE)
        page.expires_at_ms = view->state.deadline_ms;
    if (strcmp(tl_request_method(request), "POST") == 0)
        send_back(request, &page, cookie);
    else
        send_page(request, &page, 200, 0, cookie);
}

void tl_page_answer_problem(struct tl_request *request, enum tl_problem problem, unsigned status,
                            unsigned retry_after_s)
{
    const struct tl_edge *edge = tl_request_context(request);
    char queue[TL_QUEUE_NAME_MAX + 1];
    queue_of(request, queue);
    const struct tl_room *room = tl_edge_room(edge, queue);
    struct tl_page_view page = {.state = TL_PAGE_DOWN,
                                .queue = queue,
                                .now_ms = tl_edge_now_ms(edge),
                                .poll_after_ms = 5000,
                                .ticket = tl_request_query(request, "ticket")};
    if (room != NULL) {
        page.target_url = room->settings.target_url;
        page.waiting_ttl_ms = room->settings.waiting_ttl_ms;
        page.return_url = return_address(request, page.target_url);
    }
    if (problem == TL_PROBLEM_NO_QUEUE || problem == TL_PROBLEM_NOT_FOUND ||
        !tl_queue_name_valid(queue, strlen(queue)))
        page.state = TL_PAGE_CLOSED;
    else if (problem == TL_PROBLEM_OLD_GENERATION)
        page.state = TL_PAGE_LOST;
    else if (problem == TL_PROBLEM_BY_INVITATION || problem == TL_PROBLEM_BAD_INVITE ||
             problem == TL_PROBLEM_INVITE_SPENT)
        page.state = TL_PAGE_INVITED;
    if (page.state == TL_PAGE_CLOSED && !tl_queue_name_valid(queue, strlen(queue)))
        page.queue = "-"; /* a name that no queue can have does not go onto the page */
    send_page(request, &page, status, retry_after_s, NULL);
}

/* ---- handlers ---- */

/* The ticket of the request, and whether its place is one of this life of the queue. */
static bool find_ticket(struct tl_room *room, struct tl_request *request, struct tl_ticket *ticket,
                        bool *lost)
{
    if (!tl_visitor_ticket(room, request, ticket))
        return false;
    *lost =
        tl_place_seq(ticket->place) != 0 && ticket->generation != tl_line_generation(room->line);
    return true;
}

static void join(struct tl_room *room, struct tl_request *request, const struct tl_ticket *ticket)
{
    const char *invite = tl_request_query(request, "invite");
    char visitor[TL_VISITOR_MAX + 1];
    if (invite != NULL) {
        tl_join_by_invite(room, request, invite);
        return;
    }
    if (room->settings.join == TL_JOIN_INVITED) {
        tl_problem_answer(request, TL_PROBLEM_BY_INVITATION, "%s", "");
        return;
    }
    if (ticket == NULL && !tl_join_allowed(room->edge, request))
        return;
    if (ticket != NULL)
        memcpy(visitor, ticket->visitor, sizeof(visitor));
    else
        tl_visitor_random(visitor);
    tl_join_visitor(room, request, visitor, room->settings.default_lane);
}

/* A look ahead, by a browser that guesses what will be clicked or by a link checker, is nobody who
 * wants a place. */
static bool is_look_ahead(const struct tl_request *request)
{
    static const char *const names[] = {"Sec-Purpose", "Purpose", "X-Moz"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *purpose = tl_request_header(request, names[i]);
        if (purpose != NULL &&
            (strstr(purpose, "prefetch") != NULL || strstr(purpose, "prerender") != NULL))
            return true;
    }
    return strcmp(tl_request_method(request), "HEAD") == 0;
}

void tl_handle_page(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    struct tl_ticket ticket;
    bool lost;
    struct tl_room *room = tl_visitor_room(edge, request, queue);
    if (room == NULL)
        return;
    bool has_ticket = find_ticket(room, request, &ticket, &lost);
    if (!has_ticket && is_look_ahead(request))
        tl_request_answer(request, &(struct tl_answer){.status = 204});
    else if (!has_ticket)
        join(room, request, NULL);
    else if (lost)
        tl_problem_answer(request, TL_PROBLEM_OLD_GENERATION, "%s", "");
    else if (tl_place_seq(ticket.place) == 0)
        join(room, request, &ticket);
    else
        tl_answer_view(room, request, &ticket, false);
}

/* The button "join again": a new place if the old one is over. */
void tl_handle_page_join(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    struct tl_ticket ticket;
    bool lost;
    struct tl_room *room = tl_visitor_room(edge, request, queue);
    if (room != NULL)
        join(room, request, find_ticket(room, request, &ticket, &lost) ? &ticket : NULL);
}

void tl_handle_page_leave(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    tl_handle_leave(edge, request, queue);
}

/* cache: Cache-Control. */
static void send_asset(struct tl_request *request, const struct tl_asset *asset, const char *cache)
{
    const char *encodings = tl_request_header(request, "Accept-Encoding");
    const char *known = tl_request_header(request, "If-None-Match");
    bool gzip = asset->gzip != NULL && encodings != NULL && strstr(encodings, "gzip") != NULL;
    struct tl_answer answer = {.status = 200,
                               .type = asset->type,
                               .cache = cache,
                               .body = gzip ? asset->gzip : asset->bytes,
                               .length = gzip ? asset->gzip_length : asset->length};
    if (known != NULL && strstr(known, asset->etag) != NULL)
        answer = (struct tl_answer){.status = 304, .cache = cache};
    add_header(&answer, "ETag", asset->etag);
    add_header(&answer, "Vary", "Accept-Encoding");
    add_header(&answer, "X-Content-Type-Options", "nosniff");
    add_header(&answer, "Content-Security-Policy", TL_ASSET_POLICY);
    if (gzip && answer.status == 200)
        add_header(&answer, "Content-Encoding", "gzip");
    tl_request_answer(request, &answer);
}

void tl_handle_asset(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    (void)queue;
    const struct tl_asset *asset = tl_page_asset(tl_request_path(request));
    if (asset == NULL)
        asset = tl_brand_asset(edge->brand, tl_request_path(request));
    if (asset == NULL) {
        static const char nothing[] = "nothing is here\n";
        tl_request_answer(request, &(struct tl_answer){.status = 404,
                                                       .type = "text/plain; charset=utf-8",
                                                       .body = nothing,
                                                       .length = sizeof(nothing) - 1});
        return;
    }
    send_asset(request, asset, TL_ASSET_CACHE_CONTROL);
}

void tl_handle_openapi(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    (void)edge;
    (void)queue;
    send_asset(request, tl_page_openapi(), "public, max-age=300");
}
