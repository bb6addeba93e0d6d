/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/base/origin.h"
#include "worker/visit/cross_site.h"

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

bool tl_cross_site_https(const struct tl_worker *worker, const struct tl_request *request)
{
    if (strncmp(worker->config->http.public_url, "https:", 6) == 0)
        return true;
    size_t length = 0;
    const char *scheme = forwarded(worker, request, "X-Forwarded-Proto", &length);
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
                     "Authorization, Content-Type, Last-Event-ID, X-Request-Id");
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
        (header == NULL && site == NULL) || /* a program, or a browser of before 2020 */
        (header != NULL && tl_origin_parse(header, &origin) &&
         (is_own(worker, request, &origin) || allowed_origin(worker, request) != NULL)))
        return true;
    return tl_refuse(
        refusal, TL_REFUSAL_FOREIGN_ORIGIN,
        "Pages of this site may not do this; http.allowed_origins names those that may");
}
