/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/settings.h"
#include "worker/page/brand.h"
#include "worker/page/colour.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_fields.h"
#include "worker/page/zone.h"

static bool is_set(const char *setting)
{
    return setting != NULL && setting[0] != '\0';
}

/* ---- the operator's style sheet and logo ---- */

static bool load_style(struct tl_brand *brand, const char *path, struct tl_error *err)
{
    char name[sizeof("style: ") + 256];
    struct tl_asset_file file = {0};
    if (!is_set(path))
        return true;
    if (!tl_asset_file_init(&file, TL_FILE_STYLE, "style", path, err))
        return false;
    snprintf(name, sizeof(name), "style: %s", path);
    bool made = tl_page_source_init(&brand->sources[TL_SOURCE_OWN], TL_SOURCE_STYLE, name,
                                    file.bytes, file.asset.length, err);
    tl_asset_file_deinit(&file);
    return made;
}

/* The scripts and the style sheet that every brand has. */
static bool load_built_in(struct tl_brand *brand, struct tl_error *err)
{
    static const struct {
        enum tl_page_sources source;
        enum tl_source_kind kind;
        const char *name;
        const struct tl_page_file *file;
    } all[] = {
        {TL_SOURCE_REFRESH, TL_SOURCE_SCRIPT, "refresh.js", &tl_page_refresh},
        {TL_SOURCE_PAGE, TL_SOURCE_SCRIPT, "page.js", &tl_page_script},
        {TL_SOURCE_ATTENTION, TL_SOURCE_SCRIPT, "attention.js", &tl_page_attention},
        {TL_SOURCE_LOOK, TL_SOURCE_STYLE, "page.css", &tl_page_style},
    };
    struct tl_page_source *sources = brand->sources;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (!tl_page_source_init(&sources[all[i].source], all[i].kind, all[i].name,
                                 all[i].file->bytes, all[i].file->length, err))
            return false;
    }
    return tl_page_source_init(&sources[TL_SOURCE_CHALLENGE], TL_SOURCE_SCRIPT, "challenge.js",
                               tl_page_challenge.bytes, tl_page_challenge.length, err);
}

/* ---- colours ---- */

static bool make_colours(struct tl_brand *brand, const struct tl_brand_settings *settings,
                         struct tl_error *err)
{
    const char *const accents[TL_ACCENTS] = {settings->accent_light, settings->accent_dark};
    static const char *const names[TL_ACCENTS] = {"accent_light", "accent_dark"};
    struct tl_text text = {0};
    bool good = true;
    for (unsigned i = 0; i < TL_ACCENTS && good; i++) {
        uint32_t colour;
        if (!is_set(accents[i]))
            continue;
        good = tl_accent_parse((enum tl_accent)i, names[i], accents[i], &colour, err);
        if (good)
            tl_accent_write((enum tl_accent)i, colour, &text);
    }
    if (good && text.failed)
        good = tl_error_set(err, TL_ERR_NOMEM, "brand: out of memory");
    if (good && text.length > 0)
        good = tl_page_source_init(&brand->sources[TL_SOURCE_COLOURS], TL_SOURCE_STYLE, "brand",
                                   text.data, text.length, err);
    tl_text_free(&text);
    return good;
}

/* ---- loading ---- */

static bool copy_text(const char *setting, const char *value, char *text, size_t size,
                      struct tl_error *err)
{
    if (!is_set(value))
        return true;
    if (strlen(value) >= size)
        return tl_error_set(err, TL_ERR_INVALID, "%s: %zu bytes, at most %zu", setting,
                            strlen(value), size - 1);
    memcpy(text, value, strlen(value) + 1);
    return true;
}

struct tl_brand *tl_brand_load(const struct tl_brand_settings *settings,
                               const struct tl_languages *languages, struct tl_error *err)
{
    struct tl_brand *brand = calloc(1, sizeof(*brand));
    if (brand == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "brand: out of memory");
        return NULL;
    }
    brand->languages = languages;
    if (copy_text("name", settings->name, brand->name, sizeof(brand->name), err) &&
        copy_text("text_en", settings->text_en, brand->text_en, sizeof(brand->text_en), err) &&
        copy_text("text_ko", settings->text_ko, brand->text_ko, sizeof(brand->text_ko), err))
        brand->template = tl_page_template_new(languages->all[0], err);
    brand->in_zone = is_set(settings->timezone);
    if (brand->template == NULL || !load_built_in(brand, err) ||
        !make_colours(brand, settings, err) || !load_style(brand, settings->style_file, err) ||
        (is_set(settings->logo_file) &&
         !tl_asset_file_init(&brand->logo, TL_FILE_LOGO, "logo", settings->logo_file, err)) ||
        (brand->in_zone && !tl_zone_check(settings->timezone, err)))
        tl_brand_free(&brand);
    return brand;
}

struct tl_brand_settings tl_brand_settings_of(const struct tl_config *config)
{
    return (struct tl_brand_settings){.name = config->page.name,
                                      .accent_light = config->page.accent_light,
                                      .accent_dark = config->page.accent_dark,
                                      .style_file = config->page.style,
                                      .logo_file = config->page.logo,
                                      .text_en = config->page.text_en,
                                      .text_ko = config->page.text_ko,
                                      .timezone = config->page.timezone};
}

void tl_brand_free(struct tl_brand **brand)
{
    if (*brand == NULL)
        return;
    for (size_t i = 0; i < TL_PAGE_SOURCES; i++)
        tl_page_source_deinit(&(*brand)->sources[i]);
    tl_asset_file_deinit(&(*brand)->logo);
    tl_template_free(&(*brand)->template);
    free(*brand);
    *brand = NULL;
}

const struct tl_asset *tl_brand_asset(const struct tl_brand *brand, const char *path)
{
    const struct tl_asset_file *logo = &brand->logo;
    return logo->bytes != NULL && strcmp(path, logo->path) == 0 ? &logo->asset : NULL;
}
