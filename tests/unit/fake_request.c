/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/fake_request.h"

static const char *find(const struct fake_value *values, size_t n, const char *name)
{
    for (size_t i = 0; i < n && values[i].name != NULL; i++) {
        if (strcasecmp(values[i].name, name) == 0)
            return values[i].value;
    }
    return NULL;
}

void *tl_request_visit(struct tl_request *request)
{
    return request->visit;
}

const char *tl_request_method(const struct tl_request *request)
{
    return request->method;
}

const char *tl_request_path(const struct tl_request *request)
{
    return request->path;
}

const char *tl_request_header(const struct tl_request *request, const char *name)
{
    return find(request->headers, 8, name);
}

size_t tl_request_headers(const struct tl_request *request, const char *name, const char **values,
                          size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < 8 && request->headers[i].name != NULL && n < most; i++) {
        if (strcasecmp(request->headers[i].name, name) == 0)
            values[n++] = request->headers[i].value;
    }
    return n;
}

const char *tl_request_cookie(const struct tl_request *request, const char *name)
{
    return find(request->cookies, 4, name);
}

bool tl_request_accept_cookie(const struct tl_request *request, const char *name,
                              bool (*accept)(void *context, const char *value), void *context)
{
    for (size_t i = 0; i < 4 && request->cookies[i].name != NULL; i++) {
        if (strcmp(request->cookies[i].name, name) == 0 &&
            accept(context, request->cookies[i].value))
            return true;
    }
    return false;
}

void tl_request_share_with(struct tl_request *request, const char *origin)
{
    request->by_origin = true;
    request->shared_origin = origin;
}

size_t tl_request_share_headers(const struct tl_request *request,
                                struct tl_header headers[TL_SHARE_HEADERS_MAX])
{
    headers[0] = (struct tl_header){"Access-Control-Allow-Origin", request->shared_origin};
    return request->shared_origin != NULL ? 1 : 0;
}

const char *tl_request_query(const struct tl_request *request, const char *name)
{
    return find(request->queries, 4, name);
}

void tl_request_each_query(const struct tl_request *request,
                           void (*visit)(void *context, const char *name, const char *value),
                           void *context)
{
    for (size_t i = 0; i < 4 && request->queries[i].name != NULL; i++)
        visit(context, request->queries[i].name, request->queries[i].value);
}

bool tl_request_peer(const struct tl_request *request, struct tl_address *address)
{
    return request->peer != NULL && tl_address_parse(request->peer, address);
}

void *tl_request_context(const struct tl_request *request)
{
    return request->context;
}

const char *tl_request_body(const struct tl_request *request, size_t *length)
{
    const char *body = request->body != NULL ? request->body : "";
    *length = strlen(body);
    return body;
}

const char *tl_request_id(const struct tl_request *request)
{
    (void)request;
    return "request-1";
}

void tl_request_set_renderer(struct tl_request *request, const struct tl_renderer *renderer)
{
    request->renderer = renderer;
}

const struct tl_renderer *tl_request_renderer(const struct tl_request *request)
{
    return request->renderer;
}

bool tl_request_gone(const struct tl_request *request)
{
    return request->gone;
}

void tl_request_hold(struct tl_request *request)
{
    request->held = true;
}

int tl_request_take_over(struct tl_request *request)
{
    int ends[2];
    request->answers++;
    request->status = 200;
    request->held = false;
    if (request->cannot_take_over ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return -1;
    request->taken_over = true;
    request->client = ends[1];
    return ends[0];
}

void tl_answer_header(struct tl_answer *answer, const char *name, const char *value)
{
    if (value != NULL && answer->n_headers < TL_ANSWER_HEADERS_MAX)
        answer->headers[answer->n_headers++] = (struct tl_header){name, value};
}

void tl_request_answer(struct tl_request *request, const struct tl_answer *answer)
{
    request->answers++;
    request->held = false;
    request->status = answer->status;
    snprintf(request->type, sizeof(request->type), "%s", answer->type != NULL ? answer->type : "");
    snprintf(request->cache, sizeof(request->cache), "%s",
             answer->cache != NULL ? answer->cache : "");
    request->length =
        answer->length < sizeof(request->text) ? answer->length : sizeof(request->text) - 1;
    if (request->length > 0)
        memcpy(request->text, answer->body, request->length);
    request->text[request->length] = '\0';
    request->n_answer_headers = answer->n_headers;
    for (size_t i = 0; i < answer->n_headers; i++) {
        snprintf(request->answer_headers[i].name, sizeof(request->answer_headers[i].name), "%s",
                 answer->headers[i].name);
        snprintf(request->answer_headers[i].value, sizeof(request->answer_headers[i].value), "%s",
                 answer->headers[i].value);
    }
}

const char *fake_answer_header(const struct tl_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_answer_headers; i++) {
        if (strcasecmp(request->answer_headers[i].name, name) == 0)
            return request->answer_headers[i].value;
    }
    return NULL;
}
