/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generated/admin_web.h"

#include "worker/admin/answer.h"

#define API_POLICY "default-src 'none'; frame-ancestors 'none'"
#define PAGE_POLICY                                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "              \
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

enum { COOKIE_MAX = TL_ADMIN_SESSION_TEXT_MAX + 128, SMALL = 32 };

/* value NULL: no such header. */
static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return value == NULL || MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_protection(struct MHD_Response *response, const char *policy)
{
    return add(response, "Content-Security-Policy", policy) &&
           add(response, "X-Frame-Options", "DENY") &&
           add(response, "X-Content-Type-Options", "nosniff") &&
           add(response, "Referrer-Policy", "no-referrer") &&
           add(response, "Cross-Origin-Resource-Policy", "same-origin") &&
           add(response, "Cross-Origin-Opener-Policy", "same-origin");
}

static bool queue(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response,
                  bool complete)
{
    bool queued = complete && MHD_queue_response(connection, status, response) == MHD_YES;
    MHD_destroy_response(response);
    return queued;
}

/* ---- calls ---- */

static bool add_cookie(struct MHD_Response *response, const struct tl_admin_call *call, bool secure)
{
    char cookie[COOKIE_MAX];
    if (call->cookie_change == TL_COOKIE_KEEP)
        return true;
    bool set = call->cookie_change == TL_COOKIE_SET;
    snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s",
             secure ? TL_ADMIN_COOKIE_SECURE : TL_ADMIN_COOKIE, set ? call->cookie : "",
             secure ? "; Secure" : "", set ? "" : "; Max-Age=0");
    return add(response, "Set-Cookie", cookie);
}

static bool answer_stream(struct tl_admin_call *call)
{
    bool export = call->route->kind == TL_CONTROL_EXPORT;
    bool csv = strncmp(call->stream_type, "text/csv", strlen("text/csv")) == 0;
    struct MHD_Response *response = call->stream;
    call->stream = NULL; /* the connection's now */
    bool complete =
        add_protection(response, API_POLICY) && add(response, "Cache-Control", "no-store") &&
        add(response, "Content-Type", call->stream_type) && add(response, "Connection", "close") &&
        add(response, "X-Accel-Buffering", "no") &&
        add(response, "Content-Disposition",
            !export ? NULL
            : csv   ? "attachment; filename=\"visitors.csv\""
                    : "attachment; filename=\"visitors.jsonl\"");
    return queue(call->connection, MHD_HTTP_OK, response, complete);
}

/* A waiting page, or another page that Tellerline makes. */
static bool answer_page(struct tl_admin_call *call)
{
    struct tl_text *html = &call->page.html;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(html->length, html->data, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        return false;
    *html = (struct tl_text){0}; /* the response's now */
    bool complete =
        add_protection(response, call->page.policy != NULL ? call->page.policy : PAGE_POLICY) &&
        add(response, "Cache-Control", "no-store") &&
        add(response, "Content-Type", "text/html; charset=utf-8");
    return queue(call->connection, MHD_HTTP_OK, response, complete);
}

bool tl_admin_answer_call(struct tl_admin_call *call, bool secure)
{
    const struct tl_control_answer *answer = &call->answer;
    char retry_after[SMALL];
    if (call->stream != NULL)
        return answer_stream(call);
    if (call->page.html.length > 0)
        return answer_page(call);
    char *text = answer->body != NULL ? json_dumps(answer->body, JSON_COMPACT) : NULL;
    if (answer->body != NULL && text == NULL)
        return false;
    struct MHD_Response *response = MHD_create_response_from_buffer(text != NULL ? strlen(text) : 0,
                                                                    text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return false;
    }
    snprintf(retry_after, sizeof(retry_after), "%d", answer->retry_after_s);
    bool complete = add_protection(response, API_POLICY) &&
                    add(response, "Cache-Control", "no-store") &&
                    add(response, "Content-Type",
                        text == NULL            ? NULL
                        : answer->status >= 400 ? TL_CONTROL_PROBLEM_TYPE
                                                : "application/json") &&
                    add(response, "ETag", answer->etag[0] != '\0' ? answer->etag : NULL) &&
                    add(response, "Allow", answer->allow[0] != '\0' ? answer->allow : NULL) &&
                    add(response, "Retry-After", answer->retry_after_s > 0 ? retry_after : NULL) &&
                    add(response, "WWW-Authenticate", answer->status == 401 ? "Bearer" : NULL) &&
                    add_cookie(response, call, secure);
    return queue(call->connection, (unsigned)answer->status, response, complete);
}

/* ---- files ---- */

#define TYPE_HTML "text/html; charset=utf-8"
#define TYPE_CSS  "text/css; charset=utf-8"
#define TYPE_JS   "text/javascript; charset=utf-8"
#define TYPE_SVG  "image/svg+xml"
#define TYPE_YAML "application/yaml; charset=utf-8"

#define FILE_ROW(file, symbol, extension, hash)                                                    \
    {.path = (file),                                                                               \
     .type = TYPE_##extension,                                                                     \
     .etag = "\"" hash "\"",                                                                       \
     .bytes = tl_web_##symbol,                                                                     \
     .length = sizeof(tl_web_##symbol),                                                            \
     .gzip = tl_web_##symbol##_gzip,                                                               \
     .gzip_length = sizeof(tl_web_##symbol##_gzip)},

/* Their paths are their names. */
static const struct tl_asset files[] = {TL_WEB_FILES(FILE_ROW)};

const struct tl_asset *tl_admin_file_find(const char *path, size_t length)
{
    static const char folder[] = "/assets/", first[] = "index.html";
    const char *name = path;
    size_t n = length;
    if (length == 1 && path[0] == '/') {
        name = first;
        n = sizeof(first) - 1;
    } else if (length > sizeof(folder) - 1 && memcmp(path, folder, sizeof(folder) - 1) == 0) {
        name = path + sizeof(folder) - 1;
        n = length - (sizeof(folder) - 1);
    } else {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strlen(files[i].path) == n && memcmp(files[i].path, name, n) == 0)
            return &files[i];
    return NULL;
}

bool tl_admin_answer_file(struct MHD_Connection *connection, const struct tl_asset *file,
                          enum tl_admin_file_kind kind)
{
    const char *known =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const char *encodings =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    bool ours = kind == TL_ADMIN_FILE_DASHBOARD;
    bool same = ours && known != NULL && strstr(known, file->etag) != NULL;
    bool gzip = ours && !same && encodings != NULL && strstr(encodings, "gzip") != NULL;
    /* The library's signature is not const; PERSISTENT only reads. */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(same   ? 0
                                        : gzip ? file->gzip_length
                                               : file->length,
                                        (void *)(uintptr_t)(gzip ? file->gzip : file->bytes),
                                        ours ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return false;
    const char *cached = ours                         ? "no-cache"
                         : kind == TL_ADMIN_FILE_TEXT ? "no-store"
                                                      : TL_ASSET_CACHE_CONTROL;
    bool complete = add_protection(response, ours ? PAGE_POLICY : TL_ASSET_POLICY) &&
                    add(response, "ETag", ours ? file->etag : NULL) &&
                    add(response, "Cache-Control", cached) &&
                    add(response, "Vary", ours ? "Accept-Encoding" : NULL) &&
                    add(response, "Content-Type", file->type) &&
                    add(response, "Content-Encoding", gzip ? "gzip" : NULL);
    return queue(connection, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response, complete);
}
