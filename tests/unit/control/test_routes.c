/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the calls: it is what docs/integrators/openapi-admin.yaml says, and finds what is
 * asked for. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/text.h"
#include "common/control/control.h"

#define DOCUMENT "docs/integrators/openapi-admin.yaml"

/* An operation of the document. */
struct operation {
    char method[16], path[128], id[64], role[16];
    bool keyed;  /* takes an Idempotency-Key */
    bool events; /* answers with server-sent events */
};

/* The text behind this name in a line that begins with it, at this depth; else NULL. */
static const char *value_of(const char *line, const char *name)
{
    size_t length = strlen(name);
    return strncmp(line, name, length) == 0 ? line + length : NULL;
}

/* Begins the operation of a line "    get:". */
static void begin_operation(struct operation *operation, const char *path, const char *line)
{
    *operation = (struct operation){0};
    snprintf(operation->path, sizeof(operation->path), "%s", path);
    for (size_t i = 4; i < 3 + sizeof(operation->method) && line[i] != ':'; i++)
        operation->method[i - 4] = (char)toupper((unsigned char)line[i]);
}

/* Reads the operations line by line: the document is written with one indent throughout. */
static size_t read_document(struct operation *list, size_t most)
{
    char line[256];
    char path[128] = "";
    size_t n = 0;
    FILE *file = fopen(DOCUMENT, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL && value_of(line, "components:") == NULL) {
        const char *value;
        line[strcspn(line, "\n")] = '\0';
        if ((value = value_of(line, "  /")) != NULL) {
            snprintf(path, sizeof(path), "/%.*s", (int)strcspn(value, ":"), value);
        } else if ((value = value_of(line, "      operationId: ")) != NULL) {
            snprintf(list[n - 1].id, sizeof(list[n - 1].id), "%.60s", value);
        } else if ((value = value_of(line, "      x-role: ")) != NULL) {
            snprintf(list[n - 1].role, sizeof(list[n - 1].role), "%.12s", value);
        } else if (strstr(line, "parameters/idempotencyKey") != NULL) {
            list[n - 1].keyed = true;
        } else if (strstr(line, "text/event-stream") != NULL) {
            list[n - 1].events = true;
        } else if (path[0] != '\0' && strncmp(line, "    ", 4) == 0 && islower(line[4]) &&
                   strcmp(line, "    parameters:") != 0) {
            assert_true(n < most);
            begin_operation(&list[n++], path, line);
        }
    }
    fclose(file);
    return n;
}

static void the_table_is_what_the_document_says(void **state)
{
    (void)state;
    struct operation documented[64] = {0};
    size_t n_documented = read_document(documented, 64);
    size_t n;
    const struct tl_control_route *routes = tl_control_routes(&n);
    size_t n_pages = 0; /* which are no calls */
    for (size_t i = 0; i < n; i++) {
        if (routes[i].kind == TL_CONTROL_PREVIEW) {
            n_pages++;
            continue;
        }
        size_t k = 0;
        while (k < n_documented && (strcmp(documented[k].path, routes[i].path) != 0 ||
                                    strcmp(documented[k].method, routes[i].method) != 0))
            k++;
        if (k == n_documented)
            fail_msg("%s %s is not in " DOCUMENT, routes[i].method, routes[i].path);
        assert_string_equal(documented[k].id, routes[i].operation);
        bool signs_in = routes[i].kind == TL_CONTROL_SIGN_IN; /* before there is a role */
        assert_string_equal(documented[k].role, signs_in ? "" : tl_token_role_name(routes[i].role));
        assert_int_equal(documented[k].keyed, routes[i].repeat == TL_REPEAT_KEPT);
        assert_int_equal(documented[k].events, routes[i].kind == TL_CONTROL_EVENTS);
        /* What changes something is never open to those who may only look, but their session is
         * their own. */
        bool own = strncmp(routes[i].path, "/v1/admin/session", 17) == 0;
        assert_true(!routes[i].changes || routes[i].role > TL_TOKEN_VIEWER || own);
        assert_int_equal(strcmp(routes[i].method, "GET") != 0 && !signs_in, routes[i].changes);
        assert_int_equal(routes[i].handler == NULL, routes[i].kind != TL_CONTROL_CALL);
    }
    assert_int_equal(n_pages, 1);
    assert_int_equal(n - n_pages, n_documented);
}

