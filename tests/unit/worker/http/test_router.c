/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes, and how refusals are answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/wire/names.h"
#include "tests/unit/fake_request.h"
#include "worker/http/refusal.h"
#include "worker/http/router.h"

/* What the handlers and renderers below saw. */
static struct {
    unsigned calls, refusals;
    const char *handler, *renderer;
    char queue[256];
    struct tl_refusal refusal;
    void *context;
} seen;

static int reset(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    return 0;
}

struct tl_visit {
    void *context;
    struct tl_request *request;
    char queue[TL_ROUTER_QUEUE_MAX];
    struct tl_refusal refusal;
};

static bool note(const char *handler, const struct tl_visit *visit)
{
    seen.calls++;
    seen.handler = handler;
    seen.context = visit->context;
    snprintf(seen.queue, sizeof(seen.queue), "%s", visit->queue);
    tl_request_answer(visit->request, &(struct tl_answer){.status = 200});
    return true;
}

static bool on_queue(struct tl_visit *visit)
{
    return note("queue", visit);
}

static bool on_join(struct tl_visit *visit)
{
    return note("join", visit);
}

static bool on_live(struct tl_visit *visit)
{
    return note("live", visit);
}

static bool on_refusing(struct tl_visit *visit)
{
    seen.calls++;
    seen.context = visit->context;
    return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY, "not now, %s", visit->queue);
}

static void refuse(const char *renderer, struct tl_request *request,
                   const struct tl_refusal *refusal)
{
    seen.refusals++;
    seen.renderer = renderer;
    seen.refusal = *refusal;
    tl_problem_answer(request, refusal);
}

static void refuse_json(struct tl_request *request, const struct tl_refusal *refusal)
{
    refuse("json", request, refusal);
}

static void refuse_page(struct tl_request *request, const struct tl_refusal *refusal)
{
    refuse("page", request, refusal);
}

static const struct tl_renderer json = {.refusal = refuse_json};
static const struct tl_renderer page = {.refusal = refuse_page};

static const struct tl_route routes[] = {
    {"POST", "/v1/queues/*/join", on_join, &json},
    {"GET", "/v1/queues/*", on_queue, &json},
    {"GET", "/v1/queues/*/busy", on_refusing, &json},
    {"POST", "/q/*/join", on_join, &page},
    {"GET", "/q/*", on_queue, &page},
    {"GET", "/livez", on_live, &json},
    {"GET", "/about", on_live, &page},
    {NULL, "/q/", NULL, &page},
    {NULL, "/", NULL, &json},
};

static struct tl_request handle(const char *method, const char *path)
{
    struct tl_request request = {.method = method, .path = path};
    reset(NULL);
    struct tl_visit visit = {.context = &seen, .request = &request};
    const struct tl_route *route = tl_router_find(routes, &request, visit.queue, &visit.refusal);
    if (route == NULL || !route->handler(&visit))
        tl_render_refusal(&request, &visit.refusal);
    assert_int_equal(request.answers, 1);
    return request;
}

static void a_request_reaches_the_handler_of_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *handler, *queue;
        const struct tl_renderer *renderer;
    } cases[] = {
        {"GET", "/v1/queues/tickets", "queue", "tickets", &json},
        {"POST", "/v1/queues/tickets/join", "join", "tickets", &json},
        {"GET", "/q/tickets", "queue", "tickets", &page},
        {"POST", "/q/tickets/join", "join", "tickets", &page},
        {"GET", "/livez", "live", "", &json},
        {"HEAD", "/livez", "live", "", &json},
        {"HEAD", "/v1/queues/tickets", "queue", "tickets", &json},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_request request = handle(cases[i].method, cases[i].path);
        assert_int_equal(request.status, 200);
        assert_int_equal(seen.calls, 1);
        assert_int_equal(seen.refusals, 0);
        assert_string_equal(seen.handler, cases[i].handler);
        assert_string_equal(seen.queue, cases[i].queue);
        assert_ptr_equal(seen.context, &seen);
        assert_ptr_equal(request.renderer, cases[i].renderer);
    }
}

