/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/secret_file.h"
#include "common/base/origin.h"
#include "common/base/text.h"
#include "common/client/http.h"
#include "common/config/checks.h"

#include "ctl/calls/calls.h"

enum {
    STALLED_S = 60,        /* a stream without a byte for this long has broken off */
    ANSWER_MAX = 32 << 20, /* bytes */
    TOKEN_MAX = 1000,
};
#define TOKEN_VARIABLE "TELLERLINE_TOKEN"

struct tl_ctl_http {
    struct tl_http *http;
    char server[TL_ADDRESS_MAX];
    char token[TOKEN_MAX];
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
    int length = snprintf(http->token, sizeof(http->token), "%s", token);
    if (token[0] == '\0' || token[strcspn(token, "\r\n\t ")] != '\0' ||
        (size_t)length >= sizeof(http->token))
        return tl_error_set(err, TL_ERR_INVALID,
                            "that is no token; `tellerline token create` makes one");
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
    else if (read_token(http, token_file, err))
        http->http = tl_http_new(http->server, -1, err);
    if (http->http == NULL)
        tl_ctl_http_free(&http);
    else
        warn_of_plain(http->server);
    return http;
}

void tl_ctl_http_free(struct tl_ctl_http **http)
{
    if (*http == NULL)
        return;
    tl_http_free(&(*http)->http);
    sodium_memzero((*http)->token, sizeof((*http)->token));
    free(*http);
    *http = NULL;
}

/* ---- a call ---- */

/* An answer on its way. */
struct incoming {
    const struct tl_ctl_http *http;
    const struct tl_ctl_stream *stream;
    struct tl_control_answer *answer;
    struct tl_error *err;
    bool ok;
};

static bool take(void *context, const char *bytes, size_t length)
{
    struct incoming *incoming = context;
    const struct tl_ctl_stream *stream = incoming->stream;
    return length == 0 || stream->sink(stream->context, bytes, length, incoming->err);
}

/* A proxy's refusal may be no JSON. */
static void answered(void *context, const struct tl_http_answer *answer)
{
    struct incoming *incoming = context;
    incoming->ok = answer->problem[0] == '\0';
    if (!incoming->ok && incoming->err->kind == TL_OK) /* else it was the sink */
        tl_error_set(incoming->err, TL_ERR_CONNECT, "%s: %s", incoming->http->server,
                     answer->problem);
    if (!incoming->ok)
        return;
    incoming->answer->status = (int)answer->status;
    snprintf(incoming->answer->etag, sizeof(incoming->answer->etag), "%s", answer->etag);
    if (answer->length == 0)
        return;
    incoming->answer->body = json_loadb(answer->body, answer->length, 0, NULL);
    if (incoming->answer->body == NULL && tl_control_succeeded(incoming->answer))
        incoming->ok = tl_error_set(incoming->err, TL_ERR_CONNECT,
                                    "%s answers %d without JSON: is it the admin listener?",
                                    incoming->http->server, incoming->answer->status);
}

bool tl_ctl_http_ask(struct tl_ctl_http *http, const struct tl_control_request *request,
                     const struct tl_ctl_stream *stream, struct tl_control_answer *answer,
                     struct tl_error *err)
{
    struct incoming incoming = {.http = http, .stream = stream, .answer = answer, .err = err};
    char *body = request->body != NULL ? json_dumps(request->body, JSON_COMPACT) : NULL;
    const struct tl_http_call call = {.method = request->method,
                                      .path = request->target,
                                      .bearer = http->token,
                                      .if_match = request->if_match,
                                      .body = body,
                                      .answer_max = ANSWER_MAX,
                                      .proxy = !tl_url_is_local(http->server),
                                      .bytes = stream != NULL ? take : NULL,
                                      .stalled_s = stream != NULL ? STALLED_S : 0,
                                      .done = answered,
                                      .context = &incoming};
    *err = (struct tl_error){0};
    bool ok = tl_http_ask(http->http, &call, err) && incoming.ok;
    free(body);
    return ok;
}
