/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/api/body.h"
#include "worker/api/challenge.h"
#include "worker/api/page_renderer.h"
#include "worker/api/return_to.h"
#include "worker/http/refusal.h"
#include "worker/page/page.h"
#include "worker/verify/verdict.h"
#include "worker/visit/context.h"
#include "worker/visit/cookie.h"
#include "worker/visit/navigation.h"
#include "worker/visit/view.h"
#include "worker/visit/visit.h"

#include "common/base/clock.h"

enum {
    RETRY_TEXT = 16,
    LANGUAGE_COOKIE_MAX = 96,
    SOURCES_MAX = 768,
    VIEWS_PER_JOIN = 4, /* so many pages of an address for each join that it has */
    VIEWS_RETRY_S = 10,
};

/* A page of a refusal tries again after this, spread evenly; or after Retry-After. */
enum { RETRY_MIN_MS = 4000, RETRY_SPREAD_MS = 4000 };

/* Reads `?return=` for this page; `back` is where the address is stored. */
static void set_return(const struct tl_worker *worker, const struct tl_request *request,
                       const char *target_url, struct tl_return_to *back, struct tl_view *page)
{
    tl_return_to_read(worker, request, target_url, back);
    page->return_url = back->address[0] != '\0' ? back->address : NULL;
    page->return_refused = back->refused;
}

/* Compresses the answer's page if the browser takes it. Returns the memory, to be freed once the
 * answer is sent; NULL: it stays as it is. */
static unsigned char *compress_page(const struct tl_worker *worker,
                                    const struct tl_request *request, const struct tl_text *page,
                                    struct tl_answer *answer)
{
    const char *encodings = tl_request_header(request, "Accept-Encoding");
    unsigned char *bytes;
    size_t length;
    if (encodings == NULL || strstr(encodings, "gzip") == NULL ||
        !tl_page_compress(page, worker->brand, &bytes, &length))
        return NULL;
    answer->body = (const char *)bytes;
    answer->length = length;
    tl_answer_header(answer, "Content-Encoding", "gzip");
    return bytes;
}

/* A page takes as long as fifty answers of the API: each address has its share. */
static bool may_view(const struct tl_worker *worker, const struct tl_request *request)
{
    struct tl_address address;
    return !tl_visitor_address(worker, request, &address) ||
           tl_limiter_allow(worker->limiter, TL_LIMITER_VIEWS, &address,
                            VIEWS_PER_JOIN * worker->config->http.joins_per_minute, tl_clock_ms());
}

/* Instead of a page, for which the browser then asks again. */
static void send_sorry(struct tl_request *request, const struct tl_view *view, unsigned status,
                       const char *cookie)
{
    static const char sorry[] =
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Please wait</title>\n"
        "<p>Please try again in a moment. 잠시 후 다시 시도해 주세요.</p>\n";
    unsigned after_s = VIEWS_RETRY_S + (unsigned)randombytes_uniform(VIEWS_RETRY_S);
    char retry_after[RETRY_TEXT];
    struct tl_text refresh = {0};
    struct tl_answer answer = {.status = status,
                               .type = "text/html; charset=utf-8",
                               .body = sorry,
                               .length = sizeof(sorry) - 1};
    snprintf(retry_after, sizeof(retry_after), "%u", after_s);
    tl_text_append(&refresh, "%u; url=", after_s);
    tl_page_address(view, "", NULL, &refresh);
    tl_answer_header(&answer, "Retry-After", retry_after);
    tl_answer_header(&answer, "Refresh", refresh.failed ? NULL : refresh.data);
    tl_answer_header(&answer, "Content-Security-Policy", "default-src 'none'");
    tl_answer_header(&answer, "Referrer-Policy", TL_PAGE_REFERRER_POLICY);
    tl_answer_header(&answer, "X-Content-Type-Options", "nosniff");
    tl_answer_header(&answer, "Set-Cookie", cookie);
    tl_request_answer(request, &answer);
    tl_text_free(&refresh);
}

