/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/base/log.h"
#include "tests/unit/base/log_capture.h"
#include "tests/unit/random.h"

static void assert_time(const char *text)
{
    static const char shape[] = "9999-99-99T99:99:99.999Z";
    for (size_t i = 0; shape[i] != '\0'; i++) {
        if (shape[i] == '9')
            assert_in_range(text[i], '0', '9');
        else
            assert_int_equal(text[i], shape[i]);
    }
}

/* ---- the format of a line ---- */

static void test_logfmt_line(void **state)
{
    (void)state;
    struct tl_error err;
    tl_error_set(&err, TL_ERR_CONNECT, "cannot reach %s; is it running?", "redis:6379");
    const struct tl_log_fields fields = {
        .queue = "concert", .visitor = "u-7", .connection = "c12", .error = &err};
    init(TL_LOG_INFO, TL_LOG_LOGFMT, "dispatcher");
    const char *text = log_line(TL_LOG_WARN, &fields, "store lost");
    assert_memory_equal(text, "time=", 5);
    assert_time(text + 5);
    assert_memory_equal(text + 29, " level=warn role=dispatcher pid=", 32);
    assert_string_equal(tail(text, " pid="),
                        " queue=concert visitor=u-7 connection=c12 kind=connect"
                        " error=\"cannot reach redis:6379; is it running?\" msg=\"store lost\"\n");
    assert_null(next_line());
    assert_logfmt("", " msg=\"\"\n");
}

static json_t *parse_json(const char *text)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        fail_msg("%s in %s", error.text, text);
    return root;
}

static void test_json_line(void **state)
{
    (void)state;
    struct tl_error err;
    tl_error_set(&err, TL_ERR_OOM, "full");
    const struct tl_log_fields fields = {.queue = "concert", .visitor = "a\"b", .error = &err};
    init(TL_LOG_INFO, TL_LOG_JSON, "worker.2");
    const char *text = log_line(TL_LOG_ERROR, &fields, "cannot\n\"join\"");
    assert_memory_equal(text, "{\"time\":\"", 9);
    assert_time(text + 9);
    assert_string_equal(tail(text, "\"pid\":"),
                        ",\"queue\":\"concert\",\"visitor\":\"a\\\"b\",\"kind\":\"oom\",\"error\":"
                        "\"full\",\"msg\":\"cannot\\n\\\"join\\\"\"}\n");
    json_t *root = parse_json(text);
    assert_string_equal(json_string_value(json_object_get(root, "level")), "error");
    assert_string_equal(json_string_value(json_object_get(root, "role")), "worker.2");
    assert_string_equal(json_string_value(json_object_get(root, "msg")), "cannot\n\"join\"");
    json_decref(root);
}

static void test_levels(void **state)
{
    (void)state;
    static const char *const names[] = {"debug", "info", "warn", "error", "fatal"};
    for (int least = TL_LOG_DEBUG; least <= TL_LOG_FATAL; least++) {
        init((enum tl_log_level)least, TL_LOG_LOGFMT, "expirer");
        for (int level = TL_LOG_DEBUG; level <= TL_LOG_FATAL; level++) {
            const char *text = log_line((enum tl_log_level)level, NULL, "hello");
            if (level < least) {
                assert_null(text);
                continue;
            }
            char expected[32];
            snprintf(expected, sizeof(expected), " level=%s role=", names[level]);
            assert_non_null(text);
            assert_non_null(strstr(text, expected));
        }
    }
}

/* ---- input cannot forge a line ---- */

static void test_logfmt_escaping(void **state)
{
    (void)state;
    init(TL_LOG_INFO, TL_LOG_LOGFMT, "worker");
    assert_logfmt("a\nlevel=fatal", " msg=\"a\\nlevel=fatal\"\n");
    assert_logfmt("\" level=fatal msg=\"", " msg=\"\\\" level=fatal msg=\\\"\"\n");
    assert_logfmt("back\\", " msg=\"back\\\\\"\n");
    assert_logfmt("\t\r\x01\x1b[31m\x7f", " msg=\"\\t\\r\\u0001\\u001b[31m\\u007f\"\n");
    assert_logfmt("J\xc3\xbcrgen \xe6\x97\xa5 \xf0\x9f\x8e\xab",
                  " msg=\"J\xc3\xbcrgen \xe6\x97\xa5 \xf0\x9f\x8e\xab\"\n");
    /* C1 controls (CSI), line separator, right-to-left override, zero-width space, byte order mark
     */
    assert_logfmt("\xc2\x9b \xe2\x80\xa8 \xe2\x80\xae \xe2\x80\x8b \xef\xbb\xbf \xc2\xad",
                  " msg=\"\\u009b \\u2028 \\u202e \\u200b \\ufeff \\u00ad\"\n");
    /* Malformed: a lone continuation, overlong '/', a surrogate, beyond Unicode, cut short, never
     * valid */
    assert_logfmt("\x80 \xc0\xaf", " msg=\"\\x80 \\xc0\\xaf\"\n");
    assert_logfmt("\xed\xa0\x80", " msg=\"\\xed\\xa0\\x80\"\n");
    assert_logfmt("\xe0\x80\xaf \xf0\x80\x80\xaf",
                  " msg=\"\\xe0\\x80\\xaf \\xf0\\x80\\x80\\xaf\"\n");
    assert_logfmt("\xf4\x90\x80\x80", " msg=\"\\xf4\\x90\\x80\\x80\"\n");
    assert_logfmt("\xe6\x97", " msg=\"\\xe6\\x97\"\n");
    assert_logfmt("\xff\xfe", " msg=\"\\xff\\xfe\"\n");
}

