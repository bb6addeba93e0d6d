/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/control/control.h"

#include "ctl/calls/calls.h"

struct tl_ctl_call {
    const struct tl_ctl_options *options;
    struct tl_ctl_http *http; /* with --server; else: */
    struct tl_ctl_session session;
};

struct tl_ctl_call *tl_ctl_call_open(const struct tl_ctl_options *options, struct tl_error *err)
{
    struct tl_ctl_call *call = tl_xalloc(1, sizeof(*call));
    call->options = options;
    if (options->server != NULL)
        call->http = tl_ctl_http_new(options->server, options->token_file, err);
    if (options->server != NULL ? call->http == NULL
                                : !tl_ctl_session_prepare(&call->session, options, err))
        tl_ctl_call_close(&call);
    return call;
}

void tl_ctl_call_close(struct tl_ctl_call **call)
{
    if (*call == NULL)
        return;
    tl_ctl_http_free(&(*call)->http);
    tl_ctl_session_close(&(*call)->session);
    free(*call);
    *call = NULL;
}

/* One request; releases the arguments and the body. */
static bool ask_once(struct tl_ctl_call *call, const struct tl_ctl_ask *ask,
                     struct tl_control_answer *answer, struct tl_error *err)
{
    char target[TL_TARGET_MAX];
    struct tl_control_request request = {.if_match = ask->if_match, .actor = &call->session.actor};
    *answer = (struct tl_control_answer){0};
    bool ok = tl_ctl_ask_target(ask->operation, ask->arguments, &request.method, target, err);
    request.target = target;
    bool has_more = json_object_size(ask->arguments) > 0 && strcmp(request.method, "GET") != 0;
    request.body = ask->body == NULL && has_more ? ask->arguments : ask->body;
    if (ok && call->http != NULL)
        ok = tl_ctl_http_ask(call->http, &request, NULL, answer, err);
    else if (ok)
        tl_control_call(call->session.control, &request, answer);
    json_decref(ask->arguments);
    json_decref(ask->body);
    return ok;
}

/* Lists that come in pages; the member of an entry after which the next page begins; and whether
 * all of it is wanted where no limit is asked for. */
static const struct {
    const char *list, *key;
    bool whole;
} lists[] = {{"queues", "queue", true}, {"webhooks", "id", true}, {"tokens", "name", true},
             {"blocks", "id", true},    {"changes", "id", false}, {"visitors", "position", false}};

static json_t *page_size(uint64_t left)
{
    return json_integer(left < TL_CONTROL_PAGE_MAX ? (json_int_t)left : TL_CONTROL_PAGE_MAX);
}

/* Appends the next page to the answer; false: none is wanted, or it did not come, or more is said
 * to come after an empty one (then with err). arguments: those of the first page. */
static bool add_page(struct tl_ctl_call *call, const char *operation, const json_t *arguments,
                     struct tl_control_answer *answer, struct tl_error *err)
{
    struct tl_control_answer page = {0};
    json_t *list = NULL;
    const json_t *last = NULL;
    size_t i = 0;
    for (; last == NULL && i < sizeof(lists) / sizeof(lists[0]); i++) {
        list = json_object_get(answer->body, lists[i].list);
        last = json_array_get(list, json_array_size(list) - 1);
    }
    uint64_t limit = tl_json_count(arguments, "limit"), n = json_array_size(list);
    if (last == NULL || !json_is_true(json_object_get(answer->body, "has_more")) ||
        (limit > 0 ? n >= limit : !lists[i - 1].whole))
        return false;
    const struct tl_ctl_ask ask = {.operation = operation, .arguments = json_deep_copy(arguments)};
    (void)json_object_set_new(ask.arguments, "limit",
                              page_size(limit > 0 ? limit - n : UINT64_MAX));
    (void)json_object_set(ask.arguments, "starting_after", json_object_get(last, lists[i - 1].key));
    bool came = ask_once(call, &ask, &page, err) && tl_control_succeeded(&page) &&
                json_array_extend(list, json_object_get(page.body, lists[i - 1].list)) == 0;
    (void)json_object_set(answer->body, "has_more", json_object_get(page.body, "has_more"));
    bool added = came && json_array_size(list) > n;
    if (!came && err->kind == TL_OK)
        tl_error_set(err, TL_ERR_CONNECT, "a page of the answer did not come");
    else if (came && !added && json_is_true(json_object_get(page.body, "has_more")))
        tl_error_set(err, TL_ERR_CONNECT, "a page of the answer is empty, and is not the last");
    tl_control_answer_clear(&page);
    return added;
}

bool tl_ctl_call_ask(struct tl_ctl_call *call, const struct tl_ctl_ask *ask,
                     struct tl_control_answer *answer, struct tl_error *err)
{
    json_t *arguments = ask->arguments != NULL ? json_deep_copy(ask->arguments) : json_object();
    *err = (struct tl_error){0};
    if (tl_json_count(arguments, "limit") > TL_CONTROL_PAGE_MAX)
        (void)json_object_set_new(ask->arguments, "limit", page_size(UINT64_MAX));
    bool ok = ask_once(call, ask, answer, err);
    while (ok && tl_control_succeeded(answer) &&
           add_page(call, ask->operation, arguments, answer, err)) {
    }
    json_decref(arguments);
    return ok && err->kind == TL_OK;
}

