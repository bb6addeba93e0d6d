/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/api/body.h"
#include "worker/api/handlers.h"
#include "worker/page/page.h"
#include "worker/verify/verdict.h"
#include "worker/visit/browser.h"
#include "worker/visit/view.h"

enum {
    RETRY_TEXT = 16,
    LANGUAGE_COOKIE_MAX = 96,
    SOURCES_MAX = 768,
    VIEWS_PER_JOIN = 4, /* so many pages of an address for each join that it has */
    VIEWS_RETRY_S = 10,
};

/* A page of a refusal tries again after this, spread evenly; or after Retry-After. */
enum { RETRY_MIN_MS = 4000, RETRY_SPREAD_MS = 4000 };

/* ---- where the visitor wants to go ---- */

/* Does a parameter of this name belong to the page, and not to an address before it? */
static bool is_own(const char *name)
{
    static const char *const own[] = {"return", "lang",     "ticket",  "invite",
                                      "from",   "solution", "cookies", NULL};
    for (size_t i = 0; own[i] != NULL; i++) {
        if (strcmp(name, own[i]) == 0)
            return true;
    }
    return false;
}

struct gathering {
    struct tl_return_to *result;
    bool begun;
    bool cut; /* the address has a query, whose rest may follow as our parameters */
    bool valid;
};

static void gather(void *context, const char *name, const char *value)
{
    struct gathering *self = context;
    char *address = self->result->address;
    if (!self->begun && strcmp(name, "return") == 0) {
        self->begun = true;
        self->valid = value != NULL && tl_address_append(address, value, false);
        self->cut = strchr(address, '?') != NULL && strchr(address, '#') == NULL;
    } else if (self->begun && self->cut && self->valid && !is_own(name)) {
        self->valid =
            tl_address_append(address, "&", false) && tl_address_append(address, name, true) &&
            (value == NULL ||
             (tl_address_append(address, "=", false) && tl_address_append(address, value, true)));
    }
}

void tl_return_to_read(const struct tl_visit *visit, const char *target_url,
                       struct tl_return_to *result)
{
    struct gathering gathering = {.result = result};
    result->address[0] = '\0';
    result->refused = NULL;
    tl_request_each_query(visit->request, gather, &gathering);
    if (!gathering.begun)
        return;
    if (!gathering.valid || tl_address_or_null(result->address) == NULL)
        result->refused = "not an absolute address of http or https, or too long";
    else if (!tl_return_address_allowed(result->address, target_url,
                                        visit->worker->config->http.return_urls))
        result->refused = "its origin is neither that of target_url nor in http.return_urls";
    if (result->refused != NULL)
        result->address[0] = '\0';
}

/* ---- sending ---- */

/* A view that is a page, and what it points to. */
struct page {
    struct tl_view view;
    struct tl_return_to back;
    char reference[TL_REFERENCE_MAX], place_name[TL_REFERENCE_MAX];
};

static void set_return(const struct tl_visit *visit, const char *target_url, struct page *page)
{
    tl_return_to_read(visit, target_url, &page->back);
    page->view.return_url = page->back.address[0] != '\0' ? page->back.address : NULL;
    page->view.return_refused = page->back.refused;
}

/* The position that the visitor began with, as the page's own addresses say. */
static uint64_t first_position(const struct tl_visit *visit)
{
    const char *from = tl_request_query(visit->request, "from");
    return from != NULL ? strtoull(from, NULL, 10) : 0;
}

/* A page of no place, in this state. The visit's name is a valid one. */
static void begin(const struct tl_visit *visit, enum tl_page_state state, struct page *page)
{
    const struct tl_worker *worker = visit->worker;
    const struct tl_queue *queue = tl_queues_find(&worker->queues, visit->name);
    page->view =
        (struct tl_view){.page = state,
                         .queue = visit->name,
                         .store_ms = tl_queue_env_store_ms(worker->env, visit->now_ms),
                         .from = first_position(visit),
                         .poll_after_ms = RETRY_MIN_MS + randombytes_uniform(RETRY_SPREAD_MS),
                         .ticket = tl_request_query(visit->request, "ticket"),
                         .invite = tl_request_query(visit->request, "invite")};
    if (queue != NULL) {
        page->view.settings = &queue->settings;
        page->view.event = tl_event_looks_find(worker->events, visit->name);
        set_return(visit, queue->settings.target_url, page);
    }
}

/* Compresses the answer's page if the browser takes it. Returns the memory, to be freed once the
 * answer is sent; NULL: it stays as it is. */
