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

#include "worker/page/brand.h"
#include "worker/page/colour.h"

static char folder[] = "/tmp/tellerline-brand-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
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

static struct tl_brand *load(const struct tl_brand_settings *settings)
{
    struct tl_error err;
    struct tl_brand *brand = tl_brand_load(settings, &err);
    if (brand == NULL)
        fail_msg("%s", err.text);
    return brand;
}

static void is_refused(const struct tl_brand_settings *settings, const char *message)
{
    struct tl_error err = {.kind = TL_OK};
    struct tl_brand *brand = tl_brand_load(settings, &err);
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

static void test_default(void **state)
{
    (void)state;
    struct tl_brand *brand = load(&(struct tl_brand_settings){.name = NULL});
    assert_string_equal(tl_brand_look(brand)->name, "");
    assert_string_equal(tl_brand_look(brand)->text[TL_LANGUAGE_KO], "");
    assert_null(tl_brand_look(brand)->colours);
    assert_null(tl_brand_look(brand)->style);
    assert_null(tl_brand_look(brand)->logo);
    assert_non_null(tl_brand_look(brand)->template);
    assert_null(tl_brand_asset(brand, "/q/assets/brand-.css"));
    tl_brand_free(&brand);
    assert_null(brand);
    tl_brand_free(&brand);
}

static void test_accents(void **state)
{
    (void)state;
    struct tl_brand *brand = load(&(struct tl_brand_settings){
        .name = "Hall", .accent_light = "#8b1a4a", .accent_dark = "#f0a0c0"});
    const struct tl_asset *style = tl_brand_look(brand)->colours;
    assert_non_null(style);
    assert_non_null(strstr(style->bytes, "--accent: #8b1a4a"));
    assert_non_null(strstr(style->bytes, "--accent: #f0a0c0"));
    assert_int_equal(strlen(style->bytes), style->length);
    assert_int_equal(strncmp(style->path, "/q/assets/brand-", 16), 0);
    assert_ptr_equal(tl_brand_asset(brand, style->path), style);
    tl_brand_free(&brand);

    is_refused(&(struct tl_brand_settings){.accent_light = "#ffcc00"},
               "accent_light: #ffcc00 on #ffffff has a contrast of 1.5");
    is_refused(&(struct tl_brand_settings){.accent_light = "#ffcc00"}, "choose a darker colour");
    is_refused(&(struct tl_brand_settings){.accent_dark = "#203040"}, "choose a lighter colour");
    is_refused(&(struct tl_brand_settings){.accent_light = "red; }"},
               "accent_light: not a colour such as #1a5fb4");
    /* Enough on white, not enough on the page behind it. */
    is_refused(&(struct tl_brand_settings){.accent_light = "#767676"}, "on #f4f6f9");
}

static void test_logo(void **state)
{
    (void)state;
    static const char svg[] = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>";
    const char *path = write_file("logo.svg", svg, sizeof(svg) - 1);
    struct tl_brand *brand = load(&(struct tl_brand_settings){.logo_file = path});
    const struct tl_asset *logo = tl_brand_look(brand)->logo;
    assert_non_null(logo);
    assert_string_equal(logo->type, "image/svg+xml");
    assert_int_equal(logo->length, sizeof(svg) - 1);
    assert_memory_equal(logo->bytes, svg, logo->length);
    assert_ptr_equal(tl_brand_asset(brand, logo->path), logo);
    tl_brand_free(&brand);
    unlink(path);

    is_refused(&(struct tl_brand_settings){.logo_file = "/nowhere/logo.svg"},
               "logo: cannot open /nowhere/logo.svg: No such file");
    is_refused(&(struct tl_brand_settings){.logo_file = "logo.gif"}, "must end in .svg, .png or");
    path = write_file("logo.png", svg, sizeof(svg) - 1);
    is_refused(&(struct tl_brand_settings){.logo_file = path}, "its content is not image/png");
    unlink(path);

    static const char webp[] = "RIFF....WEBP";
    char *large = calloc(1, TL_BRAND_LOGO_MAX + 1);
    assert_non_null(large);
    memcpy(large, webp, sizeof(webp));
    path = write_file("logo.webp", large, TL_BRAND_LOGO_MAX + 1);
    is_refused(&(struct tl_brand_settings){.logo_file = path},
               "is too large, at most 102400 bytes");
    path = write_file("logo.webp", large, TL_BRAND_LOGO_MAX);
    brand = load(&(struct tl_brand_settings){.logo_file = path});
    assert_string_equal(tl_brand_look(brand)->logo->type, "image/webp");
    tl_brand_free(&brand);
    unlink(path);
    free(large);
}

static void test_texts(void **state)
{
    (void)state;
    char longest[TL_BRAND_NAME_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    is_refused(&(struct tl_brand_settings){.name = longest}, "name: 81 bytes, at most 80");
    longest[TL_BRAND_NAME_MAX] = '\0';
    struct tl_brand *brand =
        load(&(struct tl_brand_settings){.name = longest, .text = {"English", "한국어"}});
    assert_string_equal(tl_brand_look(brand)->name, longest);
    assert_string_equal(tl_brand_look(brand)->text[TL_LANGUAGE_EN], "English");
    assert_string_equal(tl_brand_look(brand)->text[TL_LANGUAGE_KO], "한국어");
    tl_brand_free(&brand);
}

static void test_style(void **state)
{
    (void)state;
    static const char css[] = ".card { border-radius: 0 }\n";
    const char *path = write_file("own.css", css, sizeof(css) - 1);
    struct tl_brand *brand =
        load(&(struct tl_brand_settings){.style_file = path, .accent_light = "#8b1a4a"});
    const struct tl_asset *style = tl_brand_look(brand)->style;
    assert_non_null(style);
    assert_string_equal(style->type, "text/css; charset=utf-8");
    assert_int_equal(strncmp(style->path, "/q/assets/style-", 16), 0);
    assert_int_equal(style->length, sizeof(css) - 1);
    assert_memory_equal(style->bytes, css, style->length);
    assert_ptr_equal(tl_brand_asset(brand, style->path), style);
    assert_ptr_not_equal(tl_brand_look(brand)->colours, style);
    tl_brand_free(&brand);

    write_file("own.css", css, 0);
    is_refused(&(struct tl_brand_settings){.style_file = path},
               "own.css: its content is not text/css");
    write_file("own.css", css, sizeof(css)); /* with its zero byte */
    is_refused(&(struct tl_brand_settings){.style_file = path},
               "own.css: its content is not text/css");
    unlink(path);
    is_refused(&(struct tl_brand_settings){.style_file = path}, "style: cannot open /tmp/");
    is_refused(&(struct tl_brand_settings){.style_file = "own.html"},
               "style: own.html: the name must end in .css");

    char *large = malloc(TL_BRAND_STYLE_MAX + 1);
    assert_non_null(large);
    memset(large, ' ', TL_BRAND_STYLE_MAX + 1);
    path = write_file("large.css", large, TL_BRAND_STYLE_MAX + 1);
    is_refused(&(struct tl_brand_settings){.style_file = path},
               "is too large, at most 65536 bytes");
    write_file("large.css", large, TL_BRAND_STYLE_MAX);
    brand = load(&(struct tl_brand_settings){.style_file = path});
    assert_int_equal(tl_brand_look(brand)->style->length, TL_BRAND_STYLE_MAX);
    tl_brand_free(&brand);
    unlink(path);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colours), cmocka_unit_test(test_default),
        cmocka_unit_test(test_accents), cmocka_unit_test(test_logo),
        cmocka_unit_test(test_texts),   cmocka_unit_test(test_style),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
