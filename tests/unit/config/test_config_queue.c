/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/config.h"
#include "common/config/queue_settings.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct pair {
    const char *name;
    const char *value;
};

struct bad {
    const char *name;
    const char *value;
    const char *message;
};

static const struct pair defaults[] = {
    {"policy", "counter"},
    {"capacity", "300"},
    {"capacity.min", "0"},
    {"overbook", "0"},
    {"adaptive.load_max", "80"},
    {"adaptive.latency_max", "0"},
    {"adaptive.errors_max", "5"},
    {"adaptive.every", "5000"},
    {"adaptive.raise", "2"},
    {"adaptive.cut", "30"},
    {"adaptive.hold", "15000"},
    {"adaptive.fresh", "15000"},
    {"rate.admit", "0"},
    {"rate.every", "10000"},
    {"rate.shape", "smooth"},
    {"rate.burst", "0"},
    {"session_ttl", "600000"},
    {"session_sliding", "false"},
    {"session_max", "3600000"},
    {"claim_ttl", "120000"},
    {"waiting_ttl", "600000"},
    {"recovery_window", "60000"},
    {"lanes", "vip,normal"},
    {"default_lane", "normal"},
    {"lane_weights", ""},
    {"opens_at", "0"},
    {"closes_at", "0"},
    {"after_close", "drain"},
    {"order", "arrival"},
    {"join", "open"},
    {"max_waiting", "0"},
    {"reopen.margin", "5"},
    {"reopen.after", "10000"},
    {"challenge", "none"},
    {"on_store_error", "closed"},
    {"session_sharing", "count"},
    {"mode", "open"},
    {"closed_text", ""},
    {"sold_out_text", ""},
    {"target_url", ""},
};

static void the_defaults_are_listed_as_canonical_text(void **state)
{
    (void)state;
    struct tl_queue_settings settings;
    const char *name;
    char value[TL_QUEUE_VALUE_MAX];
    tl_queue_settings_defaults(&settings);
    for (size_t i = 0; i < COUNT(defaults); i++) {
        assert_true(tl_queue_settings_get(&settings, i, &name, value, sizeof(value)));
        assert_string_equal(name, defaults[i].name);
        assert_string_equal(value, defaults[i].value);
    }
    assert_false(tl_queue_settings_get(&settings, COUNT(defaults), &name, value, sizeof(value)));
    assert_true(tl_queue_settings_validate(&settings, NULL));
}

static const struct pair changes[] = {
    {"policy", "both"},
    {"capacity", "0"},
    {"capacity.min", "0"},
    {"overbook", "3"},
    {"adaptive.load_max", "70"},
    {"adaptive.latency_max", "800"},
    {"adaptive.errors_max", "100"},
    {"adaptive.every", "60000"},
    {"adaptive.raise", "100"},
    {"adaptive.cut", "90"},
    {"adaptive.hold", "1000"},
    {"adaptive.fresh", "3600000"},
    {"rate.admit", "7"},
    {"rate.every", "60000"},
    {"rate.shape", "batches"},
    {"rate.burst", "9"},
    {"session_ttl", "1500"},
    {"session_sliding", "true"},
    {"session_max", "90000"},
    {"claim_ttl", "100"},
    {"waiting_ttl", "1000"},
    {"recovery_window", "0"},
    {"lanes", "a,b-2,c_3"},
    {"default_lane", "b-2"},
    {"lane_weights", "30,5,1"},
    {"opens_at", "1796122800250"},
    {"closes_at", "1796122900250"},
    {"after_close", "stop"},
    {"order", "draw"},
    {"join", "invited"},
    {"max_waiting", "2000000"},
    {"reopen.margin", "50"},
    {"reopen.after", "0"},
    {"challenge", "external"},
    {"on_store_error", "open"},
    {"session_sharing", "refuse"},
    {"mode", "sold_out"},
    {"closed_text", "\x1e[en] Come back tomorrow.\x1e[ko] 내일 다시 오세요."},
    {"sold_out_text", "All tickets are sold."},
    {"target_url", "https://shop.example/x"},
};

