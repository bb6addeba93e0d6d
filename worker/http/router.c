#include <stdio.h>
#include <string.h>

#include "common/wire/names.h"
#include "worker/http/router.h"

#define QUEUE_MAX (TL_QUEUE_NAME_MAX + 2) /* one more than a name may have, and the terminator */

/* Does the path fit the pattern? Copies the segment that '*' stands for to queue. */
static bool match(const char *pattern, const char *path, char queue[QUEUE_MAX])
{
    queue[0] = '\0';
    const char *star = strchr(pattern, '*');
    if (star == NULL)
        return strcmp(pattern, path) == 0;
    size_t before = (size_t)(star - pattern);
    if (strncmp(pattern, path, before) != 0)
        return false;
    size_t length = strcspn(path + before, "/");
    if (length == 0 || strcmp(star + 1, path + before + length) != 0)
        return false;
    snprintf(queue, QUEUE_MAX, "%.*s", (int)length, path + before);
    return true;
}

static bool takes(const struct tl_route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

/* The route of the request. *fits: one with its path but another method, or NULL. */
static const struct tl_route *find(const struct tl_route *route, const struct tl_request *request,
                                   char queue[QUEUE_MAX], const struct tl_route **fits)
{
    const char *path = tl_request_path(request);
    *fits = NULL;
    for (;; route++) {
        if (route->method == NULL) {
            if (strncmp(route->pattern, path, strlen(route->pattern)) == 0 ||
                strcmp(route->pattern, "/") == 0)
                return route;
        } else if (match(route->pattern, path, queue)) {
            if (takes(route, tl_request_method(request)))
                return route;
            *fits = route;
        }
    }
}

void tl_router_handle(const struct tl_route *routes, void *context, struct tl_request *request)
{
    char queue[QUEUE_MAX];
    struct tl_refusal refusal;
    const struct tl_route *other_method;
    const struct tl_route *route = find(routes, request, queue, &other_method);
    tl_request_set_renderer(request, route->renderer);
    if (route->handler != NULL) {
        if (route->handler(context, request, queue, &refusal))
            return;
    } else if (other_method != NULL) {
        tl_refuse(&refusal, TL_REFUSAL_METHOD, "%s", "");
        refusal.allowed =
            strcmp(other_method->method, "GET") == 0 ? "GET, HEAD" : other_method->method;
    } else {
        tl_refuse(&refusal, TL_REFUSAL_NOT_FOUND, "%s", "");
    }
    tl_render_refusal(request, &refusal);
}

void tl_router_refuse(const struct tl_route *routes, struct tl_request *request,
                      const struct tl_refusal *refusal)
{
    char queue[QUEUE_MAX];
    const struct tl_route *other_method;
    const struct tl_route *route = find(routes, request, queue, &other_method);
    tl_request_set_renderer(request,
                            other_method != NULL ? other_method->renderer : route->renderer);
    tl_render_refusal(request, refusal);
}