static void test_logfmt_fields(void **state)
{
    (void)state;
    const struct tl_log_fields fields = {
        .queue = "q level=fatal", .visitor = "", .connection = "a=b"};
    const struct tl_log_fields hostile = {
        .queue = "x\ny", .visitor = "\"", .connection = "\xc3\xa9"};
    init(TL_LOG_INFO, TL_LOG_LOGFMT, "worker");
    assert_string_equal(tail(log_line(TL_LOG_INFO, &fields, "m"), " pid="),
                        " queue=\"q level=fatal\" visitor=\"\" connection=\"a=b\" msg=\"m\"\n");
    assert_string_equal(tail(log_line(TL_LOG_INFO, &hostile, "m"), " pid="),
                        " queue=\"x\\ny\" visitor=\"\\\"\" connection=\"\xc3\xa9\" msg=\"m\"\n");
}

static void test_json_escaping(void **state)
{
    (void)state;
    init(TL_LOG_INFO, TL_LOG_JSON, "worker");
    const char *text =
        log_line(TL_LOG_INFO, NULL, "\x01\x1b\x7f\t\xc2\x9b\xe2\x80\xae\xff\xe6\x97\xa5");
    assert_string_equal(
        tail(text, "\"pid\":"),
        ",\"msg\":\"\\u0001\\u001b\\u007f\\t\\u009b\\u202e\\ufffd\xe6\x97\xa5\"}\n");
    text = log_line(TL_LOG_INFO, NULL, "\",\"level\":\"fatal");
    json_t *root = parse_json(text);
    assert_string_equal(json_string_value(json_object_get(root, "level")), "info");
    assert_string_equal(json_string_value(json_object_get(root, "msg")), "\",\"level\":\"fatal");
    json_decref(root);
}

/* Random bytes in every field, in both formats: one line, well formed, never too long. */
static void test_random_bytes(void **state)
{
    (void)state;
    uint64_t random = random_seed("log");
    for (int i = 0; i < 20000; i++) {
        char values[4][700];
        for (size_t v = 0; v < 4; v++) {
            size_t length = random_below(&random, i % 50 == 0 ? sizeof(values[v]) : 40);
            for (size_t at = 0; at < length; at++)
                values[v][at] = (char)(1 + random_below(&random, 255));
            values[v][length] = '\0';
        }
        struct tl_error err;
        tl_error_set(&err, TL_ERR_STORE, "%s", values[0]);
        const struct tl_log_fields fields = {
            .queue = values[1], .visitor = values[2], .connection = values[3], .error = &err};
        init(TL_LOG_INFO, i % 2 == 0 ? TL_LOG_LOGFMT : TL_LOG_JSON, "worker");
        const char *text = log_line(TL_LOG_INFO, &fields, values[i % 4]);
        assert_non_null(text);
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
        assert_true(strlen(text) <= 4096);
        if (i % 2 == 0)
            assert_message_closes(text);
        else
            json_decref(parse_json(text));
    }
}

/* The longest of everything still fits, is marked as cut, and keeps every field. */
static void test_long_values(void **state)
{
    (void)state;
    static char text[8000];
    static const char *const fillers[] = {"x", "\x01", "\xff", "\xf0\x9f\x8e\xab", "\""};
    for (size_t f = 0; f < sizeof(fillers) / sizeof(fillers[0]); f++) {
        text[0] = '\0';
        for (size_t n = 0; n + strlen(fillers[f]) < sizeof(text); n += strlen(fillers[f]))
            memcpy(text + n, fillers[f], strlen(fillers[f]) + 1);
        struct tl_error err;
        tl_error_set(&err, TL_ERR_READONLY, "%s", text);
        const struct tl_log_fields fields = {
            .queue = text, .visitor = text, .connection = text, .error = &err};
        init(TL_LOG_INFO, TL_LOG_LOGFMT, text);
        const char *cut = log_line(TL_LOG_FATAL, &fields, text);
        assert_in_range(strlen(cut), 2048, 4096);
        assert_non_null(strstr(cut, " kind=readonly error="));
        assert_message_closes(cut);
        assert_string_equal(cut + strlen(cut) - 5, "...\"\n");
        init(TL_LOG_INFO, TL_LOG_JSON, text);
        cut = log_line(TL_LOG_FATAL, &fields, text);
        assert_in_range(strlen(cut), 2048, 4096);
        json_t *root = parse_json(cut);
        assert_int_equal(json_object_size(root), 10);
        json_decref(root);
    }
    init(TL_LOG_INFO, TL_LOG_LOGFMT, "worker");
}

/* ---- repeated trouble ---- */

static void test_rate_limit(void **state)
{
    (void)state;
    struct tl_log_limit limit = {0};
    unsigned suppressed = 99;
    assert_true(tl_log_allow(&limit, 5000, 1000, &suppressed));
    assert_int_equal(suppressed, 0);
    for (int64_t now = 5000; now < 6000; now += 10)
        assert_false(tl_log_allow(&limit, now, 1000, &suppressed));
    assert_true(tl_log_allow(&limit, 6000, 1000, &suppressed));
    assert_int_equal(suppressed, 100);
    assert_false(tl_log_allow(&limit, 6999, 1000, &suppressed));
    assert_true(tl_log_allow(&limit, 60000, 1000, &suppressed));
    assert_int_equal(suppressed, 1);
    assert_true(tl_log_allow(&limit, 61000, 1000, &suppressed));
    assert_int_equal(suppressed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logfmt_line),   cmocka_unit_test(test_json_line),
        cmocka_unit_test(test_levels),        cmocka_unit_test(test_logfmt_escaping),
        cmocka_unit_test(test_logfmt_fields), cmocka_unit_test(test_json_escaping),
        cmocka_unit_test(test_random_bytes),  cmocka_unit_test(test_long_values),
        cmocka_unit_test(test_rate_limit),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