static void what_is_got_can_be_set(void **state)
{
    (void)state;
    struct tl_queue_settings settings;
    struct tl_queue_settings copy;
    const char *name;
    char value[TL_QUEUE_VALUE_MAX];
    tl_queue_settings_defaults(&settings);
    tl_queue_settings_defaults(&copy);
    assert_int_equal(COUNT(changes), COUNT(defaults));
    for (size_t i = 0; i < COUNT(changes); i++) {
        assert_true(tl_queue_settings_set(&settings, changes[i].name, changes[i].value,
                                          TL_FORM_STORE, NULL));
        assert_true(tl_queue_settings_get(&settings, i, &name, value, sizeof(value)));
        assert_string_equal(value, changes[i].value);
        assert_true(tl_queue_settings_set(&copy, name, value, TL_FORM_STORE, NULL));
    }
    assert_memory_equal(&settings, &copy, sizeof(settings));
}

static void people_write_units_and_offsets(void **state)
{
    (void)state;
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    assert_true(tl_queue_settings_set(&settings, "session_ttl", "5m", TL_FORM_FILE, NULL));
    assert_int_equal(settings.session_ttl_ms, 300000);
    assert_true(tl_queue_settings_set(&settings, "opens_at", "2026-12-01T20:00:00+09:00",
                                      TL_FORM_FILE, NULL));
    assert_int_equal(settings.opens_at_ms, INT64_C(1796122800000));
    assert_true(tl_queue_settings_set(&settings, "opens_at", "", TL_FORM_FILE, NULL));
    assert_int_equal(settings.opens_at_ms, 0);
}

/* What the scripts cannot calculate with is refused, so that `audit` sees it. */
static void the_store_has_plain_milliseconds_only(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"session_ttl", "10m", "session_ttl: \"10m\" is not a whole number"},
        {"session_ttl", "99", "session_ttl: \"99\" is out of bounds (100ms to 7d)"},
        {"session_ttl", "9223372036854775808",
         "session_ttl: \"9223372036854775808\" is out of bounds (100ms to 7d)"},
        {"opens_at", "2026-12-01T20:00:00+09:00",
         "opens_at: \"2026-12-01T20:00:00+09:00\" is not a whole number"},
        {"opens_at", "", "opens_at: \"\" is not a whole number"},
        {"capacity", "auto", "capacity: \"auto\" is not a whole number (0 to 10000000)"},
        {"capacity_min", "7", "\"capacity_min\" is not a setting of a queue"},
    };
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tl_error err = {0};
        assert_false(
            tl_queue_settings_set(&settings, cases[i].name, cases[i].value, TL_FORM_STORE, &err));
        assert_string_equal(err.text, cases[i].message);
    }
}

