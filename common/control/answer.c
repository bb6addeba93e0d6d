/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "common/base/text.h"
#include "common/control/control.h"
#include "common/store/troubles.h"

enum { DETAIL_MAX = 512 };

void tl_control_answer_clear(struct tl_control_answer *answer)
{
    json_decref(answer->body);
    *answer = (struct tl_control_answer){0};
}

bool tl_control_succeeded(const struct tl_control_answer *answer)
{
    return answer->status >= 200 && answer->status < 300;
}

void *tl_control_problem(struct tl_control_answer *answer, enum tl_refusal_kind kind,
                         const char *format, ...)
{
    const struct tl_refusal_row *row = tl_refusal_row(kind);
    char detail[DETAIL_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    tl_control_answer_clear(answer);
    answer->status = (int)row->status;
    answer->body =
        json_pack("{s:o, s:s, s:i, s:s}", "type", json_sprintf(TL_REFUSAL_PATH "%s", row->name),
                  "title", row->title, "status", answer->status, "detail", detail);
    answer->retry_after_s = (int)row->retry_after_s;
    return NULL;
}

void *tl_control_problem_of(struct tl_control_answer *answer, const struct tl_error *err)
{
    enum tl_refusal_kind kind = err->kind == TL_ERR_INVALID   ? TL_REFUSAL_INVALID
                                : err->kind == TL_ERR_NOQUEUE ? TL_REFUSAL_NO_QUEUE
                                : tl_error_is_of_store(err)   ? TL_REFUSAL_STORE
                                                              : TL_REFUSAL_INTERNAL;
    return tl_control_problem(answer, kind, "%s", err->text);
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