static void send_page(const struct tl_worker *worker, struct tl_request *request,
                      const struct tl_view *view, unsigned status, unsigned retry_after_s,
                      const char *cookie)
{
    const struct tl_catalogue *language = tl_language_of(worker->languages, request);
    char retry_after[RETRY_TEXT];
    char chosen[LANGUAGE_COOKIE_MAX];
    struct tl_text text = {0};
    struct tl_text policy = {0};
    bool may = may_view(worker, request);
    if (may) {
        tl_page_render(view, worker->brand, language, &text);
        tl_page_policy(view, worker->brand, &policy);
    }
    if (!may || text.failed || policy.failed) {
        send_sorry(request, view, may ? 503 : 429, cookie);
        tl_text_free(&text);
        tl_text_free(&policy);
        return;
    }
    struct tl_answer answer = {.status = status,
                               .type = "text/html; charset=utf-8",
                               .body = text.data,
                               .length = text.length};
    unsigned char *compressed = compress_page(worker, request, &text, &answer);
    tl_answer_header(&answer, "Content-Security-Policy", policy.data);
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
}

/* To the page by GET: after a form, so that a reload sends nothing twice. */
static void send_back(const struct tl_worker *worker, struct tl_request *request,
                      const struct tl_view *view, const char *cookie)
{
    struct tl_text address = {0};
    bool chosen = tl_request_query(request, "lang") != NULL;
    tl_page_address(view, "", chosen ? tl_language_of(worker->languages, request)->code : NULL,
                    &address);
    struct tl_answer answer = {.status = 303};
    tl_answer_header(&answer, "Location", address.failed ? "/" : address.data);
    tl_answer_header(&answer, "Set-Cookie", cookie);
    tl_request_answer(request, &answer);
    tl_text_free(&address);
}

/* The position that the visitor began with, as the page's own addresses say. */
static uint64_t first_position(const struct tl_request *request)
{
    const char *from = tl_request_query(request, "from");
    return from != NULL ? strtoull(from, NULL, 10) : 0;
}

static void render_view(void *context, struct tl_request *request, const struct tl_view *view,
                        const char *cookie)
{
    const struct tl_worker *worker = context;
    char place_name[TL_REFERENCE_MAX];
    char reference[TL_REFERENCE_MAX];
    struct tl_return_to back;
    struct tl_view page = *view;
    page.page = tl_view_state(view);
    page.event = tl_event_looks_find(worker->events, view->queue);
    page.from = first_position(request);
    page.poll_after_ms = tl_view_poll_after_ms(view);
    page.no_transfer = !worker->config->page.transfer;
    tl_shown_place_write(worker, view->queue, view->visitor, view->place, place_name);
    page.place_name = place_name;
    if (page.page != TL_PAGE_MOVED) {
        tl_reference_write(worker->secrets.keyring, view->queue, view->visitor, reference);
        page.reference = reference;
    }
    set_return(worker, request, view->settings->target_url, &back, &page);
    if (tl_cookie_works(request, view->queue)) /* else the addresses carry the ticket */
        page.ticket = NULL;
    else if (page.ticket == NULL)
        page.ticket = tl_request_query(request, "ticket");
    if (page.page >= TL_PAGE_COMPLETED && page.page <= TL_PAGE_LOST) /* for "join again" */
        page.invite = tl_request_query(request, "invite");
    if (strcmp(tl_request_method(request), "POST") == 0)
        send_back(worker, request, &page, cookie);
    else
        send_page(worker, request, &page, 200, 0, cookie);
}

/* The state of the page for this kind of refusal. */
static enum tl_page_state state_refused(enum tl_refusal_kind kind)
{
    switch (kind) {
    case TL_REFUSAL_NO_QUEUE:
    case TL_REFUSAL_NOT_FOUND:
        return TL_PAGE_CLOSED;
    case TL_REFUSAL_OLD_GENERATION:
        return TL_PAGE_LOST;
    case TL_REFUSAL_BLOCKED:
        return TL_PAGE_BLOCKED;
    case TL_REFUSAL_REMOVED:
        return TL_PAGE_REMOVED;
    case TL_REFUSAL_MOVED:
        return TL_PAGE_MOVED;
    case TL_REFUSAL_BAD_CODE:
    case TL_REFUSAL_CODE_USED:
    case TL_REFUSAL_CODE_OVER:
        return TL_PAGE_CODE_OVER;
    case TL_REFUSAL_FOREIGN_ORIGIN:
        return TL_PAGE_OUTSIDE;
    case TL_REFUSAL_BY_INVITATION:
    case TL_REFUSAL_BAD_INVITE:
    case TL_REFUSAL_INVITE_SPENT:
        return TL_PAGE_INVITED;
    case TL_REFUSAL_FULL:
        return TL_PAGE_FULL;
    case TL_REFUSAL_DRAINING:
    case TL_REFUSAL_CLOSED:
    case TL_REFUSAL_OVER:
        return TL_PAGE_SHUT;
    case TL_REFUSAL_SOLD_OUT:
        return TL_PAGE_SOLD_OUT;
    case TL_REFUSAL_CHALLENGE:
    case TL_REFUSAL_CHALLENGE_FAILED:
        return TL_PAGE_CHALLENGE;
    default:
        return TL_PAGE_DOWN;
    }
}

