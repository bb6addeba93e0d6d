/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked, as a request: by the server's table of calls. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/control/control.h"

#include "ctl/calls/calls.h"

static const struct tl_control_route *route_of(const char *operation)
{
    size_t n;
    const struct tl_control_route *route = tl_control_routes(&n);
    while (strcmp(route->operation, operation) != 0) {
        assert(n > 1);
        n--;
        route++;
    }
    return route;
}

/* Appends the argument of this name, percent-encoded, and takes it out. False: it is missing or
 * empty. */
static bool take(json_t *arguments, const char *name, char target[TL_TARGET_MAX], size_t *length)
{
    char text[TL_TARGET_MAX];
    tl_json_show(json_object_get(arguments, name), text, sizeof(text));
    if (*length < TL_TARGET_MAX)
        *length += tl_percent_encode(text, target + *length, TL_TARGET_MAX - *length);
    (void)json_object_del(arguments, name);
    return text[0] != '\0';
}

bool tl_ctl_ask_target(const char *operation, json_t *arguments, const char **method,
                       char target[TL_TARGET_MAX], struct tl_error *err)
{
    const struct tl_control_route *route = route_of(operation);
    const char *at = route->path, *query = route->query != NULL ? route->query : "";
    size_t length = 0;
    char name[40], separator = '?';
    bool ok = true;
    *method = route->method;
    while (ok && *at != '\0' && length < TL_TARGET_MAX) {
        size_t part = *at == '{' ? strcspn(at, "}") : 0;
        snprintf(name, sizeof(name), "%.*s", part > 0 ? (int)part - 1 : 0, at + 1);
        if (part == 0)
            target[length++] = *at++;
        else
            ok = take(arguments, name, target, &length);
        at += part > 0 ? part + 1 : 0;
    }
    for (; *query != '\0'; query += strcspn(query, " "), query += strspn(query, " ")) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(query, " "), query);
        if (json_object_get(arguments, name) == NULL || length >= TL_TARGET_MAX)
            continue;
        length +=
            (size_t)snprintf(target + length, TL_TARGET_MAX - length, "%c%s=", separator, name);
        (void)take(arguments, name, target, &length);
        separator = '&';
    }
    if (!ok || length >= TL_TARGET_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "a name is empty or too long");
    target[length] = '\0';
    return true;
}

bool tl_ctl_ask_changes(const char *operation)
{
    return route_of(operation)->changes;
}