static void a_bad_value_changes_nothing(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"capasity", "1", "\"capasity\" is not a setting of a queue"},
        {"zzz", "1", "\"zzz\" is not a setting of a queue"},
        {"rate_admit", "1", "\"rate_admit\" is not a setting of a queue"},
        {"capacity", "10000001", "capacity: \"10000001\" is out of bounds (0 to 10000000)"},
        {"capacity", "", "capacity: \"\" is not a whole number (0 to 10000000)"},
        {"session_ttl", "99ms", "session_ttl: \"99ms\" is out of bounds (100ms to 7d)"},
        {"session_ttl", "9223372036854775808ms",
         "session_ttl: \"9223372036854775808ms\" is too long a duration (100ms to 7d)"},
        {"session_ttl", "600",
         "session_ttl: \"600\" is not a duration such as 250ms, 10s, 5m, 2h or 1d (100ms to 7d)"},
        {"session_ttl", "-5",
         "session_ttl: \"-5\" is not a duration such as 250ms, 10s, 5m, 2h or 1d (100ms to 7d)"},
        {"opens_at", "1795500000",
         "opens_at: \"1795500000\" is not a time with an offset such as 2026-12-01T20:00:00+09:00 "
         "(RFC 3339 with an offset, from 1970 on; or empty)"},
        {"opens_at", "1969-12-31T23:59:59Z",
         "opens_at: \"1969-12-31T23:59:59Z\" is out of bounds (RFC 3339 with an offset, from 1970 "
         "on; or empty)"},
        {"lanes", "a,B",
         "lanes: \"B\" is not a lane's name (1 to 16 names of a-z, 0-9, '-' and '_', each at most "
         "31 "
         "bytes)"},
        {"lanes", " , ",
         "lanes: must not be empty (1 to 16 names of a-z, 0-9, '-' and '_', each at most 31 "
         "bytes)"},
        {"lanes", "a,a", "lanes: lane \"a\" is named twice"},
        {"default_lane", "gold", "default_lane: \"gold\" is not one of the lanes: vip, normal"},
        {"lane_weights", "3,0",
         "lane_weights: \"3,0\" is not a list of weights (a whole number from 1 to 1000 for each "
         "lane; or empty)"},
        {"lane_weights", "997,991,983,977",
         "lane_weights: the least common multiple of these weights is above 1000000000: choose "
         "weights with common factors"},
        {"target_url", "https://a b",
         "target_url: not an address that starts with http:// or https:// and names a host, in "
         "ASCII "
         "without spaces"},
    };
    struct tl_queue_settings settings;
    struct tl_queue_settings before;
    tl_queue_settings_defaults(&settings);
    before = settings;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tl_error err = {0};
        assert_false(
            tl_queue_settings_set(&settings, cases[i].name, cases[i].value, TL_FORM_FILE, &err));
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(err.kind, TL_ERR_INVALID);
        assert_memory_equal(&settings, &before, sizeof(settings));
    }
}

static void the_default_lane_follows_its_name(void **state)
{
    (void)state;
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    assert_true(tl_queue_settings_set(&settings, "lanes", "normal,late", TL_FORM_FILE, NULL));
    assert_int_equal(settings.default_lane, 0);
    assert_true(tl_queue_settings_set(&settings, "lanes", "a,b,c", TL_FORM_FILE, NULL));
    assert_int_equal(settings.default_lane, 2);
    assert_true(tl_queue_settings_set(&settings, "lanes", "a", TL_FORM_FILE, NULL));
    assert_int_equal(settings.default_lane, 0);
}

static void what_spans_settings_is_validated(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"policy", "rate",
         "policy \"rate\" needs a rate: set rate.admit, and rate.every (10s unless set)"},
        {"policy", "both",
         "policy \"both\" needs a rate: set rate.admit, and rate.every (10s unless set)"},
        {"rate.shape", "batches",
         "rate.burst (2) is for the shape \"smooth\": a batch is never larger than rate.admit"},
        {"order", "draw", "order \"draw\" needs opens_at: the draw is held then"},
        {"session_max", "599999ms",
         "session_max (599999ms) must not be shorter than session_ttl (10m) with session_sliding"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tl_queue_settings settings;
        struct tl_error err = {0};
        tl_queue_settings_defaults(&settings);
        settings.session_sliding = true;
        settings.rate.burst = 2;
        assert_true(tl_queue_settings_validate(&settings, &err));
        assert_true(
            tl_queue_settings_set(&settings, cases[i].name, cases[i].value, TL_FORM_FILE, NULL));
        assert_false(tl_queue_settings_validate(&settings, &err));
        assert_string_equal(err.text, cases[i].message);
    }
}

static void a_policy_by_rate_with_a_rate_is_valid(void **state)
{
    (void)state;
    static const char *const policies[] = {"rate", "both"};
    for (size_t i = 0; i < COUNT(policies); i++) {
        struct tl_queue_settings settings;
        tl_queue_settings_defaults(&settings);
        assert_true(tl_queue_settings_set(&settings, "policy", policies[i], TL_FORM_FILE, NULL));
        assert_true(tl_queue_settings_set(&settings, "rate.admit", "1", TL_FORM_FILE, NULL));
        assert_true(tl_queue_settings_validate(&settings, NULL));
        assert_true(tl_queue_settings_set(&settings, "rate.shape", "batches", TL_FORM_FILE, NULL));
        assert_true(tl_queue_settings_validate(&settings, NULL));
    }
}

