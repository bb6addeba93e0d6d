/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/config/config.h"
#include "worker/page/look.h"
#include "worker/page/page.h"

static struct tl_languages *languages;
static struct tl_brand *brand;

static const struct tl_brand_settings no_settings;

static int load(void **state)
{
    (void)state;
    languages = tl_languages_new(NULL, NULL);
    if (languages != NULL)
        brand = tl_brand_load(&no_settings, languages, NULL);
    return brand == NULL ? -1 : 0;
}

static int unload(void **state)
{
    (void)state;
    tl_brand_free(&brand);
    tl_languages_free(&languages);
    return 0;
}

/* The looks of a queue "demo" with these lines in its `page`. */
static bool make(const char *lines, struct tl_event_looks *looks, struct tl_error *err)
{
    char text[4096];
    int length =
        snprintf(text, sizeof(text), "queues:\n  other: {}\n  demo:\n    page: %s\n", lines);
    assert_true(length > 0 && (size_t)length < sizeof(text));
    const struct tl_config *config = tl_config_parse("x.yaml", text, (size_t)length, err);
    bool made = config != NULL && tl_page_read(config, languages, NULL, looks, err);
    tl_config_free(&config);
    return made;
}

static struct tl_event_looks make_good(const char *lines)
{
    struct tl_error err;
    struct tl_event_looks looks = {0};
    if (!make(lines, &looks, &err))
        fail_msg("%s", err.text);
    return looks;
}

static void is_refused(const char *lines, const char *message)
{
    struct tl_error err = {.kind = TL_OK};
    struct tl_event_looks looks = {0};
    if (make(lines, &looks, &err))
        fail_msg("taken, instead of: %s", message);
    if (strstr(err.text, message) == NULL)
        fail_msg("\"%s\" instead of: %s", err.text, message);
}

static struct tl_text render(const struct tl_event_look *event, enum tl_page_state state,
                             const char *language)
{
    const struct tl_view view = {.page = state,
                                 .queue = "demo",
                                 .event = event,
                                 .state = {.status = TL_LINE_WAITING},
                                 .store_ms = INT64_C(1790000000000)};
    struct tl_text html = {0};
    tl_page_render(&view, brand, tl_languages_find(languages, language), &html);
    assert_false(html.failed);
    return html;
}

static void shows(const struct tl_event_look *event, enum tl_page_state state, const char *language,
                  const char *text)
{
    struct tl_text html = render(event, state, language);
    if (strstr(html.data, text) == NULL)
        fail_msg("%s: no %s in %s", language, text, html.data);
    tl_text_free(&html);
}

static void shows_not(const struct tl_event_look *event, enum tl_page_state state,
                      const char *language, const char *text)
{
    struct tl_text html = render(event, state, language);
    if (strstr(html.data, text) != NULL)
        fail_msg("%s: %s in %s", language, text, html.data);
    tl_text_free(&html);
}

static void test_colour_maths(void **state)
{
    (void)state;
    static const uint32_t dark[] = {0x3b1a78, 0x6d28d9, 0x9333b8}, mixed[] = {0x000000, 0xffffff};
    /* Both ends are light; what is between them is not. */
    static const uint32_t dip[] = {0xffff00, 0x0000ff, 0xffff00};
    assert_true(tl_colour_gradient_contrast(0xffffff, dark, 3) >= TL_COLOUR_AA);
    assert_true(tl_colour_gradient_contrast(0xffffff, mixed, 2) < 1.01);
    assert_true(tl_colour_gradient_contrast(0x000000, dip, 3) < 3);
    assert_int_equal(tl_colour_readable(0x000000, 0xffffff), 0x000000);
    static const uint32_t colours[] = {0x000000, 0x6d28d9, 0xffff00, 0x777777, 0xffffff, 0x00ff00};
    static const uint32_t grounds[] = {0x000000, 0x13111b, 0x767676, 0xf5f4fa, 0xffffff};
    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
        for (size_t j = 0; j < sizeof(grounds) / sizeof(grounds[0]); j++)
            assert_true(tl_colour_contrast(tl_colour_readable(colours[i], grounds[j]),
                                           grounds[j]) >= TL_COLOUR_AA);
    /* The least change: a bit less is not enough. */
    uint32_t readable = tl_colour_readable(0x6d28d9, 0x13111b);
    assert_true(tl_colour_contrast(readable, 0x13111b) < TL_COLOUR_AA + 0.2);
}

