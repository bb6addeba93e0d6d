/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/page/look.h"
#include "worker/page/page_assets.h"

static char folder[] = "/tmp/tellerline-brand-XXXXXX";
static struct tl_languages *languages;

static int make_folder(void **state)
{
    (void)state;
    languages = tl_languages_new(NULL, NULL);
    return languages == NULL || mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    tl_languages_free(&languages);
    return rmdir(folder);
}

/* A file in the folder; its path stays valid until the next call. */
static const char *write_file(const char *name, const void *bytes, size_t length)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return path;
}

static const struct tl_event_looks no_events;

/* These stay valid until the next call, as those that a brand borrows. */
static struct tl_brand_settings with_file;

static const struct tl_brand_settings *with_logo(const char *path)
{
    with_file = (struct tl_brand_settings){0};
    snprintf(with_file.logo, sizeof(with_file.logo), "%s", path);
    return &with_file;
}

static const struct tl_brand_settings *with_style(const char *path)
{
    with_file = (struct tl_brand_settings){.accent_light = "#8b1a4a"};
    snprintf(with_file.style, sizeof(with_file.style), "%s", path);
    return &with_file;
}

static struct tl_brand *load(const struct tl_brand_settings *settings)
{
    struct tl_error err;
    struct tl_brand *brand = tl_brand_load(settings, languages, &err);
    if (brand == NULL)
        fail_msg("%s", err.text);
    return brand;
}

static void is_refused(const struct tl_brand_settings *settings, const char *message)
{
    struct tl_error err = {.kind = TL_OK};
    struct tl_brand *brand = tl_brand_load(settings, languages, &err);
    if (brand != NULL)
        fail_msg("taken, instead of: %s", message);
    if (strstr(err.text, message) == NULL)
        fail_msg("\"%s\" instead of: %s", err.text, message);
}