static unsigned char *compress_page(const struct tl_visit *visit, const struct tl_text *page,
                                    struct tl_answer *answer)
{
    const char *encodings = tl_request_header(visit->request, "Accept-Encoding");
    unsigned char *bytes;
    size_t length;
    if (encodings == NULL || strstr(encodings, "gzip") == NULL ||
        !tl_page_gzip(page, visit->worker->brand->sources, &bytes, &length))
        return NULL;
    answer->body = (const char *)bytes;
    answer->length = length;
    tl_answer_header(answer, "Content-Encoding", "gzip");
    return bytes;
}

/* Instead of a page, for which the browser then asks again. */
static const char sorry[] =
    "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Please wait</title>\n"
    "<p>Please try again in a moment. 잠시 후 다시 시도해 주세요.</p>\n";

static bool send_page(const struct tl_visit *visit, const struct tl_view *view, unsigned status,
                      unsigned retry_after_s, const char *cookie)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_request *request = visit->request;
    const struct tl_catalogue *language = tl_language_of(visit);
    char retry_after[RETRY_TEXT];
    char chosen[LANGUAGE_COOKIE_MAX];
    unsigned char *compressed = NULL;
    struct tl_text text = {0}, policy = {0}, refresh = {0};
    struct tl_answer answer = {.type = "text/html; charset=utf-8"};
    /* A page takes as long as fifty answers of the API: each address has its share. */
    const uint64_t most = VIEWS_PER_JOIN * worker->config->http.joins_per_minute;
    const bool may = tl_visit_within(visit, TL_LIMITER_VIEWS, most);
    if (may) {
        tl_page_render(view, worker->brand, language, &text);
        tl_page_policy(view, worker->brand, &policy);
    }
    if (may && !text.failed && !policy.failed) {
        answer.status = status;
        answer.body = text.data;
        answer.length = text.length;
        compressed = compress_page(visit, &text, &answer);
        tl_answer_header(&answer, "Content-Security-Policy", policy.data);
    } else {
        answer.status = may ? 503 : 429;
        answer.body = sorry;
        answer.length = sizeof(sorry) - 1;
        retry_after_s = VIEWS_RETRY_S + (unsigned)randombytes_uniform(VIEWS_RETRY_S);
        tl_text_append(&refresh, "%u; url=", retry_after_s);
        tl_page_address(view, "", NULL, NULL, &refresh);
        tl_answer_header(&answer, "Refresh", refresh.failed ? NULL : refresh.data);
        tl_answer_header(&answer, "Content-Security-Policy", "default-src 'none'");
    }
    tl_answer_header(&answer, "Referrer-Policy", TL_PAGE_REFERRER_POLICY);
    tl_answer_header(&answer, "X-Content-Type-Options", "nosniff");
    tl_answer_header(&answer, "Vary", "Accept-Encoding, Accept-Language, Cookie");
    tl_answer_header(&answer, "Set-Cookie", cookie);
    tl_answer_header(&answer, "X-Tellerline-Return", view->return_refused);
    if (retry_after_s > 0) {
        snprintf(retry_after, sizeof(retry_after), "%u", retry_after_s);
        tl_answer_header(&answer, "Retry-After", retry_after);
    }
    if (tl_request_query(request, "lang") != NULL) {
        snprintf(chosen, sizeof(chosen),
                 "tellerline_lang=%s; Path=/q/; Max-Age=31536000; SameSite=Lax", language->code);
        tl_answer_header(&answer, "Set-Cookie", chosen);
    }
    tl_request_answer(request, &answer);
    free(compressed);
    tl_text_free(&text);
    tl_text_free(&policy);
    tl_text_free(&refresh);
    return true;
}

static bool see_other(const struct tl_visit *visit, const char *address, const char *cookie)
{
    struct tl_answer answer = {.status = 303};
    tl_answer_header(&answer, "Location", address);
    tl_answer_header(&answer, "Set-Cookie", cookie);
    tl_request_answer(visit->request, &answer);
    return true;
}

/* To the page by GET: after a form, so that a reload sends nothing twice. */
static bool redirect(const struct tl_visit *visit, const struct tl_view *view, const char *cookie)
{
    struct tl_text address = {0};
    bool chosen = tl_request_query(visit->request, "lang") != NULL;
    const char *language = chosen ? tl_language_of(visit)->code : NULL;
    tl_page_address(view, "", language, NULL, &address);
    see_other(visit, address.failed ? "/" : address.data, cookie);
    tl_text_free(&address);
    return true;
}

/* ---- pages of no place ---- */

bool tl_page_send(const struct tl_visit *visit, const struct tl_view *what)
{
    struct page page;
    begin(visit, what->page, &page);
    page.view.device = what->device;
    page.view.code_address = what->code_address;
    page.view.qr = what->qr;
    if (what->page == TL_PAGE_MOVE) /* the place is another one than the address's */
        page.view.ticket = page.view.invite = NULL;
    return send_page(visit, &page.view, 200, 0, NULL);
}

/* A visitor who gets in without a place: on to `?return=` or the target_url, else a page that says
 * so. */
