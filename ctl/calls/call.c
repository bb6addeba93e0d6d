/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/words.h"
#include "common/control/control.h"
#include "common/control/export.h"

#include "ctl/calls/call.h"
#include "ctl/calls/call_http.h"
#include "ctl/shell/json.h"
#include "ctl/shell/session.h"

struct tl_ctl_call {
    const struct tl_ctl_options *options;
    struct tl_ctl_http *http; /* with --server; else: */
    const struct tl_config *config;
    struct tl_control *control;
    struct tl_actor actor;
};

static bool open_control(struct tl_ctl_call *call, struct tl_error *err)
{
    char url[TL_CTL_URL_MAX];
    call->config = tl_config_load(call->options->config, err);
    if (call->config == NULL || !tl_ctl_redis_url(call->config, call->options, url, err))
        return false;
    tl_actor_of_user(&call->actor, call->config->redis.changes_length);
    call->control = tl_control_new(call->config, url, err);
    return call->control != NULL;
}

struct tl_ctl_call *tl_ctl_call_open(const struct tl_ctl_options *options, struct tl_error *err)
{
    struct tl_ctl_call *call = calloc(1, sizeof(*call));
    if (call == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a call");
        return NULL;
    }
    call->options = options;
    if (options->server != NULL)
        call->http = tl_ctl_http_new(options->server, options->token_file, err);
    if (options->server != NULL ? call->http == NULL : !open_control(call, err))
        tl_ctl_call_close(&call);
    return call;
}

void tl_ctl_call_close(struct tl_ctl_call **call)
{
    if (*call == NULL)
        return;
    tl_ctl_http_free(&(*call)->http);
    tl_control_free(&(*call)->control);
    tl_config_free(&(*call)->config);
    free(*call);
    *call = NULL;
}

bool tl_ctl_call_ask(struct tl_ctl_call *call, const struct tl_ctl_ask *ask,
                     struct tl_control_answer *answer, struct tl_error *err)
{
    *answer = (struct tl_control_answer){0};
    const struct tl_control_request request = {.method = ask->method,
                                               .target = ask->target,
                                               .body = ask->body,
                                               .if_match = ask->if_match,
                                               .actor = &call->actor};
    if (call->http != NULL)
        return tl_ctl_http_ask(call->http, &request, NULL, answer, err);
    tl_control_call(call->control, &request, answer);
    return true;
}

/* ---- what became of it ---- */

static int status_of(int status)
{
    if (status == 401 || status == 403)
        return TL_EXIT_REFUSED;
    return status < 500 ? TL_EXIT_PROBLEM : TL_EXIT_FAILED;
}

/* The other settings that are refused; the first one is the detail. */
static void tell_errors(const json_t *errors)
{
    size_t i;
    json_t *error;
    json_array_foreach(errors, i, error)
    {
        if (i > 0)
            fprintf(stderr, "tellerline: %s\n", tl_json_text(error, "detail"));
    }
}

int tl_ctl_call_problem(const struct tl_ctl_options *options,
                        const struct tl_control_answer *answer, bool changes)
{
    const char *detail = tl_json_text(answer->body, "detail");
    bool unchanged = changes && answer->status < 500;
    if (*detail == '\0')
        detail = tl_json_text(answer->body, "title");
    if (*detail != '\0')
        fprintf(stderr, "tellerline: %s%s\n", detail, unchanged ? "; nothing was changed" : "");
    else
        fprintf(stderr, "tellerline: the server answers with status %d\n", answer->status);
    tell_errors(json_object_get(answer->body, "errors"));
    if (options->json && answer->body != NULL)
        (void)tl_json_write(json_incref(answer->body)); /* the exit status says that it failed */
    return status_of(answer->status);
}

/* ---- what may have been meant ---- */

/* Does this server have the calls of the control room? Visitors' ports answer 404 to all of them.
 */
static bool has_control_room(struct tl_ctl_call *call)
{
    const struct tl_ctl_ask ask = {.method = "GET", .target = "/v1/admin/session"};
    struct tl_control_answer answer;
    struct tl_error unused;
    bool has = call->http == NULL || !tl_ctl_call_ask(call, &ask, &answer, &unused) ||
               answer.status != 404;
    if (call->http != NULL)
        tl_control_answer_clear(&answer);
    return has;
}

/* Names the queue that was probably meant, if there is none of this name. */
static void tell_queue(struct tl_ctl_call *call, const char *name)
{
    const struct tl_ctl_ask ask = {.method = "GET", .target = "/v1/admin/queues"};
    struct tl_control_answer answer;
    struct tl_error unused;
    char best[TL_QUEUE_NAME_MAX + 1] = "";
    size_t i, steps = SIZE_MAX;
    json_t *queue;
    bool ok = tl_ctl_call_ask(call, &ask, &answer, &unused) && tl_control_succeeded(&answer);
    json_array_foreach(json_object_get(ok ? answer.body : NULL, "queues"), i, queue)
    {
        const char *other = tl_json_text(queue, "queue");
        if (strcmp(other, name) == 0)
            steps = 0;
        if (tl_spelling_closer(name, other, &steps))
            snprintf(best, sizeof(best), "%s", other);
    }
    tl_control_answer_clear(&answer);
    if (steps > 0 && best[0] != '\0')
        fprintf(stderr, "tellerline: did you mean queue \"%s\"?\n", best);
}

