/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "common/base/text.h"
#include "common/control/control.h"

/* What the statuses are called here. Their types are documented in
 * docs/integrators/openapi-admin.yaml. */
static const struct {
    int status;
    const char *type, *title;
} kinds[] = {
    {400, "/problems/malformed", "The request is malformed"},
    {401, "/problems/unauthorized", "A token of an operator is required"},
    {403, "/problems/forbidden", "This is not allowed"},
    {404, "/problems/not-found", "Not found"},
    {405, "/problems/method-not-allowed", "Method not allowed"},
    {406, "/problems/not-acceptable", "This call answers in another form"},
    {409, "/problems/conflict", "The present state does not allow this"},
    {412, "/problems/changed", "It was changed meanwhile"},
    {413, "/problems/too-large", "The request body is too large"},
    {415, "/problems/not-json", "The body must be application/json"},
    {422, "/problems/invalid", "A value is invalid"},
    {429, "/problems/limit", "A limit is reached"},
    {500, "/problems/internal", "The server could not do it"},
    {503, "/problems/store", "The store cannot be used now"},
};

enum { DETAIL_MAX = 512, RETRY_AFTER_S = 2 };

void tl_control_answer_clear(struct tl_control_answer *answer)
{
    json_decref(answer->body);
    *answer = (struct tl_control_answer){0};
}

bool tl_control_succeeded(const struct tl_control_answer *answer)
{
    return answer->status >= 200 && answer->status < 300;
}

void tl_control_problem(struct tl_control_answer *answer, int status, const char *format, ...)
{
    char detail[DETAIL_MAX];
    size_t kind = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    while (kind + 1 < sizeof(kinds) / sizeof(kinds[0]) && kinds[kind].status != status)
        kind++;
    tl_control_answer_clear(answer);
    answer->status = status;
    answer->body = json_pack("{s:s, s:s, s:i, s:s}", "type", kinds[kind].type, "title",
                             kinds[kind].title, "status", status, "detail", detail);
    if (status == 503)
        answer->retry_after_s = RETRY_AFTER_S;
}

static int status_of(enum tl_error_kind kind)
{
    switch (kind) {
    case TL_ERR_INVALID:
        return 400;
    case TL_ERR_NOQUEUE:
        return 404;
    case TL_ERR_CONNECT:
    case TL_ERR_TIMEOUT:
    case TL_ERR_LOADING:
    case TL_ERR_READONLY:
    case TL_ERR_MISCONF:
    case TL_ERR_OOM:
        return 503;
    default:
        return 500;
    }
}

void tl_control_problem_of(struct tl_control_answer *answer, const struct tl_error *err)
{
    tl_control_problem(answer, status_of(err->kind), "%s", err->text);
}

json_t *tl_control_read_body(const char *bytes, size_t length, struct tl_error *err)
{
    json_error_t problem;
    if (length > TL_CONTROL_BODY_MAX) {
        tl_error_set(err, TL_ERR_INVALID, "a body of %zu bytes; the limit is %d", length,
                     TL_CONTROL_BODY_MAX);
        return NULL;
    }
    json_t *body = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &problem);
    if (body == NULL) {
        char quoted[JSON_ERROR_TEXT_LENGTH + 2];
        tl_quote(problem.text, quoted, sizeof(quoted));
        tl_error_set(err, TL_ERR_INVALID, "the body is no JSON: line %d, column %d: %s",
                     problem.line, problem.column, quoted);
        return NULL;
    }
    if (!json_is_object(body)) {
        json_decref(body);
        tl_error_set(err, TL_ERR_INVALID, "the body must be a JSON object");
        return NULL;
    }
    return body;
}
