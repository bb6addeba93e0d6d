/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "common/auth/hex.h"
#include "common/base/text.h"
#include "worker/api/body.h"

enum { VALUE_MAX = 1024, QUOTED_MAX = TL_VISITOR_MAX + 8, KNOWN_MAX = 128 };

/* ---- objects ---- */

/* What a member takes: texts, and numbers from 0 on. */
enum kind { ANY, PRINTABLE, HEXADECIMAL, LANE, RATIO, MILLISECONDS };

struct member {
    const char *name;
    enum kind kind;
    size_t at, size; /* in the body: bytes of a text, or of an int64_t */
};
#define MEMBER(body, field, name, kind)                                                            \
    {                                                                                              \
        name, kind, offsetof(struct body, field), sizeof(((struct body *)NULL)->field)             \
    }

static bool is_device(const char *text, size_t length)
{
    return length > 0 && length <= TL_MOVE_DEVICE_MAX && strspn(text, "0123456789abcdef") == length;
}

/* A string of 1 to size - 1 of these characters. Lengths are compared, so that no text holds a zero
 * byte. */
static bool take_text(const struct member *member, const json_t *value, char *out,
                      struct tl_error *err)
{
    static const char *const names[] = {[ANY] = "characters",
                                        [PRINTABLE] = "printable ASCII characters without spaces",
                                        [HEXADECIMAL] = "hexadecimal digits"};
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (text != NULL && length > 0 && length < member->size && strlen(text) == length &&
        (member->kind != PRINTABLE || tl_printable(text, length, member->size - 1)) &&
        (member->kind != HEXADECIMAL || is_device(text, length))) {
        memcpy(out, text, length + 1);
        return true;
    }
    if (member->kind == LANE)
        return tl_error_set(err, TL_ERR_INVALID, "\"%s\" must name one of the queue's lanes",
                            member->name);
    return tl_error_set(err, TL_ERR_INVALID, "\"%s\" must be a string of 1 to %zu %s", member->name,
                        member->size - 1, names[member->kind]);
}

/* A number in thousandths of a ratio, or in milliseconds, rounded up: a little above a limit is
 * above it. */
static bool take_number(const struct member *member, const json_t *value, int64_t *out,
                        struct tl_error *err)
{
    const double most = member->kind == RATIO ? 1 : 3600000;
    double found = json_number_value(value);
    if (!json_is_number(value) || !(found >= 0) || found > most)
        return tl_error_set(err, TL_ERR_INVALID, "\"%s\" must be a number from 0 to %.0f",
                            member->name, most);
    *out = (int64_t)ceil(found * (member->kind == RATIO ? 1000 : 1) - 1e-9);
    return true;
}

static bool refuse_name(const char *name, const struct member *members, size_t n,
                        struct tl_error *err)
{
    char quoted[QUOTED_MAX], known[KNOWN_MAX] = "";
    for (size_t i = 0, at = 0; i < n; i++)
        at += (size_t)snprintf(known + at, sizeof(known) - at, "%s\"%s\"",
                               i == 0       ? ""
                               : i + 1 == n ? " and "
                                            : ", ",
                               members[i].name);
    tl_quote(name, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID, "unknown member %s; known are %s", quoted, known);
}

/* Takes the members of an object into the body, which has its defaults. */
static bool parse(const char *text, size_t length, const struct member *members, size_t n,
                  void *body, struct tl_error *err)
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
    json_object_foreach(root, name, value)
    {
        const struct member *member = members;
        while (ok && member < members + n && strcmp(member->name, name) != 0)
            member++;
        if (ok && member == members + n)
            ok = refuse_name(name, members, n, err);
        else if (ok)
            ok = member->kind >= RATIO
                     ? take_number(member, value, (void *)((char *)body + member->at), err)
                     : take_text(member, value, (char *)body + member->at, err);
    }
    json_decref(root);
    return ok;
}

/* ---- a join ---- */

bool tl_join_body_parse(const char *text, size_t length, struct tl_join_body *body,
                        struct tl_error *err)
{
    static const struct member members[] = {
        MEMBER(tl_join_body, visitor, "visitor", PRINTABLE),
        MEMBER(tl_join_body, lane, "lane", LANE),
        MEMBER(tl_join_body, invite, "invite", ANY),
        MEMBER(tl_join_body, solution, "solution", ANY),
        MEMBER(tl_join_body, token, "token", PRINTABLE),
    };
    body->visitor[0] = body->lane[0] = body->invite[0] = '\0';
    body->solution[0] = body->token[0] = '\0'; /* a join need not touch all of its 10 KiB */
    if (length > 0 &&
        !parse(text, length, members, sizeof(members) / sizeof(members[0]), body, err))
        return false;
    if (body->invite[0] != '\0' && (body->visitor[0] != '\0' || body->lane[0] != '\0'))
        return tl_error_set(err, TL_ERR_INVALID,
                            "an invite says who joins and in which lane: \"visitor\" and \"lane\" "
                            "do not go with it");
    return true;
}

/* ---- a hand-over ---- */

bool tl_move_body_parse_json(const char *text, size_t length, struct tl_move_body *body,
                             struct tl_error *err)
{
    static const struct member members[] = {
        MEMBER(tl_move_body, code, "code", ANY),
        MEMBER(tl_move_body, device, "device", HEXADECIMAL),
    };
    *body = (struct tl_move_body){0};
    return parse(text, length, members, sizeof(members) / sizeof(members[0]), body, err) &&
           (body->code[0] != '\0' || tl_error_set(err, TL_ERR_INVALID, "\"code\" is missing"));
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
            if (i + 2 >= length || !tl_hex_parse(text + i + 1, 2, &c, 1))
                c = '\0';
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

bool tl_feedback_body_parse(const char *text, size_t length, struct tl_feedback *feedback,
                            struct tl_error *err)
{
    static const struct member members[] = {
        MEMBER(tl_feedback, load, "load", RATIO),
        MEMBER(tl_feedback, latency_ms, "latency_ms", MILLISECONDS),
        MEMBER(tl_feedback, errors, "error_rate", RATIO),
    };
    *feedback = (struct tl_feedback){.load = -1, .latency_ms = -1, .errors = -1};
    if (!parse(text, length, members, sizeof(members) / sizeof(members[0]), feedback, err))
        return false;
    if (feedback->load < 0 && feedback->latency_ms < 0 && feedback->errors < 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "nothing is reported: at least one of \"load\", \"latency_ms\" and "
                            "\"error_rate\" is needed");
    return true;
}
