/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/base/json_text.h"
#include "common/config/queue_settings.h"
#include "tests/unit/random.h"
#include "worker/visit/view.h"

static struct tl_queue_settings settings;

static int start(void **state)
{
    (void)state;
    tl_queue_settings_defaults(&settings);
    settings.capacity = 300;
    strcpy(settings.target_url, "https://shop.example/?a=\"b\"\\c");
    return 0;
}

static struct tl_view sample(enum tl_line_status status)
{
    return (struct tl_view){.queue = "concert",
                            .visitor = "al\"ice\\",
                            .place = tl_place_make(1, 42),
                            .state = {.status = status},
                            .settings = &settings,
                            .waiting = 7,
                            .active = 300};
}

/* The view as JSON; it must be one flat object with no more members than n. */
static json_t *read_view(const struct tl_view *view, size_t n)
{
    char text[TL_VIEW_MAX];
    size_t length = tl_view_write(view, text);
    json_error_t problem;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    assert_non_null(json);
    assert_int_equal(json_object_size(json), n);
    assert_string_equal(json_string_value(json_object_get(json, "visitor")), view->visitor);
    return json;
}

static void string_is(const json_t *json, const char *name, const char *value)
{
    assert_string_equal(json_string_value(json_object_get(json, name)), value);
}

static void number_is(const json_t *json, const char *name, json_int_t value)
{
    assert_true(json_is_integer(json_object_get(json, name)));
    assert_int_equal(json_integer_value(json_object_get(json, name)), value);
}

static void test_waiting(void **state)
{
    (void)state;
    struct tl_view view = sample(TL_LINE_WAITING);
    view.state.ahead = 4;
    json_t *json = read_view(&view, 9);
    string_is(json, "status", "waiting");
    number_is(json, "position", 5);
    number_is(json, "ahead", 4);
    number_is(json, "waiting", 7);
    number_is(json, "active", 300);
    number_is(json, "capacity", 300);
    json_decref(json);

    view.as_of_ms = INT64_C(1795233340500);
    json = read_view(&view, 10);
    string_is(json, "as_of", "2026-11-21T03:55:40.500Z");
    json_decref(json);
    view.as_of_ms = 0;

    view.has_eta = true;
    view.eta_low_s = 10.9;
    view.eta_median_s = 20.5;
    view.eta_high_s = 30.1;
    view.eta_reason = "slower";
    view.ticket = "TICKET";
    view.reference = "Q5T9-4XDR";
    view.has_admitted = true;
    view.admitted = 240;
    json = read_view(&view, 16);
    number_is(json, "admitted_last_minute", 240);
    string_is(json, "reference", "Q5T9-4XDR");
    string_is(json, "ticket", "TICKET");
    number_is(json, "eta_low", 10);
    string_is(json, "eta_reason", "slower");
    number_is(json, "eta_seconds", 21);
    number_is(json, "eta_high", 31);
    json_decref(json);
}

static void test_active(void **state)
{
    (void)state;
    struct tl_view view = sample(TL_LINE_ACTIVE);
    view.state.deadline_ms = INT64_C(1795233340500);
    json_t *json = read_view(&view, 9);
    string_is(json, "status", "active");
    string_is(json, "expires_at", "2026-11-21T03:55:40.500Z");
    string_is(json, "target_url", settings.target_url);
    json_decref(json);
    view.claimed = true;
    json = read_view(&view, 10);
    assert_true(json_is_true(json_object_get(json, "claimed")));
    json_decref(json);
    view.claimed = false;
    settings.target_url[0] = '\0';
    settings.policy = TL_POLICY_RATE;
    json_decref(read_view(&view, 7));
}

