/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "common/base/text.h"
#include "worker/api/feedback_body.h"

enum { LATENCY_MAX_MS = 3600000 };

/* Takes one number of the object: from 0 to most, times `scale`, rounded up: a little above a limit
 * is above it. */
static bool take(const char *name, const json_t *value, double most, double scale, int64_t *number,
                 struct tl_error *err)
{
    double found = json_number_value(value);
    if (!json_is_number(value) || !(found >= 0) || found > most)
        return tl_error_set(err, TL_ERR_INVALID, "\"%s\" must be a number from 0 to %.0f", name,
                            most);
    *number = (int64_t)ceil(found * scale - 1e-9);
    return true;
}

static bool take_member(const char *name, const json_t *value, struct tl_feedback *feedback,
                        struct tl_error *err)
{
    char quoted[64];
    if (strcmp(name, "load") == 0)
        return take(name, value, 1, 1000, &feedback->load, err);
    if (strcmp(name, "latency_ms") == 0)
        return take(name, value, LATENCY_MAX_MS, 1, &feedback->latency_ms, err);
    if (strcmp(name, "error_rate") == 0)
        return take(name, value, 1, 1000, &feedback->errors, err);
    tl_quote(name, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID,
                        "unknown member %s; known are \"load\", \"latency_ms\" and \"error_rate\"",
                        quoted);
}

bool tl_feedback_body_parse(const char *text, size_t length, struct tl_feedback *feedback,
                            struct tl_error *err)
{
    json_error_t problem;
    const char *name;
    json_t *value;
    *feedback = (struct tl_feedback){.load = -1, .latency_ms = -1, .errors = -1};
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "not JSON: line %d, column %d", problem.line,
                            problem.column);
    bool ok =
        json_is_object(root) || tl_error_set(err, TL_ERR_INVALID, "the body must be a JSON object");
    if (ok && json_object_size(root) == 0)
        ok = tl_error_set(err, TL_ERR_INVALID,
                          "nothing is reported: at least one of \"load\", \"latency_ms\" and "
                          "\"error_rate\" is needed");
    if (ok) {
        json_object_foreach(root, name, value)
        {
            ok = take_member(name, value, feedback, err);
            if (!ok)
                break;
        }
    }
    json_decref(root);
    return ok;
}