/* A page without a view of a place. The queue is a valid name. back: as for set_return. */
static struct tl_view view_without_place(const struct tl_worker *worker,
                                         const struct tl_request *request, enum tl_page_state state,
                                         const char *name, struct tl_return_to *back)
{
    const struct tl_queue *queue = tl_queues_find(worker->queues, name);
    struct tl_view page = {.page = state,
                           .queue = name,
                           .store_ms = tl_queue_env_store_ms(worker->env, tl_clock_ms()),
                           .poll_after_ms = RETRY_MIN_MS + randombytes_uniform(RETRY_SPREAD_MS),
                           .ticket = tl_request_query(request, "ticket"),
                           .invite = tl_request_query(request, "invite")};
    if (queue != NULL) {
        page.settings = &queue->settings;
        page.event = tl_event_looks_find(worker->events, name);
        set_return(worker, request, page.settings->target_url, back, &page);
    }
    return page;
}

void tl_page_send_outside(const struct tl_worker *worker, struct tl_request *request,
                          const char *queue)
{
    struct tl_return_to back;
    const struct tl_view page = view_without_place(worker, request, TL_PAGE_OUTSIDE, queue, &back);
    send_page(worker, request, &page, 200, 0, NULL);
}

void tl_page_send_through(const struct tl_worker *worker, struct tl_request *request,
                          const char *queue, const char *target_url, const char *cookie)
{
    struct tl_return_to back;
    struct tl_view page = view_without_place(worker, request, TL_PAGE_PASSTHROUGH, queue, &back);
    set_return(worker, request, target_url, &back, &page);
    page.ticket = page.invite = NULL;
    const char *address = page.return_url != NULL ? page.return_url : target_url;
    if (address[0] == '\0') {
        send_page(worker, request, &page, 200, 0, cookie);
        return;
    }
    struct tl_answer answer = {.status = 303};
    tl_answer_header(&answer, "Location", address);
    tl_answer_header(&answer, "Set-Cookie", cookie);
    tl_request_answer(request, &answer);
}

void tl_page_send_move(const struct tl_worker *worker, struct tl_request *request,
                       const char *queue, const char *device)
{
    struct tl_return_to back;
    struct tl_view page = view_without_place(worker, request, TL_PAGE_MOVE, queue, &back);
    page.ticket = page.invite = NULL;
    page.device = device;
    send_page(worker, request, &page, 200, 0, NULL);
}

void tl_page_send_code(const struct tl_worker *worker, struct tl_request *request,
                       const char *queue, const char *address, const struct tl_qr *qr)
{
    struct tl_return_to back;
    struct tl_view page = view_without_place(worker, request, TL_PAGE_CODE, queue, &back);
    page.from = first_position(request);
    page.code_address = address;
    page.qr = qr;
    send_page(worker, request, &page, 200, 0, NULL);
}

void tl_page_send_back(const struct tl_worker *worker, struct tl_request *request,
                       const char *queue)
{
    struct tl_return_to back;
    struct tl_view page = view_without_place(worker, request, TL_PAGE_WAITING, queue, &back);
    page.from = first_position(request);
    send_back(worker, request, &page, NULL);
}

bool tl_page_is_secret(const struct tl_request *request)
{
    return tl_request_query(request, "ticket") != NULL ||
           tl_request_query(request, "invite") != NULL;
}