/* The scrim of page.css, 65 % of #0c081e, over a picture as bright as can be: #615e6d. */
static void test_scrim(void **state)
{
    (void)state;
    assert_true(tl_colour_contrast(0xffffff, 0x615e6d) >= TL_COLOUR_AA);
    const struct tl_page_file *style = &tl_page_parts[TL_SOURCE_LOOK];
    assert_non_null(memmem(style->bytes, style->length, "rgba(12, 8, 30, .65)", 20));
}

static void test_accent(void **state)
{
    (void)state;
    struct tl_event_looks looks = make_good("{accent: '#6d28d9'}");
    const char *style = tl_event_looks_find(&looks, "demo")->style.text;
    assert_non_null(strstr(style, "not all and (prefers-color-scheme: dark) { :root { --accent: "
                                  "#6d28d9 } }"));
    uint32_t dark;
    char colour[8] = "";
    const char *rule = strstr(style, "media (prefers-color-scheme: dark) { :root { --accent: #");
    assert_non_null(rule);
    memcpy(colour, strchr(rule, '#'), 7);
    assert_true(tl_colour_parse(colour, &dark));
    assert_true(tl_colour_contrast(dark, 0x1d1a28) >= TL_COLOUR_AA);
    assert_true(tl_colour_contrast(dark, 0x13111b) >= TL_COLOUR_AA);
    tl_event_looks_free(&looks);
    is_refused("{accent: '#ffdd00'}", "x.yaml:4:20: queues.demo.page: accent: #ffdd00 on #ffffff "
                                      "has a contrast of 1.3");
    is_refused("{accent: '#ffdd00'}", "choose a darker colour, such as #");
    is_refused("{accent: red}", "not a colour such as");
}

static void test_gradient(void **state)
{
    (void)state;
    struct tl_event_looks looks = make_good("{title: T, gradient: ['#3b1a78', '#6D28D9']}");
    const char *style = tl_event_looks_find(&looks, "demo")->style.text;
    assert_string_equal(style, ":root { --event: linear-gradient(120deg, #3b1a78, #6d28d9); "
                               "--on-event: #ffffff }\n");
    tl_event_looks_free(&looks);
    looks = make_good("{title: T, gradient: ['#ffe9a8', '#ffd1dc', '#c8f0ff']}");
    assert_non_null(strstr(tl_event_looks_find(&looks, "demo")->style.text, "--on-event: #15121f"));
    tl_event_looks_free(&looks);
    is_refused("{gradient: ['#000000', '#ffffff']}",
               "x.yaml:4:22: queues.demo.page: gradient: white text has a contrast of 1.00 to 1");
    is_refused("{gradient: ['#000000', 'blue']}", "x.yaml:4:22: queues.demo.page: gradient: not a");
}

