/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "common/base/text.h"
#include "common/config/config.h"
#include "worker/api/join_body.h"

/* Takes one member of the object. Lengths are compared, so that no text holds a zero byte. */
static bool take(const char *name, const json_t *value, struct tl_join_body *body,
                 struct tl_error *err)
{
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    bool plain = text != NULL && length > 0 && strlen(text) == length;
    if (strcmp(name, "visitor") == 0) {
        if (text == NULL || !tl_visitor_valid(text, length))
            return tl_error_set(
                err, TL_ERR_INVALID,
                "\"%s\" must be a string of 1 to %d printable ASCII characters without spaces",
                name, TL_VISITOR_MAX);
        snprintf(body->visitor, sizeof(body->visitor), "%s", text);
    } else if (strcmp(name, "lane") == 0) {
        if (!plain || length >= sizeof(body->lane))
            return tl_error_set(err, TL_ERR_INVALID, "\"%s\" must name one of the queue's lanes",
                                name);
        snprintf(body->lane, sizeof(body->lane), "%s", text);
    } else if (strcmp(name, "invite") == 0) {
        if (!plain || length >= sizeof(body->invite))
            return tl_error_set(err, TL_ERR_INVALID,
                                "\"%s\" must be a string of 1 to %d characters", name,
                                TL_JOIN_INVITE_MAX);
        snprintf(body->invite, sizeof(body->invite), "%s", text);
    } else if (strcmp(name, "solution") == 0) {
        if (!plain || length >= sizeof(body->solution))
            return tl_error_set(err, TL_ERR_INVALID,
                                "\"%s\" must be a string of 1 to %d characters", name,
                                TL_PUZZLE_SOLUTION_MAX - 1);
        snprintf(body->solution, sizeof(body->solution), "%s", text);
    } else if (strcmp(name, "token") == 0) {
        if (text == NULL || !tl_printable(text, length, TL_JOIN_TOKEN_MAX))
            return tl_error_set(
                err, TL_ERR_INVALID,
                "\"%s\" must be a string of 1 to %d printable ASCII characters without spaces",
                name, TL_JOIN_TOKEN_MAX);
        snprintf(body->token, sizeof(body->token), "%s", text);
    } else {
        char quoted[TL_VISITOR_MAX + 8];
        tl_quote(name, quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID,
                            "unknown member %s; known are \"visitor\", \"lane\", \"invite\", "
                            "\"solution\" and \"token\"",
                            quoted);
    }
    return true;
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
