/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals and their problem documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/fake_request.h"
#include "worker/http/refusal.h"

static struct tl_request refused(enum tl_refusal_kind kind)
{
    struct tl_request request = {.method = "GET", .path = "/"};
    struct tl_refusal refusal;
    assert_false(tl_refuse(&refusal, kind, "%s", ""));
    tl_problem_answer(&request, &refusal);
    assert_int_equal(request.answers, 1);
    return request;
}

static void every_kind_has_a_status_a_type_and_a_title(void **state)
{
    (void)state;
    for (int kind = 0; kind < TL_REFUSAL_COUNT; kind++) {
        struct tl_request request = refused((enum tl_refusal_kind)kind);
        char status[32];
        assert_in_range(request.status, 400, 599);
        assert_int_equal(request.status, tl_refusal_row((enum tl_refusal_kind)kind)->status);
        assert_string_equal(request.type, "application/problem+json");
        assert_string_equal(request.cache, ""); /* the server says no-store */
        assert_non_null(strstr(request.text, "{\"type\":\"/problems/"));
        assert_non_null(strstr(request.text, "\"title\":\""));
        assert_null(strstr(request.text, "\"title\":\"\""));
        snprintf(status, sizeof(status), "\"status\":%u,", request.status);
        assert_non_null(strstr(request.text, status));
        assert_non_null(strstr(request.text, "\"instance\":\"request-1\"}\n"));
        assert_null(strstr(request.text, "\"detail\""));
    }
}

static void what_passes_by_itself_says_when_to_come_back(void **state)
{
    (void)state;
    for (int kind = 0; kind < TL_REFUSAL_COUNT; kind++) {
        struct tl_request request = refused((enum tl_refusal_kind)kind);
        const char *after = fake_answer_header(&request, "Retry-After");
        if (request.status == 429 || request.status == 503)
            assert_non_null(after);
        if (after != NULL)
            assert_in_range(strtoul(after, NULL, 10), 1, 60);
        else
            assert_int_equal(tl_problem_retry_after_s((enum tl_refusal_kind)kind), 0);
    }
    assert_int_equal(tl_problem_retry_after_s(TL_REFUSAL_NO_QUEUE), 0);
}

static void clients_come_back_spread_over_time(void **state)
{
    (void)state;
    bool given[61] = {false};
    unsigned different = 0;
    for (int i = 0; i < 2000; i++) {
        unsigned after = tl_problem_retry_after_s(TL_REFUSAL_TOO_MANY);
        assert_in_range(after, 30, 60);
        different += given[after] ? 0 : 1;
        given[after] = true;
    }
    assert_int_equal(different, 31);
}

static void an_unknown_visitor_is_told_how_to_say_who_it_is(void **state)
{
    (void)state;
    for (int kind = 0; kind < TL_REFUSAL_COUNT; kind++) {
        struct tl_request request = refused((enum tl_refusal_kind)kind);
        const char *scheme = fake_answer_header(&request, "WWW-Authenticate");
        assert_int_equal(scheme != NULL, request.status == 401);
        if (scheme != NULL)
            assert_string_equal(scheme, "Bearer");
    }
    assert_int_equal(tl_refusal_row(TL_REFUSAL_BAD_TICKET)->status, 401);
}

static void the_detail_is_formatted_escaped_and_cut(void **state)
{
    (void)state;
    struct tl_request request = {.method = "GET", .path = "/"};
    struct tl_refusal refusal;
    assert_false(tl_refuse(&refusal, TL_REFUSAL_BAD_BODY, "line %d: \"%s\"", 3, "x\n"));
    assert_string_equal(refusal.detail, "line 3: \"x\n\"");
    tl_problem_answer(&request, &refusal);
    assert_non_null(strstr(request.text, "\"detail\":\"line 3: \\\"x\\u000a\\\"\","));

    char text[2000];
    memset(text, '"', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    tl_refuse(&refusal, TL_REFUSAL_BAD_BODY, "%s", text);
    assert_int_equal(strlen(refusal.detail), sizeof(refusal.detail) - 1);
    tl_problem_answer(&request, &refusal);
    assert_true(request.length > 500);
    assert_non_null(strstr(request.text, "\"instance\""));
}

static void a_new_refusal_allows_no_methods_by_accident(void **state)
{
    (void)state;
    struct tl_refusal refusal = {.allowed = "GET"};
    tl_refuse(&refusal, TL_REFUSAL_BUSY, "%s", "");
    assert_null(refusal.allowed);
    refusal.allowed = "POST";
    struct tl_request request = {.method = "GET", .path = "/"};
    tl_problem_answer(&request, &refusal);
    assert_string_equal(fake_answer_header(&request, "Allow"), "POST");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_status_a_type_and_a_title),
        cmocka_unit_test(what_passes_by_itself_says_when_to_come_back),
        cmocka_unit_test(clients_come_back_spread_over_time),
        cmocka_unit_test(an_unknown_visitor_is_told_how_to_say_who_it_is),
        cmocka_unit_test(the_detail_is_formatted_escaped_and_cut),
        cmocka_unit_test(a_new_refusal_allows_no_methods_by_accident),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
