/* SPDX-License-Identifier: Apache-2.0 */
/* What a rehearsal reads: views, problems and streams of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/visitors.h"

static struct tl_told told_of(const char *text)
{
    struct tl_told told;
    assert_true(tl_told_read(text, strlen(text), &told));
    return told;
}

static void test_view(void **state)
{
    (void)state;
    struct tl_told told = told_of(
        "{\"queue\":\"q\",\"status\":\"waiting\",\"ticket\":\"abc\",\"position\":7,\"eta_low\":3,"
        "\"eta_high\":9,\"waiting\":12,\"active\":4,\"capacity\":5,\"new_member\":{\"a\":[1]}}");
    assert_int_equal(told.status, TL_TOLD_WAITING);
    assert_string_equal(told.ticket, "abc");
    assert_int_equal(told.position, 7);
    assert_int_equal(told.eta_low, 3);
    assert_int_equal(told.eta_high, 9);
    assert_int_equal(told.waiting, 12);
    assert_int_equal(told.active, 4);
    assert_int_equal(told.expires_ms, -1);
    told = told_of("{\"status\":\"active\",\"expires_at\":\"1970-01-01T00:00:01.250Z\"}");
    assert_int_equal(told.status, TL_TOLD_ACTIVE);
    assert_int_equal(told.expires_ms, 1250);
    assert_int_equal(told.position, -1);
}

static void test_strange_views(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "x",
                                      "[]",
                                      "{}",
                                      "{\"status\":7}",
                                      "{\"status\":\"a\"",
                                      "{\"status\":\"a\",\"status\":\"b\"}"};
    struct tl_told told;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(tl_told_read(bad[i], strlen(bad[i]), &told));
    /* A status of a later release, and members of another type. */
    told = told_of("{\"status\":\"drawing\",\"position\":\"1\",\"waiting\":-3,\"active\":1.5,"
                   "\"ticket\":9,\"expires_at\":\"soon\"}");
    assert_int_equal(told.status, TL_TOLD_OTHER);
    assert_int_equal(told.position, -1);
    assert_int_equal(told.waiting, -1);
    assert_int_equal(told.active, -1);
    assert_string_equal(told.ticket, "");
    assert_int_equal(told.expires_ms, -1);
    char text[TL_TICKET_MAX + 64];
    snprintf(text, sizeof(text), "{\"status\":\"left\",\"ticket\":\"%0*d\"}", TL_TICKET_MAX, 0);
    told = told_of(text);
    assert_int_equal(told.status, TL_TOLD_ENDED);
    assert_string_equal(told.ticket, ""); /* too long */
}

static void test_problems(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{\"type\":\"/problems/too-many-joins\"}", "too-many-joins"},
        {"{\"type\":\"about:blank\"}", ""},
        {"{\"type\":\"/problems/\\u001b[31m\"}", ""},
        {"{\"type\":5}", ""},
        {"<html>", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char type[32];
        tl_problem_read(rows[i][0], strlen(rows[i][0]), type, sizeof(type));
        assert_string_equal(type, rows[i][1]);
    }
}

/* All events as "name=data;". */
static char seen[512];

static void see(void *context, const char *name, const char *data, size_t length)
{
    (void)context;
    size_t used = strlen(seen);
    snprintf(seen + used, sizeof(seen) - used, "%s=%.*s;", name, (int)length, data);
}

/* Feeds the text in pieces of every size: the result must not depend on that. */
static void assert_events(const char *text, const char *expected, int64_t retry_ms)
{
    size_t length = strlen(text);
    for (size_t piece = 1; piece <= length; piece++) {
        struct tl_event_reader reader = {0};
        seen[0] = '\0';
        for (size_t at = 0; at < length; at += piece) {
            size_t n = length - at < piece ? length - at : piece;
            assert_true(tl_event_reader_take(&reader, text + at, n, see, NULL));
        }
        assert_string_equal(seen, expected);
        assert_int_equal(reader.retry_ms, retry_ms);
        tl_event_reader_free(&reader);
    }
}

static void test_events(void **state)
{
    (void)state;
    assert_events("retry: 250\n\n: beat\n\nevent: position\ndata: {}\n\n", "position={};", 250);
    assert_events("event: a\r\ndata: 1\r\n\r\ndata:2\r\r", "a=1;=2;", 0);
    assert_events("data: 1\ndata: 2\nother: x\ndata\n\n", "=1\n2\n;", 0);
    assert_events("event: a\n\ndata: 1\n\n", "=1;", 0); /* a name counts for its own event only */
    assert_events("event: a\ndata: cut off\n", "", 0);
    assert_events("retry: soon\nretry: 99999999999\n\n", "", 0);
    assert_events("event: a name that is longer than any that we know\ndata: 1\n\n", "=1;", 0);
}

static void test_too_long(void **state)
{
    (void)state;
    char *line = malloc(TL_EVENT_BYTES_MAX + 1);
    assert_non_null(line);
    memset(line, 'x', TL_EVENT_BYTES_MAX + 1);
    struct tl_event_reader reader = {0};
    assert_true(tl_event_reader_take(&reader, line, TL_EVENT_BYTES_MAX, see, NULL));
    assert_false(tl_event_reader_take(&reader, line, 1, see, NULL));
    tl_event_reader_free(&reader);
    bool ok = true;
    for (int i = 0; ok && i < TL_EVENT_BYTES_MAX; i++)
        ok = tl_event_reader_take(&reader, "data:0123456789\n", 16, see, NULL);
    assert_false(ok); /* many lines of one event */
    tl_event_reader_free(&reader);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view),     cmocka_unit_test(test_strange_views),
        cmocka_unit_test(test_problems), cmocka_unit_test(test_events),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
