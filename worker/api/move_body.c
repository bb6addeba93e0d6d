/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "common/base/text.h"
#include "worker/api/move_body.h"

enum { VALUE_MAX = 1024, QUOTED_MAX = 64 };

/* ---- JSON ---- */

static bool is_device(const char *text, size_t length)
{
    return length > 0 && length <= TL_MOVE_DEVICE_MAX && strspn(text, "0123456789abcdef") == length;
}

/* Takes one member of the object. Lengths are compared, so that no text holds a zero byte. */
static bool take(const char *name, const json_t *value, struct tl_move_body *body,
                 struct tl_error *err)
{
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (strcmp(name, "code") == 0) {
        if (text == NULL || length == 0 || strlen(text) != length || length >= sizeof(body->code))
            return tl_error_set(err, TL_ERR_INVALID,
                                "\"code\" must be a string of 1 to %d characters",
                                TL_TICKET_MAX - 1);
        snprintf(body->code, sizeof(body->code), "%s", text);
    } else if (strcmp(name, "device") == 0) {
        if (text == NULL || !is_device(text, length))
            return tl_error_set(err, TL_ERR_INVALID,
                                "\"device\" must be a string of 1 to %d hexadecimal digits",
                                TL_MOVE_DEVICE_MAX);
        snprintf(body->device, sizeof(body->device), "%s", text);
    } else {
        char quoted[QUOTED_MAX];
        tl_quote(name, quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID,
                            "unknown member %s; known are \"code\" and \"device\"", quoted);
    }
    return true;
}

bool tl_move_body_parse_json(const char *text, size_t length, struct tl_move_body *body,
                             struct tl_error *err)
{
    json_error_t problem;
    const char *name;
    json_t *value;
    *body = (struct tl_move_body){0};
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "not JSON: line %d, column %d", problem.line,
                            problem.column);
    bool ok =
        json_is_object(root) || tl_error_set(err, TL_ERR_INVALID, "the body must be a JSON object");
    if (ok) {
        json_object_foreach(root, name, value)
        {
            ok = take(name, value, body, err);
            if (!ok)
                break;
        }
    }
    json_decref(root);
    if (ok && body->code[0] == '\0')
        ok = tl_error_set(err, TL_ERR_INVALID, "\"code\" is missing");
    return ok;
}

/* ---- the form ---- */

static int digit(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    const int n = at != NULL ? (int)(at - digits) : -1;
    return n < 16 ? n : n - 6;
}

/* Decodes one value (application/x-www-form-urlencoded). "" when it is too long or not valid. */
static void decode(const char *text, size_t length, char out[VALUE_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '+')
            c = ' ';
        if (c == '%') {
            const int high = i + 2 < length ? digit(text[i + 1]) : -1;
            const int low = i + 2 < length ? digit(text[i + 2]) : -1;
            c = high < 0 || low < 0 ? '\0' : (unsigned char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0' || n + 1 == VALUE_MAX) {
            n = 0;
            break;
        }
        out[n++] = (char)c;
    }
    out[n] = '\0';
}

/* The code in what a person has pasted: a link that ends with it, or itself. */
static void take_code(const char *text, struct tl_move_body *body)
{
    const char *hash = strrchr(text, '#');
    const char *code = hash != NULL ? hash + 1 : text;
    code += strspn(code, " \t\r\n");
    const size_t length = strcspn(code, " \t\r\n");
    if (length < sizeof(body->code))
        snprintf(body->code, sizeof(body->code), "%.*s", (int)length, code);
}

void tl_move_body_parse_form(const char *text, size_t length, struct tl_move_body *body)
{
    char value[VALUE_MAX];
    *body = (struct tl_move_body){0};
    for (size_t at = 0; at < length;) {
        const char *part = text + at;
        const char *end = memchr(part, '&', length - at);
        const size_t size = end != NULL ? (size_t)(end - part) : length - at;
        const char *equals = memchr(part, '=', size);
        const size_t named = equals != NULL ? (size_t)(equals - part) : size;
        decode(part + named + (equals != NULL), size - named - (equals != NULL), value);
        if (named == 4 && memcmp(part, "code", named) == 0)
            take_code(value, body);
        else if (named == 6 && memcmp(part, "device", named) == 0 &&
                 is_device(value, strlen(value)))
            memcpy(body->device, value, strlen(value) + 1);
        at += size + 1;
    }
}

bool tl_move_body_is_form(const struct tl_request *request)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const char *type = tl_request_header(request, "Content-Type");
    return type != NULL && strncasecmp(type, form, sizeof(form) - 1) == 0;
}
