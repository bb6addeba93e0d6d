/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/spelling.h"
#include "common/control/control.h"

#include "ctl/calls/calls.h"

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
    tl_actor_of_user(&call->actor, call->config->retention.changes_entries);
    call->control = tl_control_new(call->config, url, err);
    return call->control != NULL;
}

struct tl_ctl_call *tl_ctl_call_open(const struct tl_ctl_options *options, struct tl_error *err)
{
    struct tl_ctl_call *call = tl_xalloc(1, sizeof(*call));
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

/* ---- what is asked ---- */

/* It cannot be asked. */
static void spoil(struct tl_ctl_ask *ask, const char *name)
{
    if (ask->method != NULL)
        fprintf(stderr, "tellerline: %s\n", name);
    json_decref(ask->body);
    ask->method = NULL;
    ask->body = NULL;
}

struct tl_ctl_ask tl_ctl_ask(const char *method, json_t *body, const char *path, ...)
{
    struct tl_ctl_ask ask = {.method = method, .body = body};
    size_t length = (size_t)snprintf(ask.target, sizeof(ask.target), "/v1/admin");
    bool ok = true;
    va_list parts;
    va_start(parts, path);
    for (const char *at = path; ok && *at != '\0'; at += *at == '%' ? 2 : 1) {
        if (*at == '%') {
            const char *part = va_arg(parts, const char *);
            ok = part[0] != '\0';
            length += tl_percent_encode(part, ask.target + length, sizeof(ask.target) - length);
        } else {
            ask.target[length++] = *at;
        }
        ok = ok && length + 1 < sizeof(ask.target);
    }
    va_end(parts);
    if (!ok)
        spoil(&ask, "a name is empty or too long");
    return ask;
}

void tl_ctl_ask_query(struct tl_ctl_ask *ask, const char *name, const char *value)
{
    const size_t size = sizeof(ask->target);
    size_t length = strlen(ask->target);
    if (value == NULL || ask->method == NULL)
        return;
    length += (size_t)snprintf(ask->target + length, size - length,
                               "%c%s=", strchr(ask->target, '?') != NULL ? '&' : '?', name);
    if (length < size)
        length += tl_percent_encode(value, ask->target + length, size - length);
    if (length >= size) {
        char problem[64];
        snprintf(problem, sizeof(problem), "%s: too long", name);
        spoil(ask, problem);
    }
}

bool tl_ctl_call_ask(struct tl_ctl_call *call, struct tl_ctl_ask *ask,
                     struct tl_control_answer *answer, struct tl_error *err)
{
    *answer = (struct tl_control_answer){0};
    bool ok = true;
    const struct tl_control_request request = {.method = ask->method,
                                               .target = ask->target,
                                               .body = ask->body,
                                               .if_match = ask->if_match,
                                               .actor = &call->actor};
    if (call->http != NULL)
        ok = tl_ctl_http_ask(call->http, &request, NULL, answer, err);
    else
        tl_control_call(call->control, &request, answer);
    json_decref(ask->body);
    ask->body = NULL;
    return ok;
}

/* ---- what became of it ---- */

static int status_of(int status)
{
    if (status == 401 || status == 403)
        return TL_EXIT_REFUSED;
    return status < 500 ? TL_EXIT_PROBLEM : TL_EXIT_FAILED;
}

int tl_ctl_call_problem(const struct tl_ctl_options *options,
                        const struct tl_control_answer *answer, bool changes)
{
    const char *detail = tl_json_text(answer->body, "detail");
    const json_t *errors = json_object_get(answer->body, "errors");
    bool unchanged = changes && answer->status < 500;
    if (*detail == '\0')
        detail = tl_json_text(answer->body, "title");
    if (*detail != '\0')
        fprintf(stderr, "tellerline: %s%s\n", detail, unchanged ? "; nothing was changed" : "");
    else
        fprintf(stderr, "tellerline: the server answers with status %d\n", answer->status);
    /* The other settings that are refused; the first one is the detail. */
    for (size_t i = 1; i < json_array_size(errors); i++)
        fprintf(stderr, "tellerline: %s\n", tl_json_text(json_array_get(errors, i), "detail"));
    if (options->output != TL_OUTPUT_TABLE && answer->body != NULL)
        tl_data_write(options->output, json_incref(answer->body));
    return status_of(answer->status);
}

/* ---- what may have been meant ---- */

/* Does this server have the calls of the control room? Visitors' ports answer 404 to all of them.
 */
static bool has_control_room(struct tl_ctl_call *call)
{
    struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/session");
    struct tl_control_answer answer;
    struct tl_error unused;
    if (call->http == NULL)
        return true;
    bool has = !tl_ctl_call_ask(call, &ask, &answer, &unused) || answer.status != 404;
    tl_control_answer_clear(&answer);
    return has;
}

/* Names the queue that was probably meant, if there is none of this name. */
static void tell_queue(struct tl_ctl_call *call, const char *name)
{
    struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/queues");
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

/* After a 404. named: the queue that the body named, or "". */
static void tell_what_is_there(struct tl_ctl_call *call, const char *target, const char *named)
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
    if (strncmp(target, queues, strlen(queues)) == 0)
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(target + strlen(queues), "/?"),
                 target + strlen(queues));
    else
        snprintf(name, sizeof(name), "%s", named);
    if (name[0] != '\0')
        tell_queue(call, name);
}