static void test_ended(void **state)
{
    (void)state;
    static const struct {
        enum tl_line_status status;
        enum tl_reason reason;
        const char *name, *reason_name;
    } cases[] = {
        {TL_LINE_ENDED, TL_REASON_COMPLETED, "completed", "completed"},
        {TL_LINE_ENDED, TL_REASON_LEFT, "left", "left"},
        {TL_LINE_ENDED, TL_REASON_EXPIRED, "expired", "expired"},
        {TL_LINE_ENDED, TL_REASON_UNCLAIMED, "expired", "unclaimed"},
        {TL_LINE_ENDED, TL_REASON_ABSENT, "expired", "absent"},
        {TL_LINE_ENDED, TL_REASON_REMOVED, "removed", "removed"},
        {TL_LINE_UNKNOWN, 0, "expired", "unknown"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_view view = sample(cases[i].status);
        view.state.reason = cases[i].reason;
        json_t *json = read_view(&view, 7);
        string_is(json, "status", cases[i].name);
        string_is(json, "end_reason", cases[i].reason_name);
        json_decref(json);
    }
    struct tl_view lost = sample(TL_LINE_UNKNOWN);
    lost.lost = true;
    json_t *json = read_view(&lost, 7);
    string_is(json, "end_reason", "lost");
    json_decref(json);
}

static void test_pending(void **state)
{
    (void)state;
    struct tl_view view = sample(TL_LINE_UNKNOWN);
    view.place = tl_place_make(1, 0);
    json_t *json = read_view(&view, 7);
    string_is(json, "status", "pending");
    assert_true(json_integer_value(json_object_get(json, "poll_after_ms")) >= 1000);
    json_decref(json);
}

static void test_polls_grow_rare(void **state)
{
    (void)state;
    struct tl_view view = sample(TL_LINE_WAITING);
    static const struct {
        uint64_t ahead;
        unsigned least;
    } cases[] = {{0, 1000},   {99, 1000},     {100, 2000},
                 {800, 5000}, {25600, 10000}, {10000000, 10000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        view.state.ahead = cases[i].ahead;
        assert_in_range(tl_view_poll_after_ms(&view), cases[i].least, cases[i].least * 11 / 10);
    }
}

/* The longest texts there can be, all of them escaped to six bytes. */
static void test_largest_fits(void **state)
{
    (void)state;
    struct tl_view view = sample(TL_LINE_ACTIVE);
    memset(settings.target_url, 1, sizeof(settings.target_url) - 1);
    settings.target_url[sizeof(settings.target_url) - 1] = '\0';
    view.state.deadline_ms = 1;
    json_decref(read_view(&view, 9));
}

/* A view of any place, in any weather. */
static struct tl_view any_view(uint64_t *chance)
{
    static const enum tl_line_status statuses[] = {TL_LINE_WAITING, TL_LINE_ACTIVE, TL_LINE_ENDED,
                                                   TL_LINE_UNKNOWN};
    struct tl_view view = sample(statuses[random_below(chance, 4)]);
    view.place = tl_place_make(1, random_below(chance, 3));
    view.state.ahead = random_below(chance, 100);
    return view;
}

static void change_weather(uint64_t *chance, struct tl_view *weather)
{
    static const char *const urls[] = {"", "https://shop.example/?a=\"b\""};
    snprintf(settings.target_url, sizeof(settings.target_url), "%s", urls[random_below(chance, 2)]);
    settings.policy = random_below(chance, 2) == 0 ? TL_POLICY_RATE : TL_POLICY_COUNTER;
    settings.capacity = random_below(chance, 9);
    settings.opens_at_ms = (int64_t)random_below(chance, 2) * 2000;
    weather->waiting = random_below(chance, 3);
    weather->active = random_below(chance, 3);
    weather->mode = (enum tl_queue_mode)random_below(chance, TL_MODES);
    weather->phase = (enum tl_phase)random_below(chance, TL_PHASES);
    weather->recovering = random_below(chance, 2) == 0;
    weather->as_of_ms = (int64_t)random_below(chance, 2) * 1000;
    weather->weather++;
}

/* What many views have in common is kept. They read as if each were written on its own. */
static void test_shared(void **state)
{
    static const char *const notices[] = {NULL, "Soon", "\"Bald\"", ""};
    static char text[TL_VIEW_MAX], expected[TL_VIEW_MAX];
    struct tl_view weather = sample(TL_LINE_WAITING);
    struct tl_view_shared *shared = NULL;
    uint64_t chance = random_seed("shared views");
    (void)state;
    for (int i = 0; i < 50000; i++) {
        if (random_below(&chance, 4) == 0)
            change_weather(&chance, &weather);
        struct tl_view view = any_view(&chance);
        view.waiting = weather.waiting;
        view.active = weather.active;
        view.mode = weather.mode;
        view.phase = weather.phase;
        view.recovering = weather.recovering;
        view.as_of_ms = weather.as_of_ms;
        view.store_ms = 1000;
        view.notice = notices[random_below(&chance, 4)];
        size_t length = tl_view_write(&view, expected);
        view.shared = &shared;
        view.weather = weather.weather;
        assert_int_equal(tl_view_write(&view, text), length);
        assert_memory_equal(text, expected, length);
    }
    assert_non_null(shared);
    free(shared);
}

static void test_json_text(void **state)
{
    (void)state;
    char text[128];
    struct tl_json json;
    tl_json_begin(&json, text, sizeof(text));
    tl_json_uint(&json, "a", 0);
    tl_json_uint(&json, "b", UINT64_MAX);
    tl_json_bool(&json, "c", false);
    tl_json_array(&json, "d");
    tl_json_item(&json, "x\n");
    tl_json_item(&json, "");
    tl_json_array_end(&json);
    tl_json_members(&json, "\"e\":1,\"f\":2", 11);
    tl_json_members(&json, "", 0);
    size_t length = tl_json_end(&json);
    static const char expected[] = "{\"a\":0,\"b\":18446744073709551615,\"c\":false,\"d\":["
                                   "\"x\\u000a\",\"\"],\"e\":1,\"f\":2}\n";
    assert_int_equal(length, sizeof(expected) - 1);
    assert_memory_equal(text, expected, length);
    for (size_t size = 0; size < 64; size++) {
        tl_json_begin(&json, text, size);
        tl_json_uint(&json, "a", 0);
        tl_json_string(&json, "b", "12345678901234567890123456789012345678901234567890123456");
        assert_int_equal(tl_json_end(&json), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_waiting, start),
        cmocka_unit_test_setup(test_active, start),
        cmocka_unit_test_setup(test_ended, start),
        cmocka_unit_test_setup(test_pending, start),
        cmocka_unit_test_setup(test_polls_grow_rare, start),
        cmocka_unit_test_setup(test_largest_fits, start),
        cmocka_unit_test_setup(test_shared, start),
        cmocka_unit_test(test_json_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