static void send_through(const struct tl_visit *visit, const struct tl_view *view,
                         const char *cookie)
{
    struct page page;
    const char *target_url = view->settings != NULL ? view->settings->target_url : "";
    begin(visit, TL_PAGE_PASSTHROUGH, &page);
    set_return(visit, target_url, &page);
    page.view.ticket = page.view.invite = NULL;
    const char *address = page.view.return_url != NULL ? page.view.return_url : target_url;
    if (address[0] == '\0')
        send_page(visit, &page.view, 200, 0, cookie);
    else
        see_other(visit, address, cookie);
}

bool tl_page_redirect(const struct tl_visit *visit, enum tl_page_redirection to)
{
    char probe[TL_COOKIE_TEXT_MAX];
    struct page page;
    begin(visit, TL_PAGE_WAITING, &page);
    if (to == TL_PAGE_CLEAN || to == TL_PAGE_PRESENT)
        page.view.ticket = page.view.invite = NULL;
    if (to == TL_PAGE_PRESENT || to == TL_PAGE_PROBE)
        page.view.from = 0; /* of another place, or of none yet */
    page.view.asks_for_cookies = to == TL_PAGE_PROBE;
    tl_cookie_write_probe(visit, probe);
    return redirect(visit, &page.view, to == TL_PAGE_PROBE ? probe : NULL);
}

/* ---- the renderer ---- */

static void render_view(struct tl_request *request, const struct tl_view *view, const char *cookie)
{
    const struct tl_worker *worker = tl_request_context(request);
    const struct tl_visit *visit = tl_request_visit(request);
    struct page page = {.view = *view};
    struct tl_view *shown = &page.view;
    if (view->through) {
        send_through(visit, view, cookie);
        return;
    }
    shown->page = tl_view_state(view);
    /* From the archive there is no pass to go on with, and perhaps no position. */
    if (view->settings == NULL &&
        (shown->page == TL_PAGE_ACTIVE || (shown->page == TL_PAGE_WAITING && view->unplaced)))
        shown->page = TL_PAGE_DOWN;
    shown->event = tl_event_looks_find(worker->events, view->queue);
    shown->from = first_position(visit);
    shown->poll_after_ms = tl_view_poll_after_ms(view);
    shown->proves = tl_proof_exists(worker);
    shown->no_transfer = !worker->config->http.transfer;
    tl_shown_place_write(visit, page.place_name);
    shown->place_name = page.place_name;
    if (shown->page != TL_PAGE_MOVED) {
        tl_reference_write(worker->secrets.keyring, view->queue, view->visitor, page.reference);
        shown->reference = page.reference;
    }
    if (view->settings != NULL)
        set_return(visit, view->settings->target_url, &page);
    if (tl_cookie_works(visit)) /* else the addresses carry the ticket */
        shown->ticket = NULL;
    else if (shown->ticket == NULL)
        shown->ticket = tl_request_query(request, "ticket");
    if (shown->page >= TL_PAGE_COMPLETED && shown->page <= TL_PAGE_LOST) /* for "join again" */
        shown->invite = tl_request_query(request, "invite");
    if (strcmp(tl_request_method(request), "POST") == 0)
        redirect(visit, shown, cookie);
    else
        send_page(visit, shown, 200, 0, cookie);
}

/* The state of the page for a kind of refusal; without one here DOWN. */
static const enum tl_page_state of_refusal[TL_REFUSAL_COUNT] = {
    [TL_REFUSAL_NO_QUEUE] = TL_PAGE_CLOSED,
    [TL_REFUSAL_NOT_FOUND] = TL_PAGE_CLOSED,
    [TL_REFUSAL_OLD_GENERATION] = TL_PAGE_LOST,
    [TL_REFUSAL_BLOCKED] = TL_PAGE_BLOCKED,
    [TL_REFUSAL_REMOVED] = TL_PAGE_REMOVED,
    [TL_REFUSAL_MOVED] = TL_PAGE_MOVED,
    [TL_REFUSAL_BAD_CODE] = TL_PAGE_CODE_OVER,
    [TL_REFUSAL_CODE_USED] = TL_PAGE_CODE_OVER,
    [TL_REFUSAL_CODE_OVER] = TL_PAGE_CODE_OVER,
    [TL_REFUSAL_FOREIGN_ORIGIN] = TL_PAGE_OUTSIDE,
    [TL_REFUSAL_BY_INVITATION] = TL_PAGE_INVITED,
    [TL_REFUSAL_BAD_INVITE] = TL_PAGE_INVITED,
    [TL_REFUSAL_INVITE_SPENT] = TL_PAGE_INVITED,
    [TL_REFUSAL_FULL] = TL_PAGE_FULL,
    [TL_REFUSAL_DRAINING] = TL_PAGE_SHUT,
    [TL_REFUSAL_CLOSED] = TL_PAGE_SHUT,
    [TL_REFUSAL_OVER] = TL_PAGE_SHUT,
    [TL_REFUSAL_SOLD_OUT] = TL_PAGE_SOLD_OUT,
    [TL_REFUSAL_CHALLENGE] = TL_PAGE_CHALLENGE,
    [TL_REFUSAL_CHALLENGE_FAILED] = TL_PAGE_CHALLENGE,
};