static void weights_are_for_every_lane(void **state)
{
    (void)state;
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&settings);
    assert_true(tl_queue_settings_set(&settings, "lane_weights", "3,1", TL_FORM_FILE, NULL));
    assert_true(tl_queue_settings_validate(&settings, NULL));
    assert_true(tl_queue_settings_set(&settings, "lanes", "vip,early,normal", TL_FORM_FILE, NULL));
    assert_false(tl_queue_settings_validate(&settings, &err));
    assert_string_equal(err.text, "lane_weights has 2 numbers for 3 lanes: set one for each lane, "
                                  "in one step with lanes, or none");
    assert_true(tl_queue_settings_set(&settings, "lane_weights", "", TL_FORM_FILE, NULL));
    assert_true(tl_queue_settings_validate(&settings, NULL));
}

static void lanes_out_of_range_are_invalid(void **state)
{
    (void)state;
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    settings.default_lane = 2;
    assert_false(tl_queue_settings_validate(&settings, NULL));
    tl_queue_settings_defaults(&settings);
    settings.n_lanes = 0;
    assert_false(tl_queue_settings_validate(&settings, NULL));
    settings.n_lanes = TL_LANES_MAX + 1;
    assert_false(tl_queue_settings_validate(&settings, NULL));
}

static void every_value_fits_the_promised_size(void **state)
{
    (void)state;
    struct tl_queue_settings settings;
    char url[1025];
    char value[TL_QUEUE_VALUE_MAX];
    const char *name;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&settings);
    memset(url, 'x', sizeof(url));
    memcpy(url, "http://", 7);
    url[1024] = '\0';
    assert_false(tl_queue_settings_set(&settings, "target_url", url, TL_FORM_FILE, &err));
    assert_string_equal(err.text, "target_url: is 1024 bytes long; at most 1023 fit");
    url[1023] = '\0';
    assert_true(tl_queue_settings_set(&settings, "target_url", url, TL_FORM_FILE, NULL));
    assert_true(tl_queue_settings_get(&settings, COUNT(defaults) - 1, &name, value, sizeof(value)));
    assert_string_equal(value, url);
}

static void the_capacity_that_counts_is_within_its_bounds(void **state)
{
    (void)state;
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    settings.capacity = 100;
    settings.now.capacity = 50;
    assert_int_equal(tl_queue_capacity(&settings), 100);
    settings.capacity_min = 20;
    assert_int_equal(tl_queue_capacity(&settings), 50);
    settings.now.capacity = 0;
    assert_int_equal(tl_queue_capacity(&settings), 20);
    settings.now.capacity = 101;
    assert_int_equal(tl_queue_capacity(&settings), 100);
    settings.capacity = 10; /* below capacity.min, by hand */
    assert_int_equal(tl_queue_capacity(&settings), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_listed_as_canonical_text),
        cmocka_unit_test(what_is_got_can_be_set),
        cmocka_unit_test(the_capacity_that_counts_is_within_its_bounds),
        cmocka_unit_test(people_write_units_and_offsets),
        cmocka_unit_test(the_store_has_plain_milliseconds_only),
        cmocka_unit_test(a_bad_value_changes_nothing),
        cmocka_unit_test(the_default_lane_follows_its_name),
        cmocka_unit_test(what_spans_settings_is_validated),
        cmocka_unit_test(a_policy_by_rate_with_a_rate_is_valid),
        cmocka_unit_test(weights_are_for_every_lane),
        cmocka_unit_test(lanes_out_of_range_are_invalid),
        cmocka_unit_test(every_value_fits_the_promised_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
