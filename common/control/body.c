/* SPDX-License-Identifier: Apache-2.0 */
#include "common/control/body.h"
#include "common/base/text.h"

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
