/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/http/router.h"

/* Does the rest of a path fit that of the pattern? */
static bool match_rest(const char *pattern, const char *path)
{
    size_t length = strlen(pattern);
    if (length > 0 && pattern[length - 1] == '/')
        return strncmp(pattern, path, length) == 0;
    return strcmp(pattern, path) == 0;
}

/* Does the path fit the pattern? Copies the segment that '*' stands for to queue. */
static bool match(const char *pattern, const char *path, char queue[TL_ROUTER_QUEUE_MAX])
{
    queue[0] = '\0';
    const char *star = strchr(pattern, '*');
    if (star == NULL)
        return strcmp(pattern, path) == 0;
    size_t before = (size_t)(star - pattern);
    if (strncmp(pattern, path, before) != 0)
        return false;
    size_t length = strcspn(path + before, "/");
    if (length == 0 || !match_rest(star + 1, path + before + length))
        return false;
    if (length >= TL_ROUTER_QUEUE_MAX)
        length = TL_ROUTER_QUEUE_MAX - 1;
    memcpy(queue, path + before, length);
    queue[length] = '\0';
    return true;
}

static bool takes(const struct tl_route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

/* The route of the request: the first that takes it; or one with its path but another method; or
 * one without a handler, which fits the beginning of the path. The answer looks as this row says.
 */
static const struct tl_route *find(const struct tl_route *route, struct tl_request *request,
                                   char queue[TL_ROUTER_QUEUE_MAX])
{
    const char *path = tl_request_path(request);
    const struct tl_route *other_method = NULL;
    for (;; route++) {
        if (route->method == NULL) {
            if (strncmp(route->pattern, path, strlen(route->pattern)) == 0 ||
                strcmp(route->pattern, "/") == 0)
                break;
        } else if (match(route->pattern, path, queue)) {
            if (takes(route, tl_request_method(request)))
                break;
            other_method = route;
        }
    }
    if (route->handler == NULL && other_method != NULL)
        route = other_method;
    tl_request_set_renderer(request, route->renderer);
    return route;
}

const struct tl_route *tl_router_find(const struct tl_route *routes, struct tl_request *request,
                                      char queue[TL_ROUTER_QUEUE_MAX], struct tl_refusal *refusal)
{
    const struct tl_route *route = find(routes, request, queue);
    if (route->handler == NULL) {
        tl_refuse(refusal, TL_REFUSAL_NOT_FOUND, "%s", "");
        return NULL;
    }
    if (route->method != NULL && !takes(route, tl_request_method(request))) {
        tl_refuse(refusal, TL_REFUSAL_METHOD, "%s", "");
        refusal->allowed = strcmp(route->method, "GET") == 0 ? "GET, HEAD" : route->method;
        return NULL;
    }
    return route;
}

void tl_router_refuse(const struct tl_route *routes, struct tl_request *request,
                      const struct tl_refusal *refusal)
{
    char queue[TL_ROUTER_QUEUE_MAX];
    (void)find(routes, request, queue);
    tl_render_refusal(request, refusal);
}

/* ---- renderers ---- */

void tl_render_view(struct tl_request *request, const struct tl_view *view, const char *cookie)
{
    tl_request_renderer(request)->view(request, view, cookie);
}

void tl_render_refusal(struct tl_request *request, const struct tl_refusal *refusal)
{
    tl_request_renderer(request)->refusal(request, refusal);
}

void tl_render_refused(struct tl_request *request, enum tl_refusal_kind kind, const char *detail)
{
    struct tl_refusal refusal;
    tl_refuse(&refusal, kind, "%s", detail);
    tl_render_refusal(request, &refusal);
}
