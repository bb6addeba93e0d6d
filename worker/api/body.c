/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "common/base/text.h"
#include "worker/api/body.h"

enum { VALUE_MAX = 1024, QUOTED_MAX = TL_VISITOR_MAX + 8, LATENCY_MAX_MS = 3600000 };

/* ---- objects ---- */

/* Takes one member into the body. */
typedef bool take_member(void *body, const char *name, const json_t *value, struct tl_error *err);

static bool parse(const char *text, size_t length, take_member *take, void *body,
                  struct tl_error *err)
{
    json_error_t problem;
    const char *name;
    json_t *value;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "not JSON: line %d, column %d", problem.line,
                            problem.column);
    bool ok =
        json_is_object(root) || tl_error_set(err, TL_ERR_INVALID, "the body must be a JSON object");
    if (ok) {
        json_object_foreach(root, name, value)
        {
            ok = take(body, name, value, err);
            if (!ok)
                break;
        }
    }
    json_decref(root);
    return ok;
}

static bool refuse_member(const char *name, const char *known, struct tl_error *err)
{
    char quoted[QUOTED_MAX];
    tl_quote(name, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID, "unknown member %s; known are %s", quoted, known);
}

enum characters { ANY, PRINTABLE, HEXADECIMAL };

static bool is_device(const char *text, size_t length)
{
    return length > 0 && length <= TL_MOVE_DEVICE_MAX && strspn(text, "0123456789abcdef") == length;
}

/* Takes a string of 1 to size - 1 of these characters. Lengths are compared, so that no text holds
 * a zero byte. */
static bool take_string(const char *name, const json_t *value, enum characters of, char *out,
                        size_t size, struct tl_error *err)
{
    static const char *const names[] = {"characters", "printable ASCII characters without spaces",
                                        "hexadecimal digits"};
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (text == NULL || length == 0 || length >= size || strlen(text) != length ||
        (of == PRINTABLE && !tl_printable(text, length, size - 1)) ||
        (of == HEXADECIMAL && !is_device(text, length)))
        return tl_error_set(err, TL_ERR_INVALID, "\"%s\" must be a string of 1 to %zu %s", name,
                            size - 1, names[of]);
    memcpy(out, text, length + 1);
    return true;
}

/* ---- a join ---- */

static bool take_join(void *context, const char *name, const json_t *value, struct tl_error *err)
{
    struct tl_join_body *body = context;
    if (strcmp(name, "visitor") == 0)
        return take_string(name, value, PRINTABLE, body->visitor, sizeof(body->visitor), err);
    if (strcmp(name, "lane") == 0)
        return take_string(name, value, ANY, body->lane, sizeof(body->lane), NULL) ||
               tl_error_set(err, TL_ERR_INVALID, "\"%s\" must name one of the queue's lanes", name);
    if (strcmp(name, "invite") == 0)
        return take_string(name, value, ANY, body->invite, sizeof(body->invite), err);
    if (strcmp(name, "solution") == 0)
        return take_string(name, value, ANY, body->solution, sizeof(body->solution), err);
    if (strcmp(name, "token") == 0)
        return take_string(name, value, PRINTABLE, body->token, sizeof(body->token), err);
    return refuse_member(name, "\"visitor\", \"lane\", \"invite\", \"solution\" and \"token\"",
                         err);
}

void tl_join_body_clear(struct tl_join_body *body)
{
    body->visitor[0] = body->lane[0] = body->invite[0] = '\0';
    body->solution[0] = body->token[0] = '\0'; /* a join need not touch all of its 10 KiB */
}

bool tl_join_body_parse(const char *text, size_t length, struct tl_join_body *body,
                        struct tl_error *err)
{
    tl_join_body_clear(body);
    if (!parse(text, length, take_join, body, err))
        return false;
    if (body->invite[0] != '\0' && (body->visitor[0] != '\0' || body->lane[0] != '\0'))
        return tl_error_set(err, TL_ERR_INVALID,
                            "an invite says who joins and in which lane: \"visitor\" and \"lane\" "
                            "do not go with it");
    return true;
}

/* ---- a hand-over ---- */

static bool take_move(void *context, const char *name, const json_t *value, struct tl_error *err)
{
    struct tl_move_body *body = context;
    if (strcmp(name, "code") == 0)
        return take_string(name, value, ANY, body->code, sizeof(body->code), err);
    if (strcmp(name, "device") == 0)
        return take_string(name, value, HEXADECIMAL, body->device, sizeof(body->device), err);
    return refuse_member(name, "\"code\" and \"device\"", err);
}

bool tl_move_body_parse_json(const char *text, size_t length, struct tl_move_body *body,
                             struct tl_error *err)
{
    *body = (struct tl_move_body){0};
    return parse(text, length, take_move, body, err) &&
           (body->code[0] != '\0' || tl_error_set(err, TL_ERR_INVALID, "\"code\" is missing"));
}

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

/* ---- feedback ---- */

/* Takes one number of the object: from 0 to most, times `scale`, rounded up: a little above a limit
 * is above it. */
static bool take_number(const char *name, const json_t *value, double most, double scale,
                        int64_t *number, struct tl_error *err)
{
    double found = json_number_value(value);
    if (!json_is_number(value) || !(found >= 0) || found > most)
        return tl_error_set(err, TL_ERR_INVALID, "\"%s\" must be a number from 0 to %.0f", name,
                            most);
    *number = (int64_t)ceil(found * scale - 1e-9);
    return true;
}

static bool take_feedback(void *context, const char *name, const json_t *value,
                          struct tl_error *err)
{
    struct tl_feedback *feedback = context;
    if (strcmp(name, "load") == 0)
        return take_number(name, value, 1, 1000, &feedback->load, err);
    if (strcmp(name, "latency_ms") == 0)
        return take_number(name, value, LATENCY_MAX_MS, 1, &feedback->latency_ms, err);
    if (strcmp(name, "error_rate") == 0)
        return take_number(name, value, 1, 1000, &feedback->errors, err);
    return refuse_member(name, "\"load\", \"latency_ms\" and \"error_rate\"", err);
}

bool tl_feedback_body_parse(const char *text, size_t length, struct tl_feedback *feedback,
                            struct tl_error *err)
{
    *feedback = (struct tl_feedback){.load = -1, .latency_ms = -1, .errors = -1};
    if (!parse(text, length, take_feedback, feedback, err))
        return false;
    if (feedback->load < 0 && feedback->latency_ms < 0 && feedback->errors < 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "nothing is reported: at least one of \"load\", \"latency_ms\" and "
                            "\"error_rate\" is needed");
    return true;
}