/* The list of an answer, borrowed, and the key of its last entry; NULL: it has none that pages go
 * on after. */
static json_t *list_of(const json_t *body, const char **key)
{
    static const struct {
        const char *list, *key;
    } lists[] = {{"queues", "queue"}, {"webhooks", "id"}, {"tokens", "name"}, {"blocks", "id"}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        json_t *list = json_object_get(body, lists[i].list);
        const json_t *last = json_array_get(list, json_array_size(list) - 1);
        *key = tl_json_text(last, lists[i].key);
        if (**key != '\0')
            return list;
    }
    return NULL;
}

static int ask_body(struct tl_ctl_call *call, struct tl_ctl_ask *ask, json_t **body)
{
    struct tl_error err = {0};
    struct tl_control_answer answer;
    char named[TL_QUEUE_NAME_MAX + 1];
    int status = TL_EXIT_OK;
    *body = NULL;
    if (ask->method == NULL)
        return TL_EXIT_PROBLEM;
    snprintf(named, sizeof(named), "%s", tl_json_text(ask->body, "queue"));
    if (!tl_ctl_call_ask(call, ask, &answer, &err)) {
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    } else if (!tl_control_succeeded(&answer)) {
        status = tl_ctl_call_problem(call->options, &answer, strcmp(ask->method, "GET") != 0);
        if (answer.status == 404)
            tell_what_is_there(call, ask->target, named);
    } else {
        *body = answer.body != NULL ? json_incref(answer.body) : json_object();
    }
    tl_control_answer_clear(&answer);
    return status;
}

int tl_ctl_call_body(struct tl_ctl_call *call, struct tl_ctl_ask *ask, json_t **body)
{
    const char *key;
    json_t *all, *list;
    int status = ask_body(call, ask, body);
    bool has_limit = ask->method != NULL && strstr(ask->target, "limit=") != NULL;
    while (status == TL_EXIT_OK && !has_limit && (all = list_of(*body, &key)) != NULL &&
           json_is_true(json_object_get(*body, "has_more"))) {
        json_t *page = NULL;
        struct tl_ctl_ask next = *ask;
        tl_ctl_ask_query(&next, "limit", "1000");
        tl_ctl_ask_query(&next, "starting_after", key);
        status = ask_body(call, &next, &page);
        list = list_of(page, &key);
        if (list == NULL || json_array_extend(all, list) != 0 ||
            json_object_set(*body, "has_more", json_object_get(page, "has_more")) != 0)
            (void)json_object_set_new(*body, "has_more", json_false());
        json_decref(page);
    }
    if (status != TL_EXIT_OK) {
        json_decref(*body);
        *body = NULL;
    }
    return status;
}

int tl_ctl_call_once(const struct tl_ctl_options *options, struct tl_ctl_ask *ask, json_t **body)
{
    struct tl_error err = {0};
    struct tl_ctl_call *call = ask->method != NULL ? tl_ctl_call_open(options, &err) : NULL;
    *body = NULL;
    if (call != NULL) {
        int status = tl_ctl_call_body(call, ask, body);
        tl_ctl_call_close(&call);
        return status;
    }
    json_decref(ask->body);
    return ask->method != NULL ? tl_ctl_fail(TL_EXIT_FAILED, &err) : TL_EXIT_PROBLEM;
}

int tl_ctl_tell(const struct tl_ctl_options *options, json_t *answer, const char *format, ...)
{
    va_list arguments;
    if (options->output != TL_OUTPUT_TABLE) {
        tl_data_write(options->output, answer);
        return TL_EXIT_OK;
    }
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    json_decref(answer);
    return TL_EXIT_OK;
}

int tl_ctl_show(const struct tl_ctl_options *options, struct tl_ctl_ask *ask,
                void (*write_answer)(const json_t *answer))
{
    json_t *answer;
    int status = tl_ctl_call_once(options, ask, &answer);
    if (status == TL_EXIT_OK && options->output != TL_OUTPUT_TABLE)
        tl_data_write(options->output, json_incref(answer));
    else if (status == TL_EXIT_OK)
        write_answer(answer);
    json_decref(answer);
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

bool tl_ctl_call_stream(struct tl_ctl_call *call, const struct tl_ctl_ask *ask,
                        const struct tl_ctl_stream *stream, struct tl_control_answer *answer,
                        struct tl_error *err)
{
    *answer = (struct tl_control_answer){0};
    const struct tl_control_request request = {
        .method = ask->method, .target = ask->target, .actor = &call->actor};
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
