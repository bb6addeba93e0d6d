/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "common/control/call.h"

enum { QUOTED_MAX = 96 };

struct tl_redis *tl_call_connect(struct tl_control *control, const char *queue,
                                 struct tl_error *err)
{
    if (!tl_store_connect(control->store, err))
        return NULL;
    return queue != NULL ? tl_store_of(control->store, queue) : tl_store_common(control->store);
}

bool tl_call_keys(const struct tl_control *control, const char *queue, struct tl_keys *keys,
                  struct tl_error *err)
{
    return tl_keys_of(keys, control->config->redis.key_prefix, queue, err);
}

void tl_call_answer(struct tl_control_call *call, int status, json_t *body)
{
    if (body == NULL) {
        tl_call_refuse(call, 500, "no memory for the answer");
        return;
    }
    json_decref(call->answer->body);
    call->answer->status = status;
    call->answer->body = body;
}

bool tl_call_fail(struct tl_control_call *call, const struct tl_error *err)
{
    tl_control_problem_of(call->answer, err);
    return false;
}

bool tl_call_refuse(struct tl_control_call *call, int status, const char *format, ...)
{
    char detail[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    tl_control_problem(call->answer, status, "%s", detail);
    return false;
}

static bool is_one_of(const char *name, const char *first, va_list names)
{
    for (const char *each = first; each != NULL; each = va_arg(names, const char *))
        if (strcmp(name, each) == 0)
            return true;
    return false;
}

bool tl_call_members(struct tl_control_call *call, const char *first, ...)
{
    const char *name;
    json_t *value;
    json_t *body = (json_t *)call->request->body; /* jansson's loops take no const */
    json_object_foreach(body, name, value)
    {
        char quoted[QUOTED_MAX];
        va_list names;
        va_start(names, first);
        bool known = is_one_of(name, first, names);
        va_end(names);
        tl_quote(name, quoted, sizeof(quoted));
        if (!known)
            return tl_call_refuse(call, 400, "%s is not a member of this request", quoted);
    }
    return true;
}

bool tl_call_text(struct tl_control_call *call, const char *name, bool needed, const char **text)
{
    const json_t *value = json_object_get(call->request->body, name);
    if (value == NULL && !needed)
        return true;
    if (!json_is_string(value))
        return tl_call_refuse(
            call, 400, value == NULL ? "the body needs a text \"%s\"" : "\"%s\" must be a text",
            name);
    *text = json_string_value(value);
    return true;
}

bool tl_call_number(struct tl_control_call *call, const char *name, uint64_t least, uint64_t most,
                    uint64_t *number)
{
    const char *text = tl_target_parameter(&call->target, name);
    uint64_t value;
    if (text == NULL)
        return true;
    if (!tl_number_parse(text, &value, NULL) || value < least || value > most)
        return tl_call_refuse(call, 400, "%s must be a whole number from %" PRIu64 " to %" PRIu64,
                              name, least, most);
    *number = value;
    return true;
}

json_t *tl_call_time(int64_t unix_ms)
{
    char text[TL_UNITS_TEXT_MAX];
    if (unix_ms == 0)
        return json_null();
    tl_time_format(unix_ms, text, sizeof(text));
    return json_string(text);
}