/* After a 404. */
static void tell_what_is_there(struct tl_ctl_call *call, const struct tl_ctl_ask *ask)
{
    static const char queues[] = "/v1/admin/queues/";
    char name[TL_QUEUE_NAME_MAX + 1] = "";
    if (!has_control_room(call)) {
        fprintf(stderr,
                "tellerline: %s has no admin API; is it the port of visitors? The admin listener "
                "is another one (admin.worker, port 8081 unless set)\n",
                call->options->server);
        return;
    }
    if (strncmp(ask->target, queues, strlen(queues)) == 0)
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(ask->target + strlen(queues), "/?"),
                 ask->target + strlen(queues));
    else
        snprintf(name, sizeof(name), "%s", tl_json_text(ask->body, "queue"));
    if (name[0] != '\0')
        tell_queue(call, name);
}

int tl_ctl_call_body(struct tl_ctl_call *call, const struct tl_ctl_ask *ask, json_t **body)
{
    struct tl_error err = {0};
    struct tl_control_answer answer;
    int status = TL_EXIT_OK;
    *body = NULL;
    if (ask->sends && ask->body == NULL) { /* without one it would be another request */
        fputs("tellerline: no memory for the request\n", stderr);
        return TL_EXIT_FAILED;
    }
    if (!tl_ctl_call_ask(call, ask, &answer, &err)) {
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    } else if (!tl_control_succeeded(&answer)) {
        status = tl_ctl_call_problem(call->options, &answer, strcmp(ask->method, "GET") != 0);
        if (answer.status == 404)
            tell_what_is_there(call, ask);
    } else {
        *body = answer.body != NULL ? json_incref(answer.body) : json_object();
    }
    tl_control_answer_clear(&answer);
    return status;
}

int tl_ctl_call_once(const struct tl_ctl_options *options, const struct tl_ctl_ask *ask,
                     json_t **body)
{
    struct tl_error err = {0};
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    *body = NULL;
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    int status = tl_ctl_call_body(call, ask, body);
    tl_ctl_call_close(&call);
    return status;
}

/* ---- streams ---- */

static bool copy(struct tl_control_export *export, const struct tl_ctl_stream *stream,
                 struct tl_error *err)
{
    const char *bytes;
    size_t length = 0;
    stream->expected(stream->context, tl_control_export_total(export));
    do {
        if (!tl_control_export_next(export, &bytes, &length, err) ||
            !stream->sink(stream->context, bytes, length, err))
            return false;
    } while (length > 0);
    return true;
}

bool tl_ctl_call_stream(struct tl_ctl_call *call, const struct tl_ctl_stream *stream,
                        struct tl_control_answer *answer, struct tl_error *err)
{
    *answer = (struct tl_control_answer){0};
    const struct tl_control_request request = {
        .method = "GET", .target = stream->target, .actor = &call->actor};
    if (call->http != NULL)
        return tl_ctl_http_ask(call->http, &request, stream, answer, err);
    struct tl_control_export *export = tl_control_export_begin(call->control, &request, answer);
    if (export == NULL)
        return true;
    answer->status = 200;
    bool ok = copy(export, stream, err);
    tl_control_export_end(&export);
    return ok;
}

/* ---- paths ---- */

bool tl_ctl_target(char target[TL_CTL_TARGET_MAX], const char *first, ...)
{
    size_t length = (size_t)snprintf(target, TL_CTL_TARGET_MAX, "/v1/admin");
    va_list parts;
    bool ok = true;
    va_start(parts, first);
    for (const char *part = first; ok && part != NULL; part = va_arg(parts, const char *)) {
        ok = part[0] != '\0' && length + 1 < TL_CTL_TARGET_MAX;
        if (ok)
            target[length++] = '/';
        if (ok)
            length += tl_percent_encode(part, target + length, TL_CTL_TARGET_MAX - length);
        ok = ok && length < TL_CTL_TARGET_MAX;
    }
    va_end(parts);
    if (!ok)
        fputs("tellerline: a name is empty or too long\n", stderr);
    return ok;
}

bool tl_ctl_target_add(char target[TL_CTL_TARGET_MAX], const char *name, const char *value)
{
    size_t length = strlen(target);
    if (value == NULL)
        return true;
    int n = snprintf(target + length, TL_CTL_TARGET_MAX - length,
                     "%c%s=", strchr(target, '?') != NULL ? '&' : '?', name);
    length += n > 0 ? (size_t)n : TL_CTL_TARGET_MAX;
    bool ok = length < TL_CTL_TARGET_MAX &&
              tl_percent_encode(value, target + length, TL_CTL_TARGET_MAX - length) <
                  TL_CTL_TARGET_MAX - length;
    if (!ok)
        fprintf(stderr, "tellerline: %s: too long\n", name);
    return ok;
}
