/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <sodium.h>

#include "common/auth/secret_file.h"
#include "common/base/origin.h"
#include "common/base/text.h"
#include "common/config/checks.h"

#include "ctl/calls/calls.h"

enum {
    CONNECT_TIMEOUT_MS = 5000,
    TIMEOUT_MS = 60000,       /* of an answer */
    STALLED_S = 60,           /* a stream without a byte for so long has broken off */
    ANSWER_MAX = 32 << 20,    /* bytes */
    AUTHORIZATION_MAX = 1024, /* bytes of a value */
};
#define TOKEN_VARIABLE "TELLERLINE_TOKEN"

struct tl_ctl_http {
    CURL *easy;
    char server[TL_ADDRESS_MAX];
    char authorization[AUTHORIZATION_MAX];
    char problem[CURL_ERROR_SIZE];
};

/* An answer on its way. */
struct incoming {
    struct tl_ctl_http *http;
    const struct tl_ctl_stream *stream;
    struct tl_control_answer *answer;
    char *bytes; /* of an answer that is no stream */
    size_t length;
    size_t capacity;
    struct tl_error err; /* of the sink, or of the size */
};

/* ---- server and token ---- */

/* Without TLS, an eavesdropper reads the token. */
static void warn_of_plain(const char *server)
{
    struct tl_origin origin;
    if (!tl_origin_parse(server, &origin) || origin.secure)
        return;
    bool is_local = strncmp(origin.host, "127.", 4) == 0 || strncmp(origin.host, "[::1]", 5) == 0 ||
                    strncmp(origin.host, "localhost", origin.host_length) == 0;
    if (!is_local)
        fputs("tellerline: warning: the token goes to --server without TLS; use https\n", stderr);
}

static bool set_token(struct tl_ctl_http *http, const char *token, struct tl_error *err)
{
    int length = snprintf(http->authorization, sizeof(http->authorization), "Bearer %s", token);
    if (token[0] == '\0' || token[strcspn(token, "\r\n\t ")] != '\0' ||
        (size_t)length >= sizeof(http->authorization))
        return tl_error_set(err, TL_ERR_INVALID,
                            "that is no token; `tellerline token make` makes one");
    return true;
}

static bool read_token(struct tl_ctl_http *http, const char *path, struct tl_error *err)
{
    size_t length;
    if (path == NULL) {
        const char *token = getenv(TOKEN_VARIABLE);
        return token != NULL ? set_token(http, token, err)
                             : tl_error_set(err, TL_ERR_INVALID,
                                            "--server needs a token, in " TOKEN_VARIABLE
                                            " or with --token-file");
    }
    char *bytes = tl_secret_read(path, &length, NULL, err);
    if (bytes == NULL)
        return false;
    char *rest = bytes, *line = bytes;
    bool ok = set_token(http, tl_secret_line(&rest, &line, NULL) ? line : "", err);
    tl_secret_free(&bytes, length);
    return ok;
}

struct tl_ctl_http *tl_ctl_http_new(const char *server, const char *token_file,
                                    struct tl_error *err)
{
    struct tl_ctl_http *http = tl_xalloc(1, sizeof(*http));
    size_t length = strlen(server);
    char quoted[96];
    while (length > 0 && server[length - 1] == '/')
        length--;
    bool fits = length < sizeof(http->server);
    if (fits)
        snprintf(http->server, sizeof(http->server), "%.*s", (int)length, server);
    tl_quote(server, quoted, sizeof(quoted));
    if (!fits || strchr(http->server, ' ') != NULL || !tl_origins_valid(http->server, NULL))
        tl_error_set(err, TL_ERR_INVALID,
                     "--server: %s is not an address such as https://control.example", quoted);
    else if (read_token(http, token_file, err) && (http->easy = curl_easy_init()) == NULL)
        tl_no_memory();
    if (http->easy == NULL)
        tl_ctl_http_free(&http);
    else
        warn_of_plain(http->server);
    return http;
}

void tl_ctl_http_free(struct tl_ctl_http **http)
{
    if (*http == NULL)
        return;
    curl_easy_cleanup((*http)->easy);
    sodium_memzero((*http)->authorization, sizeof((*http)->authorization));
    free(*http);
    *http = NULL;
}

/* ---- a call ---- */