/* The challenge service as the page needs it. sources: where its sources are written. */
static struct tl_page_service service_of(const struct tl_config *config, char sources[SOURCES_MAX])
{
    const struct tl_provider *provider = tl_provider_of(config->challenge_service.provider);
    const char *url = config->challenge_service.script_url;
    size_t scheme = strncmp(url, "https", 5) == 0 ? strlen("https://") : strlen("http://");
    /* "https://host:port" of the address, if one is configured (tl_check_service_url) */
    size_t origin = url[0] != '\0' ? scheme + strcspn(url + scheme, "/?") : 0;
    snprintf(sources, SOURCES_MAX, "%s%s%.*s", provider->sources, origin > 0 ? " " : "",
             (int)origin, url);
    return (struct tl_page_service){.name = provider->name,
                                    .title = provider->title,
                                    .site_key = config->challenge_service.site_key,
                                    .script = origin > 0 ? url : provider->script_url,
                                    .sources = sources,
                                    .scored = config->challenge_service.min_score > 0};
}

/* Is it the form of a hand-over, with all that it needs? */
static bool is_move(const struct tl_request *request, struct tl_move_body *body)
{
    size_t length;
    const char *text = tl_request_body(request, &length);
    const char *action = strrchr(tl_request_path(request), '/');
    if (strcmp(action, "/move") != 0 || !tl_body_is(request, TL_BODY_FORM))
        return false;
    tl_move_body_parse_form(text, length, body);
    return body->code[0] != '\0' && body->device[0] != '\0';
}

static void render_refusal(struct tl_request *request, const struct tl_refusal *refusal)
{
    struct tl_worker *worker = tl_request_context(request);
    struct tl_visit *visit = tl_request_visit(request);
    struct tl_move_body body;
    struct tl_ticket ticket;
    struct tl_page_service service;
    char sources[SOURCES_MAX], wait[TL_PUZZLE_MAX];
    struct page page;
    unsigned status = tl_refusal_row(refusal->kind)->status;
    unsigned retry_after_s = tl_problem_retry_after_s(refusal->kind);
    if (refusal->kind == TL_REFUSAL_METHOD) { /* sent by programs, not by browsers */
        tl_problem_answer(request, refusal);
        return;
    }
    /* It may have been refused before it was a visit. A name that no queue can have is not shown.
     */
    const char *path = tl_request_path(request) + strlen("/q/"); /* "NAME" or "NAME/join" */
    const size_t length = strcspn(path, "/");
    const bool valid = tl_queue_name_valid(path, length);
    visit->worker = worker;
    visit->request = request;
    snprintf(visit->name, sizeof(visit->name), "%.*s", valid ? (int)length : 1, valid ? path : "-");
    enum tl_page_state state = valid ? of_refusal[refusal->kind] : TL_PAGE_CLOSED;
    begin(visit, state != TL_PAGE_WAITING ? state : TL_PAGE_DOWN, &page);
    struct tl_view *view = &page.view;
    if ((state == TL_PAGE_LOST || state == TL_PAGE_REMOVED) && tl_visit_brought(visit, &ticket)) {
        tl_reference_write(worker->secrets.keyring, visit->name, ticket.visitor, page.reference);
        view->reference = page.reference;
    }
    if (view->page == TL_PAGE_DOWN && is_move(request, &body)) {
        view->page = TL_PAGE_MOVE; /* which can be sent again */
        view->move = body.code;
        view->device = body.device;
    }
    if (view->poll_after_ms < INT64_C(1000) * retry_after_s)
        view->poll_after_ms = INT64_C(1000) * retry_after_s;
    if (view->settings != NULL && refusal->service.provider != NULL) {
        service = service_of(worker->config, sources);
        view->service = &service;
        status = 200;
    } else if (view->settings != NULL && view->page == TL_PAGE_CHALLENGE) {
        tl_challenge_wait(visit, wait);
        view->puzzle = refusal->puzzle.text;
        view->puzzle_parts = refusal->puzzle.parts;
        view->puzzle_bits = refusal->puzzle.bits;
        view->wait = wait;
        view->wait_s = TL_CHALLENGE_WAIT_S;
        status = 200; /* to a person this is a step, and no error */
    }
    send_page(visit, view, status, retry_after_s, NULL);
}

const struct tl_renderer tl_page_renderer = {.view = render_view, .refusal = render_refusal};
