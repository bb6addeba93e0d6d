/* SPDX-License-Identifier: Apache-2.0 */
/* The scratch queue of a rehearsal: its name and its settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "ctl/plan/plan.h"

static void test_names(void **state)
{
    (void)state;
    char name[TL_QUEUE_NAME_MAX + 1];
    char other[TL_QUEUE_NAME_MAX + 1];
    char longest[TL_QUEUE_NAME_MAX + 1];
    memset(longest, 'q', TL_QUEUE_NAME_MAX);
    longest[TL_QUEUE_NAME_MAX] = '\0';
    tl_scratch_name("sale", name);
    tl_scratch_name("sale", other);
    assert_int_equal(strncmp(name, "rehearsal-sale-", 15), 0);
    assert_string_not_equal(name, other);
    assert_true(tl_queue_is_rehearsal(name));
    tl_scratch_name(longest, name);
    assert_int_equal(strlen(name), TL_QUEUE_NAME_MAX);
    assert_true(tl_queue_name_valid(name, strlen(name)));
    assert_true(tl_queue_is_rehearsal(name));
    static const char *const others[] = {"sale",
                                         "rehearsal-",
                                         "rehearsal-sale",
                                         "rehearsal-123456",
                                         "rehearsal-sale-12345",
                                         "my-rehearsal-sale-123456"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(tl_queue_is_rehearsal(others[i]));
}

static struct tl_queue_settings sale(void)
{
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    settings.policy = TL_POLICY_BOTH;
    settings.rate.admit = 1400;
    settings.rate.every_ms = 10000;
    settings.session_ttl_ms = 600000;
    settings.claim_ttl_ms = 120000;
    settings.waiting_ttl_ms = 900000;
    return settings;
}

static void test_speed(void **state)
{
    (void)state;
    struct tl_queue_settings settings = sale();
    assert_int_equal(tl_scratch_speed_most(&settings), 100); /* rate.every to 100 ms */
    settings.policy = TL_POLICY_COUNTER;
    assert_int_equal(tl_scratch_speed_most(&settings), 120); /* claim_ttl to 1 s */
    settings.waiting_ttl_ms = 100000;
    assert_int_equal(tl_scratch_speed_most(&settings), 25); /* waiting_ttl to 4 s */
    settings.session_ttl_ms = 500;
    assert_int_equal(tl_scratch_speed_most(&settings), 1);
}

static void test_settings(void **state)
{
    (void)state;
    struct tl_error err;
    struct tl_queue_settings settings = sale();
    settings.mode = TL_MODE_PAUSED;
    settings.opens_at_ms = 5000000;
    snprintf(settings.target_url, sizeof(settings.target_url), "https://shop.example/");
    tl_scratch_settings(&settings, 20, 1000000, 1003000);
    assert_int_equal(settings.rate.every_ms, 500);
    assert_int_equal(settings.session_ttl_ms, 30000);
    assert_int_equal(settings.session_max_ms, 180000);
    assert_int_equal(settings.claim_ttl_ms, 6000);
    assert_int_equal(settings.waiting_ttl_ms, 45000);
    assert_int_equal(settings.capacity, 300);
    assert_int_equal(settings.rate.admit, 1400);
    assert_int_equal(settings.opens_at_ms, 1003000);
    assert_int_equal(settings.mode, TL_MODE_OPEN);
    assert_string_equal(settings.target_url, "https://shop.example/");
    assert_true(tl_queue_settings_validate(&settings, &err));
    /* Open at once; a time that is too short already stays at its bound. */
    settings = sale();
    settings.opens_at_ms = 5000000;
    settings.session_max_ms = 600000;
    tl_scratch_settings(&settings, 10000, 1000000, 0);
    assert_int_equal(settings.opens_at_ms, 0);
    assert_int_equal(settings.session_ttl_ms, 100);
    assert_int_equal(settings.waiting_ttl_ms, 1000);
    assert_true(tl_queue_settings_validate(&settings, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_speed),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