static bool is_good(const struct incoming *incoming)
{
    long status = 0;
    return curl_easy_getinfo(incoming->http->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
           status >= 200 && status < 300;
}

static size_t take(char *bytes, size_t size, size_t n, void *context)
{
    struct incoming *incoming = context;
    size_t length = size * n;
    if (incoming->stream != NULL && is_good(incoming)) {
        const struct tl_ctl_stream *stream = incoming->stream;
        incoming->length += length;
        return length == 0 || stream->sink(stream->context, bytes, length, &incoming->err) ? length
                                                                                           : 0;
    }
    if (incoming->length + length > ANSWER_MAX) {
        tl_error_set(&incoming->err, TL_ERR_PROTOCOL, "the answer of the server is too large");
        return 0;
    }
    incoming->bytes =
        tl_xgrow(incoming->bytes, &incoming->capacity, incoming->length + length + 1, 1);
    memcpy(incoming->bytes + incoming->length, bytes, length);
    incoming->length += length;
    return length;
}

static size_t take_header(char *line, size_t size, size_t n, void *context)
{
    static const char name[] = "etag:";
    struct incoming *incoming = context;
    size_t length = size * n;
    if (length > strlen(name) && strncasecmp(line, name, strlen(name)) == 0) {
        const char *value = line + strlen(name);
        size_t rest = length - strlen(name);
        while (rest > 0 && *value == ' ') {
            value++;
            rest--;
        }
        while (rest > 0 && (value[rest - 1] == '\r' || value[rest - 1] == '\n'))
            rest--;
        if (rest < sizeof(incoming->answer->etag))
            snprintf(incoming->answer->etag, sizeof(incoming->answer->etag), "%.*s", (int)rest,
                     value);
    }
    return length;
}

static void add_header(struct curl_slist **list, const char *name, const char *value)
{
    char line[AUTHORIZATION_MAX + 32];
    snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer == NULL)
        tl_no_memory();
    *list = longer;
}

/* Sets the request up. A body is sent with any method. */
static bool prepare(CURL *easy, struct incoming *incoming, const struct tl_control_request *request,
                    const char *url, const char *body)
{
    bool streams = incoming->stream != NULL;
    curl_easy_reset(easy);
    bool ok =
        curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
        (!tl_url_is_local(url) || curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK) &&
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_USERAGENT, "tellerline/" TELLERLINE_VERSION) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, incoming->http->problem) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, incoming) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, incoming) == CURLE_OK;
    if (ok && streams)
        ok = curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)STALLED_S) == CURLE_OK;
    else if (ok)
        ok = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS) == CURLE_OK;
    if (ok && body != NULL)
        ok = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body) == CURLE_OK;
    else if (ok && strcmp(request->method, "POST") == 0)
        ok = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "") == CURLE_OK;
    return ok && curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
}

/* The answer from its bytes; a proxy's may be no JSON. */
static void read_answer(struct incoming *incoming)
{
    long status = 0;
    struct tl_control_answer *answer = incoming->answer;
    if (curl_easy_getinfo(incoming->http->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK)
        answer->status = (int)status;
    if (incoming->bytes != NULL)
        answer->body = json_loadb(incoming->bytes, incoming->length, 0, NULL);
}

bool tl_ctl_http_ask(struct tl_ctl_http *http, const struct tl_control_request *request,
                     const struct tl_ctl_stream *stream, struct tl_control_answer *answer,
                     struct tl_error *err)
{
    struct incoming incoming = {.http = http, .stream = stream, .answer = answer};
    char url[TL_ADDRESS_MAX + TL_CTL_TARGET_MAX];
    char *body = request->body != NULL ? json_dumps(request->body, JSON_COMPACT) : NULL;
    struct curl_slist *headers = NULL;
    add_header(&headers, "Authorization", http->authorization);
    if (body != NULL)
        add_header(&headers, "Content-Type", "application/json");
    if (request->if_match != NULL)
        add_header(&headers, "If-Match", request->if_match);
    snprintf(url, sizeof(url), "%s%s", http->server, request->target);
    http->problem[0] = '\0';
    if (!prepare(http->easy, &incoming, request, url, body) ||
        curl_easy_setopt(http->easy, CURLOPT_HTTPHEADER, headers) != CURLE_OK)
        tl_no_memory();
    CURLcode code = curl_easy_perform(http->easy);
    if (code != CURLE_OK && incoming.err.kind != TL_OK)
        *err = incoming.err;
    else if (code != CURLE_OK)
        tl_error_set(err, TL_ERR_CONNECT, "%s: %s", http->server,
                     http->problem[0] != '\0' ? http->problem : curl_easy_strerror(code));
    if (code == CURLE_OK)
        read_answer(&incoming);
    free(incoming.bytes);
    free(body);
    curl_slist_free_all(headers);
    return code == CURLE_OK;
}
