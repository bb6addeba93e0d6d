/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/origin.h"
#include "common/base/text.h"
#include "common/config/queue_settings.h"
#include "worker/visit/browser.h"

/* ---- pages of other sites ---- */

/* The header as a trusted proxy sent it; NULL: there is none. Of a list only the first value
 * counts: the address that the visitor used. */
static const char *forwarded(const struct tl_worker *worker, const struct tl_request *request,
                             const char *name, size_t *length)
{
    const char *value = tl_request_header(request, name);
    struct tl_address peer;
    if (value == NULL || !tl_request_peer(request, &peer) ||
        !tl_networks_contain(worker->proxies, &peer))
        return NULL;
    *length = strcspn(value, ", ");
    return value;
}

static bool is_https(const char *scheme, size_t length)
{
    return length == 5 && memcmp(scheme, "https", 5) == 0;
}

bool tl_cross_site_https(const struct tl_visit *visit)
{
    if (strncmp(visit->worker->config->http.public_url, "https:", 6) == 0)
        return true;
    size_t length = 0;
    const char *scheme = forwarded(visit->worker, visit->request, "X-Forwarded-Proto", &length);
    return scheme != NULL && is_https(scheme, length);
}

/* Is it the origin of http.public_url, or of the address that this request was sent to? Where
 * nothing says by which scheme that was, either one fits. */
static bool is_own(const struct tl_worker *worker, const struct tl_request *request,
                   const struct tl_origin *origin)
{
    struct tl_origin own;
    char address[TL_ADDRESS_MAX];
    if (tl_origin_parse(worker->config->http.public_url, &own) && tl_origin_same(&own, origin))
        return true;
    size_t host_length = 0, scheme_length = 0;
    const char *host = forwarded(worker, request, "X-Forwarded-Host", &host_length);
    const char *scheme = forwarded(worker, request, "X-Forwarded-Proto", &scheme_length);
    if (host == NULL && (host = tl_request_header(request, "Host")) != NULL)
        host_length = strlen(host);
    bool secure = scheme != NULL ? is_https(scheme, scheme_length) : origin->secure;
    int n = snprintf(address, sizeof(address), "http%s://%.*s", secure ? "s" : "", (int)host_length,
                     host != NULL ? host : "");
    return n > 0 && (size_t)n < sizeof(address) && tl_origin_parse(address, &own) &&
           tl_origin_same(&own, origin);
}

/* The Origin header, if http.allowed_origins has it. */
static const char *allowed_origin(const struct tl_worker *worker, const struct tl_request *request)
{
    const char *header = tl_request_header(request, "Origin");
    struct tl_origin origin;
    bool allowed = header != NULL && tl_origin_parse(header, &origin) &&
                   tl_origins_contain(worker->config->http.allowed_origins, &origin);
    return allowed ? header : NULL;
}

void tl_cross_site_share(const struct tl_worker *worker, struct tl_request *request)
{
    if (worker->config->http.allowed_origins[0] != '\0' &&
        strncmp(tl_request_path(request), "/v1/queues/", 11) == 0)
        tl_request_share_with(request, allowed_origin(worker, request));
}

bool tl_cross_site_preflight(const struct tl_worker *worker, struct tl_request *request)
{
    if (strcmp(tl_request_method(request), "OPTIONS") != 0 ||
        strncmp(tl_request_path(request), "/v1/queues/", 11) != 0 ||
        tl_request_header(request, "Access-Control-Request-Method") == NULL ||
        allowed_origin(worker, request) == NULL)
        return false;
    struct tl_answer answer = {.status = 204};
    tl_answer_header(&answer, "Access-Control-Allow-Methods", "GET, POST");
    tl_answer_header(&answer, "Access-Control-Allow-Headers",
                     "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-Id");
    tl_answer_header(&answer, "Access-Control-Max-Age", "600");
    tl_request_answer(request, &answer);
    return true;
}