static void another_path_is_not_found(void **state)
{
    (void)state;
    static const struct {
        const char *path, *renderer;
    } cases[] = {
        {"/", "json"},
        {"", "json"},
        {"/livez/", "json"},
        {"/livezz", "json"},
        {"/v1/queues/", "json"},
        {"/v1/queues//join", "json"},
        {"/v1/queues/a/b/join", "json"},
        {"/v1/queues/a/", "json"},
        {"/q/", "page"},
        {"/q/a/b", "page"},
        {"/q", "json"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_request request = handle("GET", cases[i].path);
        assert_int_equal(request.status, 404);
        assert_int_equal(seen.calls, 0);
        assert_int_equal(seen.refusals, 1);
        assert_string_equal(seen.renderer, cases[i].renderer);
        assert_null(fake_answer_header(&request, "Allow"));
    }
}

static void another_method_is_refused_with_those_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *allowed, *renderer;
    } cases[] = {
        {"POST", "/livez", "GET, HEAD", "json"},
        {"GET", "/v1/queues/a/join", "POST", "json"},
        {"HEAD", "/v1/queues/a/join", "POST", "json"},
        {"DELETE", "/v1/queues/a", "GET, HEAD", "json"},
        {"GET", "/q/a/join", "POST", "page"},
        {"get", "/livez", "GET, HEAD", "json"},
        {"POST", "/about", "GET, HEAD", "page"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_request request = handle(cases[i].method, cases[i].path);
        assert_int_equal(request.status, 405);
        assert_int_equal(seen.calls, 0);
        assert_string_equal(fake_answer_header(&request, "Allow"), cases[i].allowed);
        assert_string_equal(seen.renderer, cases[i].renderer);
    }
}

static void a_segment_too_long_for_a_name_names_no_queue(void **state)
{
    (void)state;
    char name[TL_QUEUE_NAME_MAX + 20];
    char path[sizeof(name) + 16];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    snprintf(path, sizeof(path), "/v1/queues/%s", name);
    struct tl_request request = handle("GET", path);
    assert_int_equal(request.status, 200);
    assert_int_equal(strlen(seen.queue), TL_QUEUE_NAME_MAX + 1);
    assert_false(tl_queue_name_valid(seen.queue, strlen(seen.queue)));
}

static void a_refusal_is_answered_once_by_the_routes_renderer(void **state)
{
    (void)state;
    struct tl_request request = handle("GET", "/v1/queues/tickets/busy");
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.refusals, 1);
    assert_int_equal(seen.refusal.kind, TL_REFUSAL_BUSY);
    assert_string_equal(seen.refusal.detail, "not now, tickets");
    assert_string_equal(seen.renderer, "json");
    assert_int_equal(request.status, 503);
}

static void a_request_can_be_refused_without_its_handler(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *renderer;
    } cases[] = {{"POST", "/v1/queues/a/join", "json"},
                 {"POST", "/q/a/join", "page"},
                 {"PUT", "/q/a/join", "page"},
                 {"PUT", "/q/unknown/path", "page"},
                 {"PUT", "/about", "page"},
                 {"PUT", "/unknown", "json"}};
    struct tl_refusal refusal;
    tl_refuse(&refusal, TL_REFUSAL_TOO_LARGE, "at most %d bytes", 10);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_request request = {.method = cases[i].method, .path = cases[i].path};
        reset(NULL);
        tl_router_refuse(routes, &request, &refusal);
        assert_int_equal(request.answers, 1);
        assert_int_equal(request.status, 413);
        assert_int_equal(seen.calls, 0);
        assert_string_equal(seen.renderer, cases[i].renderer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_reaches_the_handler_of_its_path),
        cmocka_unit_test(another_path_is_not_found),
        cmocka_unit_test(another_method_is_refused_with_those_allowed),
        cmocka_unit_test(a_segment_too_long_for_a_name_names_no_queue),
        cmocka_unit_test(a_refusal_is_answered_once_by_the_routes_renderer),
        cmocka_unit_test(a_request_can_be_refused_without_its_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
