#include <stdio.h>
#include <string.h>

#include "worker/api/routes.h"
#include "worker/http/problem.h"

struct route {
    const char *method;
    const char *pattern; /* '*' stands for one segment: the queue's name */
    tl_handler *handler;
};

static const struct route routes[] = {
    {"POST", "/v1/queues/*/join", tl_handle_join},
    {"GET", "/v1/queues/*/status", tl_handle_status},
    {"GET", "/v1/queues/*/events", tl_handle_events},
    {"POST", "/v1/queues/*/leave", tl_handle_leave},
    {"POST", "/v1/queues/*/complete", tl_handle_complete},
    {"POST", "/v1/queues/*/renew", tl_handle_renew},
    {"GET", "/v1/queues/*/check", tl_handle_check},
    {"GET", "/v1/queues/*", tl_handle_queue},
    {"GET", "/q/*", tl_handle_page},
    {"POST", "/q/*/join", tl_handle_page_join},
    {"POST", "/q/*/leave", tl_handle_page_leave},
    {"GET", "/q/assets/*", tl_handle_asset},
    {"GET", "/.well-known/jwks.json", tl_handle_jwks},
    {"GET", "/openapi.yaml", tl_handle_openapi},
    {"GET", "/livez", tl_handle_livez},
    {"GET", "/readyz", tl_handle_readyz},
};

enum { N_ROUTES = sizeof(routes) / sizeof(routes[0]) };

/* Does the path fit? The segment that '*' stands for goes to queue; one too long for any queue is
 * cut, and so names none. */
static bool match(const char *pattern, const char *path, char queue[TL_QUEUE_NAME_MAX + 2])
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
    snprintf(queue, TL_QUEUE_NAME_MAX + 2, "%.*s", (int)length, path + before);
    return true;
}

static bool takes(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

void tl_routes_handle(void *context, struct tl_request *request)
{
    char queue[TL_QUEUE_NAME_MAX + 2];
    const char *path = tl_request_path(request);
    const char *method = tl_request_method(request);
    const struct route *fits = NULL;
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (!match(routes[i].pattern, path, queue))
            continue;
        if (takes(&routes[i], method)) {
            routes[i].handler(context, request, queue);
            return;
        }
        fits = &routes[i];
    }
    if (fits != NULL)
        tl_problem_method(request, strcmp(fits->method, "GET") == 0 ? "GET, HEAD" : fits->method);
    else
        tl_problem_answer(request, TL_PROBLEM_NOT_FOUND, "%s", "");
}

void tl_routes_too_large(void *context, struct tl_request *request)
{
    const struct tl_edge *edge = context;
    tl_problem_answer(request, TL_PROBLEM_TOO_LARGE, "A body may have at most %llu bytes",
                      (unsigned long long)edge->config->http.max_body);
}
