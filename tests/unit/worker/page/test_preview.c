/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/page/page.h"
#include "worker/page/preview.h"

#define NOW_MS INT64_C(1800000000000)

static struct tl_languages *languages;
static struct tl_brand *brand;

static const struct tl_brand_settings no_settings;

static int load(void **state)
{
    (void)state;
    languages = tl_languages_new(NULL, NULL);
    brand = languages != NULL ? tl_brand_load(&no_settings, languages, NULL) : NULL;
    return brand != NULL ? 0 : -1;
}

static int release(void **state)
{
    (void)state;
    tl_brand_free(&brand);
    tl_languages_free(&languages);
    return 0;
}

static struct tl_view preview(const char *name)
{
    static struct tl_queue_settings settings;
    struct tl_view view;
    assert_true(tl_page_preview(name, NOW_MS, &settings, &view));
    assert_ptr_equal(view.settings, &settings);
    view.queue = "concert";
    return view;
}

/* A preview that asked would join, leave or go to the shop. */
static void test_previews_ask_for_nothing(void **state)
{
    (void)state;
    const struct tl_catalogue *english = tl_languages_find(languages, "en");
    for (size_t i = 0; tl_page_preview_name(i) != NULL; i++) {
        const struct tl_view view = preview(tl_page_preview_name(i));
        struct tl_text page = {0}, policy = {0};
        tl_page_render(&view, brand, english, &page);
        tl_page_policy(&view, brand, &policy);
        assert_false(page.failed || policy.failed);
        assert_null(strstr(page.data, "http-equiv"));
        assert_null(strstr(page.data, "\"/q/concert"));
        assert_non_null(strstr(page.data, "\"/preview/concert?state="));
        assert_non_null(strstr(policy.data, "connect-src 'none'; form-action 'none'"));
        tl_text_free(&page);
        tl_text_free(&policy);
    }
}

static void says(const struct tl_view *view, const char *text)
{
    struct tl_text page = {0};
    tl_page_render(view, brand, tl_languages_find(languages, "en"), &page);
    assert_non_null(strstr(page.data, text));
    tl_text_free(&page);
}

/* Only a place with a number is kept, whatever becomes of the store. */
static void test_no_promise_before_the_number(void **state)
{
    (void)state;
    struct tl_view view = preview("stale");
    says(&view, "Your place is kept.</p>");
    view.page = TL_PAGE_PENDING;
    says(&view, "from then on your place is saved.</p>");
    says(&view, "data-tl=\"updated\" data-state=\"waiting pending\">Reconnecting… This page tries");
}

/* Each state that a visitor can see has a preview. */
static void test_every_state_has_one(void **state)
{
    (void)state;
    bool shown[TL_PAGE_STATES] = {false};
    for (size_t i = 0; tl_page_preview_name(i) != NULL; i++)
        shown[preview(tl_page_preview_name(i)).page] = true;
    for (size_t i = 0; i < TL_PAGE_STATES; i++)
        assert_true(shown[i]);
    for (size_t i = 0; tl_page_preview_name(i) != NULL; i++) {
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(tl_page_preview_name(i), tl_page_preview_name(j));
    }
}

static void test_times_count_from_now(void **state)
{
    (void)state;
    assert_int_equal(preview("before").settings->opens_at_ms, NOW_MS + 12 * 60 * 1000);
    assert_int_equal(preview("turn").state.deadline_ms, NOW_MS + 2 * 60 * 1000);
    assert_int_equal(preview("stale").as_of_ms, NOW_MS - 40 * 1000);
    assert_int_equal(preview("waiting").settings->opens_at_ms, 0);
}

/* What the queue has of its own stays, but where the state says otherwise. */
static void test_settings_of_the_queue(void **state)
{
    (void)state;
    struct tl_queue_settings settings = {
        .policy = TL_POLICY_RATE, .claim_ttl_ms = 1, .opens_at_ms = NOW_MS, .target_url = "/own"};
    struct tl_view view;
    assert_true(tl_page_preview("no_capacity", NOW_MS, &settings, &view));
    assert_true(settings.policy != TL_POLICY_RATE && settings.capacity == 0);
    assert_int_equal(settings.opens_at_ms, 0);
    assert_int_equal(settings.claim_ttl_ms, 1);
    assert_string_equal(settings.target_url, "/own");
    settings.target_url[0] = '\0';
    assert_true(tl_page_preview("turn", NOW_MS, &settings, &view));
    assert_true(settings.capacity > 0);
    assert_string_equal(settings.target_url, "https://shop.example/");
}

static void test_unknown(void **state)
{
    (void)state;
    struct tl_queue_settings settings = {0};
    struct tl_view view;
    assert_false(tl_page_preview("", NOW_MS, &settings, &view));
    assert_false(tl_page_preview("waiting ", NOW_MS, &settings, &view));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_previews_ask_for_nothing),
        cmocka_unit_test(test_no_promise_before_the_number),
        cmocka_unit_test(test_every_state_has_one),
        cmocka_unit_test(test_times_count_from_now),
        cmocka_unit_test(test_settings_of_the_queue),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, load, release);
}