static void test_colours(void **state)
{
    (void)state;
    uint32_t colour = 0;
    assert_true(tl_colour_parse("#1a5FB4", &colour));
    assert_int_equal(colour, 0x1a5fb4);
    static const char *const bad[] = {"", "#", "#12345", "#1234567", "123456", "#12345g", "red"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(tl_colour_parse(bad[i], &colour));
    assert_true(fabs(tl_colour_contrast(0x000000, 0xffffff) - 21) < 0.001);
    assert_true(fabs(tl_colour_contrast(0xffffff, 0xffffff) - 1) < 0.001);
    /* Known from the WCAG literature: #767676 is the lightest grey that passes on white. */
    assert_true(tl_colour_contrast(0x767676, 0xffffff) >= 4.5);
    assert_true(tl_colour_contrast(0x777777, 0xffffff) < 4.5);
}

static const char *source_of(const struct tl_brand *brand, enum tl_page_sources source)
{
    return brand->sources[source].text;
}

static void test_default(void **state)
{
    (void)state;
    struct tl_brand *brand = load(&(struct tl_brand_settings){.name = ""});
    assert_null(source_of(brand, TL_SOURCE_COLOURS));
    assert_null(source_of(brand, TL_SOURCE_OWN));
    assert_non_null(source_of(brand, TL_SOURCE_PAGE));
    assert_null(brand->logo.bytes);
    assert_non_null(brand->template);
    assert_null(tl_look_asset(brand, &no_events, "/q/assets/brand-.css"));
    tl_brand_free(&brand);
    assert_null(brand);
    tl_brand_free(&brand);
}

static void test_accents(void **state)
{
    (void)state;
    struct tl_brand *brand = load(&(struct tl_brand_settings){
        .name = "Hall", .accent_light = "#8b1a4a", .accent_dark = "#f0a0c0"});
    const char *style = source_of(brand, TL_SOURCE_COLOURS);
    assert_non_null(style);
    assert_non_null(strstr(style, "--accent: #8b1a4a"));
    assert_non_null(strstr(style, "--accent: #f0a0c0"));
    tl_brand_free(&brand);

    is_refused(&(struct tl_brand_settings){.accent_light = "#ffcc00"},
               "accent_light: #ffcc00 on #ffffff has a contrast of 1.5");
    is_refused(&(struct tl_brand_settings){.accent_light = "#ffcc00"}, "choose a darker colour");
    is_refused(&(struct tl_brand_settings){.accent_dark = "#203040"}, "choose a lighter colour");
    is_refused(&(struct tl_brand_settings){.accent_light = "red; }"},
               "accent_light: not a colour such as #1a5fb4");
    /* Enough on white, not enough on the page behind it. */
    is_refused(&(struct tl_brand_settings){.accent_light = "#767676"}, "on #f5f4fa");
}

static void test_logo(void **state)
{
    (void)state;
    static const char svg[] = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>";
    const char *path = write_file("logo.svg", svg, sizeof(svg) - 1);
    struct tl_brand *brand = load(with_logo(path));
    const struct tl_asset *logo = &brand->logo.asset;
    assert_non_null(brand->logo.bytes);
    assert_string_equal(logo->type, "image/svg+xml");
    assert_int_equal(logo->length, sizeof(svg) - 1);
    assert_memory_equal(logo->bytes, svg, logo->length);
    assert_ptr_equal(tl_look_asset(brand, &no_events, logo->path), logo);
    tl_brand_free(&brand);
    unlink(path);

    is_refused(&(struct tl_brand_settings){.logo = "/nowhere/logo.svg"},
               "logo: cannot open /nowhere/logo.svg: No such file");
    is_refused(&(struct tl_brand_settings){.logo = "logo.gif"}, "must end in .svg, .png or");
    path = write_file("logo.png", svg, sizeof(svg) - 1);
    is_refused(with_logo(path), "its content is not image/png");
    unlink(path);

    static const char webp[] = "RIFF....WEBP";
    char *large = calloc(1, TL_BRAND_LOGO_MAX + 1);
    assert_non_null(large);
    memcpy(large, webp, sizeof(webp));
    path = write_file("logo.webp", large, TL_BRAND_LOGO_MAX + 1);
    is_refused(with_logo(path), "is too large, at most 102400 bytes");
    path = write_file("logo.webp", large, TL_BRAND_LOGO_MAX);
    brand = load(with_logo(path));
    assert_string_equal(brand->logo.asset.type, "image/webp");
    tl_brand_free(&brand);
    unlink(path);
    free(large);
}

static void test_style(void **state)
{
    (void)state;
    static const char css[] = ".card { border-radius: 0 }\n";
    const char *path = write_file("own.css", css, sizeof(css) - 1);
    struct tl_brand *brand = load(with_style(path));
    assert_string_equal(source_of(brand, TL_SOURCE_OWN), css);
    tl_brand_free(&brand);

    write_file("own.css", css, 0);
    is_refused(with_style(path), "own.css: its content is not text/css");
    write_file("own.css", css, sizeof(css)); /* with its zero byte */
    is_refused(with_style(path), "own.css: its content is not text/css");
    static const char ends[] = "p::after { content: '</STYLE>' }";
    write_file("own.css", ends, sizeof(ends) - 1);
    is_refused(with_style(path), "own.css: holds </style");
    write_file("own.css", "p { content: '\xff' }", 18);
    is_refused(with_style(path), "own.css: is not UTF-8");
    unlink(path);
    is_refused(with_style(path), "style: cannot open /tmp/");
    is_refused(&(struct tl_brand_settings){.style = "own.html"},
               "style: own.html: the name must end in .css");

    char *large = malloc(TL_BRAND_STYLE_MAX + 1);
    assert_non_null(large);
    memset(large, ' ', TL_BRAND_STYLE_MAX + 1);
    path = write_file("large.css", large, TL_BRAND_STYLE_MAX + 1);
    is_refused(with_style(path), "is too large, at most 65536 bytes");
    write_file("large.css", large, TL_BRAND_STYLE_MAX);
    brand = load(with_style(path));
    assert_int_equal(strlen(source_of(brand, TL_SOURCE_OWN)), TL_BRAND_STYLE_MAX);
    tl_brand_free(&brand);
    unlink(path);
    free(large);
}

/* A hash that a browser computes, of the text as it reads it. */
static void test_source(void **state)
{
    (void)state;
    struct tl_page_source source = {0};
    struct tl_error err;
    assert_true(tl_page_source_init(&source, TL_SOURCE_SCRIPT, "t", "abc", 3, &err));
    assert_string_equal(source.hash, "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
    tl_page_source_deinit(&source);
    assert_null(source.text);
    static const char raw[] = "\xef\xbb\xbf"
                              "a\r\nb\rc\n\xed\x95\x9c";
    assert_true(tl_page_source_init(&source, TL_SOURCE_STYLE, "t", raw, sizeof(raw) - 1, &err));
    assert_string_equal(source.text, "a\nb\nc\n\xed\x95\x9c");
    tl_page_source_deinit(&source);
    static const char *const bad[] = {"</Script ", "<!--", "\xc0\x80", "\xed\xa0\x80"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(
            tl_page_source_init(&source, TL_SOURCE_SCRIPT, "t", bad[i], strlen(bad[i]), &err));
        assert_null(source.text);
    }
    assert_false(tl_page_source_init(&source, TL_SOURCE_SCRIPT, "t", "a\0b", 3, &err));
    assert_string_equal(err.text, "t: has a zero byte");
}

static void test_built_in_assets(void **state)
{
    (void)state;
    const struct tl_asset *const all[] = {&tl_page_challenge, &tl_page_icon};
    for (size_t i = 0; i < 2; i++) {
        static const unsigned char gzip_magic[] = {0x1f, 0x8b};
        assert_ptr_equal(tl_page_asset(all[i]->path), all[i]);
        assert_int_equal(strncmp(all[i]->path, TL_ASSET_PREFIX, strlen(TL_ASSET_PREFIX)), 0);
        assert_memory_equal(all[i]->gzip, gzip_magic, 2);
        assert_true(all[i]->etag[0] == '"' && strlen(all[i]->etag) == 14);
    }
    assert_true(all[0]->gzip_length < all[0]->length / 2);
    assert_null(tl_page_asset("/q/assets/page.js"));
    assert_null(tl_page_asset(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colours),         cmocka_unit_test(test_default),
        cmocka_unit_test(test_accents),         cmocka_unit_test(test_logo),
        cmocka_unit_test(test_style),           cmocka_unit_test(test_source),
        cmocka_unit_test(test_built_in_assets),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