json_t *tl_ctl_call_get(struct tl_ctl_call *call, const struct tl_ctl_ask *ask,
                        struct tl_error *err)
{
    struct tl_control_answer answer;
    json_t *body = NULL;
    if (tl_ctl_call_ask(call, ask, &answer, err)) {
        const char *detail = tl_json_text(answer.body, "detail");
        bool denied = answer.status == 401 || answer.status == 403;
        if (tl_control_succeeded(&answer) && answer.body == NULL)
            tl_error_set(err, TL_ERR_CONNECT, "the answer is empty");
        else if (tl_control_succeeded(&answer))
            body = json_incref(answer.body);
        else
            tl_error_set(err,
                         denied                ? TL_ERR_DENIED
                         : answer.status < 500 ? TL_ERR_INVALID
                                               : TL_ERR_CONNECT,
                         "%s", *detail != '\0' ? detail : "no good answer");
    }
    tl_control_answer_clear(&answer);
    return body;
}

/* ---- what may have been meant ---- */

/* Does this server have the calls of the control room? Visitors' ports answer 404 to all of them.
 */
static bool has_control_room(struct tl_ctl_call *call)
{
    const struct tl_ctl_ask ask = {.operation = "getSession"};
    struct tl_control_answer answer;
    struct tl_error unused;
    if (call->http == NULL)
        return true;
    bool has = !tl_ctl_call_ask(call, &ask, &answer, &unused) || answer.status != 404;
    tl_control_answer_clear(&answer);
    return has;
}

/* After a 404: names the queue that was probably meant, if there is none of this name. */
static void tell_what_is_there(struct tl_ctl_call *call, const char *name)
{
    const struct tl_ctl_ask ask = {.operation = "listQueues"};
    struct tl_error unused;
    size_t i;
    if (!has_control_room(call)) {
        fprintf(stderr,
                "tellerline: %s has no admin API; is it the port of visitors? The admin listener "
                "is another one (admin.worker, port 8081 unless set)\n",
                call->options->server);
        return;
    }
    if (*name == '\0')
        return;
    json_t *queue, *names = json_array(), *answer = tl_ctl_call_get(call, &ask, &unused);
    json_array_foreach(json_object_get(answer, "queues"), i, queue)
    {
        tl_json_add(names, json_string(tl_json_text(queue, "queue")));
    }
    json_decref(answer);
    tl_ctl_propose_queue(name, names);
}

/* ---- what became of it ---- */

static int status_of(int status)
{
    if (status == 401 || status == 403)
        return TL_EXIT_REFUSED;
    return status < 500 ? TL_EXIT_PROBLEM : TL_EXIT_FAILED;
}

int tl_ctl_call_problem(struct tl_ctl_call *call, const char *operation, const char *queue,
                        const struct tl_control_answer *answer)
{
    const char *detail = tl_json_text(answer->body, "detail");
    const json_t *errors = json_object_get(answer->body, "errors");
    bool unchanged = tl_ctl_ask_changes(operation) && answer->status < 500;
    if (*detail == '\0')
        detail = tl_json_text(answer->body, "title");
    if (*detail != '\0')
        fprintf(stderr, "tellerline: %s%s\n", detail, unchanged ? "; nothing was changed" : "");
    else
        fprintf(stderr, "tellerline: the server answers with status %d\n", answer->status);
    /* The other settings that are refused; the first one is the detail. */
    for (size_t i = 1; i < json_array_size(errors); i++)
        fprintf(stderr, "tellerline: %s\n", tl_json_text(json_array_get(errors, i), "detail"));
    if (answer->status == 404)
        tell_what_is_there(call, queue);
    if (call->options->output != TL_OUTPUT_TABLE && answer->body != NULL)
        tl_data_write(call->options->output, json_incref(answer->body));
    return status_of(answer->status);
}

int tl_ctl_call_body(struct tl_ctl_call *call, const struct tl_ctl_ask *ask, json_t **body)
{
    struct tl_error err = {0};
    struct tl_control_answer answer;
    char queue[TL_QUEUE_NAME_MAX + 1];
    int status = TL_EXIT_OK;
    *body = NULL;
    snprintf(queue, sizeof(queue), "%s", tl_json_text(ask->arguments, "queue"));
    if (!tl_ctl_call_ask(call, ask, &answer, &err)) {
        status = tl_ctl_fail(tl_ctl_status_of(&err), &err);
    } else if (!tl_control_succeeded(&answer)) {
        status = tl_ctl_call_problem(call, ask->operation, queue, &answer);
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
    if (call != NULL) {
        int status = tl_ctl_call_body(call, ask, body);
        tl_ctl_call_close(&call);
        return status;
    }
    json_decref(ask->arguments);
    json_decref(ask->body);
    return tl_ctl_fail(TL_EXIT_FAILED, &err);
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
    char target[TL_TARGET_MAX];
    struct tl_control_request request = {.target = target, .actor = &call->session.actor};
    *answer = (struct tl_control_answer){0};
    bool ok = tl_ctl_ask_target(ask->operation, ask->arguments, &request.method, target, err);
    json_decref(ask->arguments);
    if (!ok || call->http != NULL)
        return ok && tl_ctl_http_ask(call->http, &request, stream, answer, err);
    struct tl_control_export *export =
        tl_control_export_begin(call->session.control, &request, answer);
    if (export == NULL)
        return true;
    answer->status = 200;
    ok = copy(export, stream, err);
    tl_control_export_end(&export);
    return ok;
}