void tl_page_send_clean(const struct tl_worker *worker, struct tl_request *request,
                        const char *queue)
{
    struct tl_return_to back;
    struct tl_view page = view_without_place(worker, request, TL_PAGE_WAITING, queue, &back);
    page.from = first_position(request);
    page.ticket = page.invite = NULL;
    send_back(worker, request, &page, NULL);
}

void tl_page_send_present(const struct tl_worker *worker, struct tl_request *request,
                          const char *queue)
{
    struct tl_return_to back;
    struct tl_view page = view_without_place(worker, request, TL_PAGE_PENDING, queue, &back);
    page.ticket = page.invite = NULL;
    send_back(worker, request, &page, NULL);
}

void tl_page_send_probe(const struct tl_worker *worker, struct tl_request *request,
                        const char *queue)
{
    char cookie[TL_COOKIE_TEXT_MAX];
    struct tl_return_to back;
    struct tl_view page = view_without_place(worker, request, TL_PAGE_PENDING, queue, &back);
    page.asks_for_cookies = true;
    tl_cookie_write_probe(worker, request, cookie);
    send_back(worker, request, &page, cookie);
}

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
    static const char end[] = "/move";
    size_t length;
    const char *text = tl_request_body(request, &length);
    const char *path = tl_request_path(request);
    const size_t n = strlen(path);
    if (n < strlen(end) || strcmp(path + n - strlen(end), end) != 0 ||
        !tl_move_body_is_form(request))
        return false;
    tl_move_body_parse_form(text, length, body);
    return body->code[0] != '\0' && body->device[0] != '\0';
}

static void render_refusal(void *context, struct tl_request *request,
                           const struct tl_refusal *refusal)
{
    const struct tl_worker *worker = context;
    char name[TL_QUEUE_NAME_MAX + 1];
    char wait[TL_PUZZLE_MAX];
    char reference[TL_REFERENCE_MAX];
    struct tl_ticket ticket;
    unsigned status = tl_problem_status(refusal->kind);
    if (refusal->kind == TL_REFUSAL_METHOD) { /* sent by programs, not by browsers */
        tl_problem_answer(request, refusal);
        return;
    }
    const char *path = tl_request_path(request) + sizeof("/q/") - 1; /* "NAME" or "NAME/join" */
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "/"), path);
    bool valid = tl_queue_name_valid(name, strlen(name));
    unsigned retry_after_s = tl_problem_retry_after_s(refusal->kind);
    /* A name that no queue can have is not shown. */
    struct tl_return_to back;
    struct tl_view page =
        view_without_place(worker, request, valid ? state_refused(refusal->kind) : TL_PAGE_CLOSED,
                           valid ? name : "-", &back);
    const struct tl_queue *queue = tl_queues_find(worker->queues, name);
    if ((page.page == TL_PAGE_LOST || page.page == TL_PAGE_REMOVED) &&
        tl_visitor_ticket(worker, request, name, &ticket)) {
        tl_reference_write(worker->secrets.keyring, name, ticket.visitor, reference);
        page.reference = reference;
    }
    struct tl_move_body body;
    if (page.page == TL_PAGE_DOWN && valid && is_move(request, &body)) {
        page.page = TL_PAGE_MOVE; /* which can be sent again */
        page.move = body.code;
        page.device = body.device;
    }
    if (page.poll_after_ms < INT64_C(1000) * retry_after_s)
        page.poll_after_ms = INT64_C(1000) * retry_after_s;
    char sources[SOURCES_MAX];
    struct tl_page_service service;
    if (queue != NULL && refusal->service.provider != NULL) {
        service = service_of(worker->config, sources);
        page.service = &service;
        status = 200;
    } else if (queue != NULL && page.page == TL_PAGE_CHALLENGE) {
        tl_challenge_wait(worker, queue, request, wait);
        page.puzzle = refusal->puzzle.text;
        page.puzzle_parts = refusal->puzzle.parts;
        page.puzzle_bits = refusal->puzzle.bits;
        page.wait = wait;
        page.wait_s = TL_CHALLENGE_WAIT_S;
        status = 200; /* to a person this is a step, and no error */
    }
    send_page(worker, request, &page, status, retry_after_s, NULL);
}

const struct tl_renderer tl_page_renderer = {.view = render_view, .refusal = render_refusal};