bool tl_cross_site_allows(const struct tl_worker *worker, const struct tl_request *request,
                          struct tl_refusal *refusal)
{
    const char *header = tl_request_header(request, "Origin");
    /* Set by the browser itself, and only for encrypted pages and localhost. */
    const char *site = tl_request_header(request, "Sec-Fetch-Site");
    struct tl_origin origin;
    bool from_here =
        site != NULL && (strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0);
    if (strcmp(tl_request_method(request), "POST") != 0 || from_here ||
        (header == NULL && site == NULL) || /* a program, or a browser from before 2020 */
        (header != NULL && tl_origin_parse(header, &origin) &&
         (is_own(worker, request, &origin) || allowed_origin(worker, request) != NULL)))
        return true;
    return tl_refuse(
        refusal, TL_REFUSAL_FOREIGN_ORIGIN,
        "Pages of this site may not do this; http.allowed_origins names those that may");
}

/* ---- cookies ---- */

enum {
    LIFE_MIN_S = 86400,
    LIFE_MAX_S = 400 * 86400, /* browsers keep none for longer */
};

#define STEM "tellerline_"
/* No queue has a name with capitals. */
#define PROBE STEM "COOKIES"

static const char *const prefixes[] = {"__Host-", ""};
enum { NAMES = sizeof(prefixes) / sizeof(prefixes[0]) };

struct cookie_name {
    char text[24 + TL_QUEUE_NAME_MAX];
};

static struct cookie_name name_of(const char *prefix, const char *queue)
{
    struct cookie_name name = {""};
    size_t length = tl_text_copy(name.text, sizeof(name.text), prefix);
    length += tl_text_copy(name.text + length, sizeof(name.text) - length, STEM);
    (void)tl_text_copy(name.text + length, sizeof(name.text) - length, queue);
    return name;
}

void tl_cookie_write(const struct tl_visit *visit, const char *ticket,
                     char text[TL_COOKIE_TEXT_MAX])
{
    const struct tl_queue_settings *settings = &visit->queue->settings;
    bool https = tl_cross_site_https(visit);
    int64_t store_ms = tl_queue_env_store_ms(visit->worker->env, visit->now_ms);
    int64_t opens_in_ms = settings->opens_at_ms > store_ms ? settings->opens_at_ms - store_ms : 0;
    int64_t life_s = (opens_in_ms + settings->waiting_ttl_ms + settings->claim_ttl_ms +
                      tl_queue_session_longest_ms(settings)) /
                     1000;
    life_s = life_s < LIFE_MIN_S ? LIFE_MIN_S : life_s < LIFE_MAX_S ? life_s : LIFE_MAX_S;
    char age[24];
    snprintf(age, sizeof(age), "%" PRId64, life_s);
    const char *const parts[] = {https ? prefixes[0] : "",
                                 STEM,
                                 visit->name,
                                 "=",
                                 ticket,
                                 "; Path=/; Max-Age=",
                                 age,
                                 "; HttpOnly; SameSite=Lax",
                                 https ? "; Secure" : ""};
    size_t length = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        length += tl_text_copy(text + length, TL_COOKIE_TEXT_MAX - length, parts[i]);
}

struct search {
    const struct tl_visit *visit;
    struct tl_ticket *ticket;
};

static bool is_valid(void *context, const char *value)
{
    const struct search *search = context;
    const struct tl_worker *worker = search->visit->worker;
    return tl_secrets_ticket(&worker->secrets, search->visit->name, value,
                             tl_queue_env_store_ms(worker->env, search->visit->now_ms),
                             search->ticket);
}

bool tl_cookie_ticket(const struct tl_visit *visit, struct tl_ticket *ticket)
{
    struct search search = {.visit = visit, .ticket = ticket};
    bool found = false;
    for (size_t i = 0; i < NAMES && !found; i++)
        found = tl_request_accept_cookie(visit->request, name_of(prefixes[i], visit->name).text,
                                         is_valid, &search);
    return found;
}

bool tl_cookie_sent(const struct tl_visit *visit)
{
    for (size_t i = 0; i < NAMES; i++) {
        if (tl_request_cookie(visit->request, name_of(prefixes[i], visit->name).text) != NULL)
            return true;
    }
    return false;
}