static void test_texts(void **state)
{
    (void)state;
    struct tl_event_looks looks = make_good(
        "{title: {ko: 가을 투어, en: Autumn <Tour>}, place: Olympic Hall, date: 12 & 13 December,\n"
        "      help: /help, texts: {waiting: {de: Gleich!, ko: 곧!}, turn: Now, after: Over,\n"
        "      before: Soon}}");
    const struct tl_event_look *look = tl_event_looks_find(&looks, "demo");
    assert_null(tl_event_looks_find(&looks, "other"));
    shows(look, TL_PAGE_WAITING, "en", "<p class=\"name\" dir=\"auto\">Autumn &lt;Tour&gt;</p>");
    shows(look, TL_PAGE_WAITING, "en", " – Autumn &lt;Tour&gt;</title>");
    shows(look, TL_PAGE_WAITING, "en", "data-brand=\"Autumn &lt;Tour&gt;\"");
    shows(look, TL_PAGE_WAITING, "en", "<p class=\"brand\"></p>");
    shows(look, TL_PAGE_WAITING, "ko", "가을 투어</p>");
    shows(look, TL_PAGE_WAITING, "fr", "Autumn &lt;Tour&gt;</p>");
    shows(look, TL_PAGE_WAITING, "fr", "Olympic Hall</p>");
    shows(look, TL_PAGE_WAITING, "fr", "12 &amp; 13 December</time>");
    shows(look, TL_PAGE_WAITING, "en", "<a href=\"/help\" target=\"_blank\"");
    shows(look, TL_PAGE_WAITING, "ko", ">곧!</p>");
    shows(look, TL_PAGE_WAITING, "fr", ">Gleich!</p>"); /* the first, as there is no English one */
    shows(look, TL_PAGE_WAITING, "en", " dir=\"auto\">Soon</p>");
    shows(look, TL_PAGE_ACTIVE, "en", ">Now</p>");
    shows(look, TL_PAGE_SOLD_OUT, "en", ">Over</p>");
    /* A text in another language than the page's says so; one for all languages cannot. */
    shows(look, TL_PAGE_WAITING, "ko", "<p class=\"name\" dir=\"auto\">가을 투어</p>");
    shows(look, TL_PAGE_WAITING, "fr", "<p class=\"name\" dir=\"auto\" lang=\"en\">Autumn");
    shows(look, TL_PAGE_WAITING, "fr", "lang=\"de\" data-tl=\"event-waiting\">Gleich!</p>");
    shows(look, TL_PAGE_WAITING, "fr", "<p dir=\"auto\">Olympic Hall</p>");
    tl_event_looks_free(&looks);
    looks = make_good("{date: {ko: 12월 12일}}");
    look = tl_event_looks_find(&looks, "demo");
    shows(look, TL_PAGE_WAITING, "ko", " dir=\"auto\">12월 12일</time>");
    shows(look, TL_PAGE_WAITING, "ar", " dir=\"auto\" lang=\"ko\">12월 12일</time>");
    tl_event_looks_free(&looks);
    /* Without an event the page is that of the queue. */
    shows(NULL, TL_PAGE_WAITING, "en", " – demo</title>");
    shows(NULL, TL_PAGE_WAITING, "en", "<p class=\"brand\">demo</p>");
    shows_not(NULL, TL_PAGE_WAITING, "en", "class=\"event");
    shows_not(NULL, TL_PAGE_WAITING, "en", "class=\"says");
    shows_not(NULL, TL_PAGE_WAITING, "en", "target=\"_blank\"");
}