static void a_route_is_found_by_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *method, *target, *operation; /* or "/problems/NAME" */
    } rows[] = {
        {"GET", "/v1/admin/queues/q/line?limit=2", "getLine"},
        {"DELETE", "/v1/admin/queues/q/visitors/a%2Fb", "removeVisitor"},
        {"DELETE", "/v1/admin/session?x", "signOut"},
        {"GET", "/preview/q?state=closed", "getPreview"},
        {"PUT", "/v1/admin/queues", "/problems/method-not-allowed"},
        {"GET", "/v1/admin/queues/", "/problems/not-found"},
        {"GET", "/v1/admin/queues/q/visitors/a/b", "/problems/not-found"},
        {"GET", "/v1/admin", "/problems/not-found"},
        {"GET", "", "/problems/bad-request"},
        {"GET", "/v1/admin/queues/%", "/problems/bad-request"},
        {"GET", "/v1/admin/queues?limit=%", "/problems/bad-query"},
        {"GET", "/v1/admin/queues?limit=1&limit=1", "/problems/bad-query"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tl_target target;
        struct tl_control_answer answer = {0};
        const struct tl_control_route *route =
            tl_control_route_find(rows[i].method, rows[i].target, &target, &answer);
        assert_string_equal(route != NULL ? route->operation
                                          : json_string_value(json_object_get(answer.body, "type")),
                            rows[i].operation);
        assert_string_equal(answer.allow, answer.status == 405 ? "GET, POST" : "");
        tl_control_answer_clear(&answer);
    }
}

static void a_target_is_taken_apart(void **state)
{
    (void)state;
    struct tl_target target;
    const char *pattern = "/v1/admin/queues/{queue}/visitors/{visitor}";
    assert_true(
        tl_target_parse("/v1/admin/queues/q/visitors/a%2fb%20c?x=1%262&y=a+b&z", &target, NULL));
    assert_true(tl_target_matches(&target, pattern));
    assert_string_equal(tl_target_part(&target, pattern, "queue"), "q");
    assert_string_equal(tl_target_part(&target, pattern, "visitor"), "a/b c");
    assert_null(tl_target_part(&target, pattern, "name"));
    assert_string_equal(tl_target_parameter(&target, "x"), "1&2");
    assert_string_equal(tl_target_parameter(&target, "y"), "a b");
    assert_string_equal(tl_target_parameter(&target, "z"), "");
    assert_null(tl_target_parameter(&target, "w"));
}

static void what_is_not_well_formed_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "v1",
        "/%",
        "/%4",
        "/%zz",
        "/%00",
        "/a?x=%",
        "/?x=1&x=2",
        "/1/2/3/4/5/6/7/8/9",
        "/?a&b&c&d&e&f&g&h&i",
    };
    struct tl_target target;
    char longest[TL_TARGET_MAX + 1];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct tl_error err = {0};
        if (tl_target_parse(wrong[i], &target, &err))
            fail_msg("%s", wrong[i]);
        assert_int_equal(err.kind, TL_ERR_INVALID);
    }
    memset(longest, 'a', sizeof(longest) - 1);
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    assert_false(tl_target_parse(longest, &target, NULL));
    longest[sizeof(longest) - 2] = '\0';
    assert_true(tl_target_parse(longest, &target, NULL));
}

static void what_is_escaped_comes_back(void **state)
{
    (void)state;
    char escaped[64] = "/";
    struct tl_target target;
    assert_int_equal(tl_percent_encode("a/b %\"\xc3\xbc?&=", escaped + 1, sizeof(escaped) - 1), 29);
    assert_string_equal(escaped, "/a%2Fb%20%25%22%C3%BC%3F%26%3D");
    assert_true(tl_target_parse(escaped, &target, NULL));
    assert_string_equal(target.segments[0], "a/b %\"\xc3\xbc?&=");
    assert_int_equal(tl_percent_encode("abc", escaped, 3), 3);
    assert_string_equal(escaped, "ab");
    assert_int_equal(tl_percent_encode("ab", escaped, 3), 2);
    assert_int_equal(tl_percent_encode("/a", escaped, 3), 4);
    assert_string_equal(escaped, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_what_the_document_says),
        cmocka_unit_test(a_route_is_found_by_its_path),
        cmocka_unit_test(a_target_is_taken_apart),
        cmocka_unit_test(what_is_not_well_formed_is_refused),
        cmocka_unit_test(what_is_escaped_comes_back),
    };
    return cmocka_run_group_tests_name("routes", tests, NULL, NULL);
}
