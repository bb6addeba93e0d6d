#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "common/base/quote.h"
#include "common/config/config.h"
#include "worker/api/join_body.h"

static bool take_visitor(const char *name, const json_t *value, struct tl_join_body *body,
                         struct tl_error *err)
{
    const char *text = json_string_value(value);
    if (text == NULL || !tl_visitor_valid(text, json_string_length(value)))
        return tl_error_set(
            err, TL_ERR_INVALID,
            "\"%s\" must be a string of 1 to %d printable ASCII characters without spaces", name,
            TL_VISITOR_MAX);
    snprintf(body->visitor, sizeof(body->visitor), "%s", text);
    return true;
}

static bool take_lane(const char *name, const json_t *value, struct tl_join_body *body,
                      struct tl_error *err)
{
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (text == NULL || length == 0 || length >= sizeof(body->lane) || strlen(text) != length)
        return tl_error_set(err, TL_ERR_INVALID, "\"%s\" must name one of the queue's lanes", name);
    snprintf(body->lane, sizeof(body->lane), "%s", text);
    return true;
}

static bool take_invite(const char *name, const json_t *value, struct tl_join_body *body,
                        struct tl_error *err)
{
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    if (text == NULL || length == 0 || length >= sizeof(body->invite) || strlen(text) != length)
        return tl_error_set(err, TL_ERR_INVALID, "\"%s\" must be a string of 1 to %d characters",
                            name, TL_JOIN_INVITE_MAX);
    snprintf(body->invite, sizeof(body->invite), "%s", text);
    return true;
}

static bool take(const char *name, const json_t *value, struct tl_join_body *body,
                 struct tl_error *err)
{
    if (strcmp(name, "visitor") == 0)
        return take_visitor(name, value, body, err);
    if (strcmp(name, "lane") == 0)
        return take_lane(name, value, body, err);
    if (strcmp(name, "invite") == 0)
        return take_invite(name, value, body, err);
    char quoted[TL_VISITOR_MAX + 8];
    tl_quote(name, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID,
                        "unknown member %s; known are \"visitor\", \"lane\" and \"invite\"",
                        quoted);
}

bool tl_join_body_parse(const char *text, size_t length, struct tl_join_body *body,
                        struct tl_error *err)
{
    *body = (struct tl_join_body){0};
    if (length == 0)
        return true;
    json_error_t problem;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "not JSON: line %d, column %d", problem.line,
                            problem.column);
    bool ok =
        json_is_object(root) || tl_error_set(err, TL_ERR_INVALID, "the body must be a JSON object");
    const char *name;
    json_t *value;
    if (ok) {
        json_object_foreach(root, name, value)
        {
            ok = take(name, value, body, err);
            if (!ok)
                break;
        }
    }
    json_decref(root);
    if (ok && body->invite[0] != '\0' && (body->visitor[0] != '\0' || body->lane[0] != '\0'))
        ok = tl_error_set(err, TL_ERR_INVALID,
                          "an invite says who joins and in which lane: \"visitor\" and \"lane\" do "
                          "not go with it");
    return ok;
}