static void test_date(void **state)
{
    (void)state;
    struct tl_event_looks looks = make_good("{date: '2026-12-12T19:00:00+09:00'}");
    const struct tl_event_look *look = tl_event_looks_find(&looks, "demo");
    assert_int_equal(look->date_ms, INT64_C(1797069600000));
    shows(look, TL_PAGE_WAITING, "en",
          "data-ms=\"1797069600000\" datetime=\"2026-12-12T10:00:00Z\"");
    shows(look, TL_PAGE_WAITING, "en", "12 Dec 2026, 10:00 UTC</time>");
    tl_event_looks_free(&looks);
    is_refused("{date: '2026-12-12 19:00'}",
               "x.yaml:4:18: queues.demo.page: date: a time has a zone");
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *message;
    } bad[] = {
        {"[]", "x.yaml:4:11: queues.demo.page: expected a mapping of settings, found a list"},
        {"{titel: x}",
         "x.yaml:4:12: queues.demo.page: unknown setting \"titel\"; did you mean \"title\"?"},
        {"{title: [a]}", "x.yaml:4:19: queues.demo.page.title: expected a text or a mapping from "
                         "languages to texts"},
        {"{title: \"a\\tb\"}", "queues.demo.page.title: holds a control character"},
        {"{title: {xx: a}}",
         "x.yaml:4:19: queues.demo.page: title: the page has no language \"xx\""},
        {"{texts: {now: a}}", "x.yaml:4:20: queues.demo.page.texts: unknown setting \"now\""},
        {"{texts: a}", "x.yaml:4:19: queues.demo.page.texts: expected a mapping of settings"},
        {"{gradient: ['#000000']}",
         "x.yaml:4:22: queues.demo.page.gradient: expected a list of two"},
        {"{gradient: '#000000'}", "queues.demo.page.gradient: expected a list of two"},
        {"{gradient: [a, b, c, d]}",
         "x.yaml:4:22: queues.demo.page.gradient: expected a list of two or three"},
        {"{image: a.png, gradient: ['#000000', '#000000']}",
         "x.yaml:4:19: queues.demo.page.image: there is a gradient as well"},
        {"{image: /nowhere/a.png}", "x.yaml:4:19: queues.demo.page: image: cannot open /nowhere/"},
        {"{image: /nowhere/a.gif}",
         "image: /nowhere/a.gif: the name must end in .jpg, .jpeg, .png"},
        {"{logo: {dark: a.png}}", "x.yaml:4:25: queues.demo.page.logo.dark: `light` is missing"},
        {"{logo: {night: a.png}}", "x.yaml:4:19: queues.demo.page.logo: unknown setting \"night\""},
        {"{help: 'javascript:alert(1)'}",
         "x.yaml:4:18: queues.demo.page: help: expected an address"},
        {"{help: 'http://help.example/'}", "help: expected an address that starts with https://"},
        {"{help: //evil.example/}", "help: expected an address that starts with https://"},
        {"{help: '/\\evil.example'}", "help: expected an address that starts with https://"},
        {"{help: '/a b'}", "help: expected an address that starts with https://"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        is_refused(bad[i].lines, bad[i].message);
    char longest[256];
    snprintf(longest, sizeof(longest), "{title: %0201d}", 0);
    is_refused(longest, "queues.demo.page.title: is 201 bytes long; at most 200 fit");
}

static void test_files(void **state)
{
    (void)state;
    static const char png[] = "\x89PNG\r\n\x1a\nrest";
    char folder[] = "/tmp/tellerline-event-XXXXXX";
    char path[64];
    char lines[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a.png", folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(png, 1, sizeof(png), file), sizeof(png));
    assert_int_equal(fclose(file), 0);
    snprintf(lines, sizeof(lines), "{title: T, image: %s, logo: {light: %s, dark: %s}}", path, path,
             path);
    struct tl_event_looks looks = make_good(lines);
    const struct tl_event_look *look = tl_event_looks_find(&looks, "demo");
    const struct tl_asset *image = tl_look_asset(brand, &looks, look->image.path);
    assert_ptr_equal(image, &look->image.asset);
    assert_string_equal(image->type, "image/png");
    assert_memory_equal(image->bytes, png, sizeof(png));
    assert_int_equal(strncmp(image->path, "/q/assets/image-", 16), 0);
    assert_null(tl_look_asset(brand, &looks, "/q/assets/image-000000000000.png"));
    char expected[256];
    snprintf(expected, sizeof(expected), "<img src=\"%s\" alt=\"\">", image->path);
    shows(look, TL_PAGE_WAITING, "en", expected);
    snprintf(expected, sizeof(expected),
             "<source media=\"(prefers-color-scheme: dark)\" srcset=\"%s\"><img src=\"%s\" "
             "alt=\"T\">",
             look->logo_dark.path, look->logo.path);
    shows(look, TL_PAGE_WAITING, "en", expected);
    tl_event_looks_free(&looks);
    snprintf(lines, sizeof(lines), "{image: %s}", path);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fputs("<html>", file) >= 0 && fclose(file) == 0, 1);
    is_refused(lines, "its content is not image/png");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colour_maths), cmocka_unit_test(test_scrim),
        cmocka_unit_test(test_accent),       cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_texts),        cmocka_unit_test(test_date),
        cmocka_unit_test(test_mistakes),     cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