void tl_cookie_write_probe(const struct tl_visit *visit, char text[TL_COOKIE_TEXT_MAX])
{
    snprintf(text, TL_COOKIE_TEXT_MAX, PROBE "=1; Path=/q/; HttpOnly; SameSite=Lax%s",
             tl_cross_site_https(visit) ? "; Secure" : "");
}

bool tl_cookie_works(const struct tl_visit *visit)
{
    const char *probe = tl_request_cookie(visit->request, PROBE);
    return tl_cookie_sent(visit) || (probe != NULL && strcmp(probe, "1") == 0);
}

/* ---- the place of a page ---- */

/* What has the code: the place's number with its visitor. */
static void place_name(const struct tl_ticket *ticket, uint64_t seq,
                       char name[TL_REFERENCE_NAME_MAX])
{
    snprintf(name, TL_REFERENCE_NAME_MAX, "%s %" PRIu64, ticket->visitor, seq);
}

void tl_shown_place_write(const struct tl_visit *visit, char text[TL_REFERENCE_MAX])
{
    char name[TL_REFERENCE_NAME_MAX];
    place_name(&visit->ticket, tl_place_seq(visit->ticket.place), name);
    tl_reference_write(visit->worker->secrets.keyring, visit->name, name, text);
}

bool tl_shown_place_differs(const struct tl_visit *visit)
{
    const char *shown = tl_request_query(visit->request, "place");
    const struct tl_keyring *keyring = visit->worker->secrets.keyring;
    struct tl_ticket ticket;
    char place[TL_REFERENCE_NAME_MAX], unnumbered[TL_REFERENCE_NAME_MAX];
    uint64_t number;
    if (shown == NULL || !tl_cookie_ticket(visit, &ticket))
        return false;
    place_name(&ticket, tl_place_seq(ticket.place), place);
    place_name(&ticket, 0, unnumbered); /* the page was made before the place had its number */
    return !tl_reference_read(shown, &number) ||
           (!tl_reference_is_of(keyring, visit->name, place, number) &&
            !tl_reference_is_of(keyring, visit->name, unnumbered, number));
}

/* ---- who asks, and in which language ---- */

/* What is in the User-Agent of crawlers and of programs that make previews of links. Listed in
 * docs/integrators/waiting-page-developers.md. ("bot" alone is in the name of a phone.) */
static const char *const crawlers[] = {
    "bot/",        "bot-",        "crawler",   "spider",   "slurp",       "facebookexternalhit",
    "BingPreview", "TelegramBot", "WhatsApp/", "PetalBot", "ia_archiver", "Google-InspectionTool",
    "Yeti/",       "Daumoa",
};

static bool is_crawler(const struct tl_request *request)
{
    const char *agent = tl_request_header(request, "User-Agent");
    for (size_t i = 0; agent != NULL && i < sizeof(crawlers) / sizeof(crawlers[0]); i++) {
        if (strcasestr(agent, crawlers[i]) != NULL)
            return true;
    }
    return false;
}

static bool is_ahead(const struct tl_request *request)
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

/* Is the header absent, or has it this value? */
static bool fits(const struct tl_request *request, const char *name, const char *value)
{
    const char *header = tl_request_header(request, name);
    return header == NULL || strcmp(header, value) == 0;
}

enum tl_navigation tl_navigation_of(const struct tl_request *request)
{
    if (is_ahead(request))
        return TL_NAVIGATION_AHEAD;
    if (!fits(request, "Sec-Fetch-Dest", "document") ||
        !fits(request, "Sec-Fetch-Mode", "navigate") || is_crawler(request))
        return TL_NAVIGATION_EMBEDDED;
    return TL_NAVIGATION_PERSON;
}

const struct tl_catalogue *tl_language_of(const struct tl_visit *visit)
{
    const struct tl_request *request = visit->request;
    return tl_languages_choose(visit->worker->brand->languages, tl_request_query(request, "lang"),
                               tl_request_cookie(request, "tellerline_lang"),
                               tl_request_header(request, "Accept-Language"));
}
