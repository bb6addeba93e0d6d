/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/checks.h"
#include "common/config/queue_table.h"
#include "common/config/texts.h"
#include "common/config/value.h"
#include "worker/page/look.h"
#include "worker/page/page_fields.h"
#include "worker/page/page_text.h"

/* ---- colours ---- */

bool tl_colour_parse(const char *text, uint32_t *colour)
{
    if (text[0] != '#' || strspn(text + 1, "0123456789abcdefABCDEF") != 6 || text[7] != '\0')
        return false;
    *colour = (uint32_t)strtoul(text + 1, NULL, 16);
    return true;
}

/* One channel of sRGB made linear (WCAG 2.2, "relative luminance"). */
static double linear(uint32_t channel)
{
    double value = channel / 255.0;
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

static double luminance(uint32_t colour)
{
    return 0.2126 * linear(colour >> 16 & 0xFF) + 0.7152 * linear(colour >> 8 & 0xFF) +
           0.0722 * linear(colour & 0xFF);
}

double tl_colour_contrast(uint32_t a, uint32_t b)
{
    double light = luminance(a);
    double dark = luminance(b);
    if (light < dark) {
        double swap = light;
        light = dark;
        dark = swap;
    }
    return (light + 0.05) / (dark + 0.05);
}

/* What a browser shows between two colours of a gradient: `share` of b, from 0 to 1. */
static uint32_t mix(uint32_t a, uint32_t b, double share)
{
    uint32_t mixed = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double of_a = a >> shift & 0xFF;
        double of_b = b >> shift & 0xFF;
        mixed = mixed << 8 | (uint32_t)lround(of_a + (of_b - of_a) * share);
    }
    return mixed;
}

uint32_t tl_colour_readable(uint32_t colour, uint32_t background)
{
    const int steps = 100;
    uint32_t white = 0xffffff;
    uint32_t end =
        tl_colour_contrast(white, background) > tl_colour_contrast(0, background) ? white : 0;
    uint32_t mixed = colour;
    for (int i = 1; i <= steps && tl_colour_contrast(mixed, background) < TL_COLOUR_AA; i++)
        mixed = mix(colour, end, (double)i / steps);
    return mixed;
}

double tl_colour_gradient_contrast(uint32_t text, const uint32_t *colours, size_t n)
{
    const int steps = 64;
    double least = tl_colour_contrast(text, colours[0]);
    for (size_t i = 1; i < n; i++) {
        for (int step = 1; step <= steps; step++) {
            uint32_t colour = mix(colours[i - 1], colours[i], (double)step / steps);
            least = fmin(least, tl_colour_contrast(text, colour));
        }
    }
    return least;
}

/* ---- accents: colours of buttons, links and progress, on a light and on a dark page ---- */

enum accent { ACCENT_LIGHT, ACCENT_DARK, ACCENTS };

/* How a page looks on a light or a dark screen. */
struct scheme {
    const char *media;
    uint32_t backgrounds[2]; /* of page.css: the card and the page behind it */
};

static const struct scheme schemes[ACCENTS] = {
    [ACCENT_LIGHT] = {"not all and (prefers-color-scheme: dark)", {0xffffff, 0xf5f4fa}},
    [ACCENT_DARK] = {"(prefers-color-scheme: dark)", {0x1d1a28, 0x13111b}},
};

/* The colour, made as much lighter (dark page) or darker (light page) as it takes to be readable.
 */
static uint32_t accent_adjusted(enum accent accent, uint32_t colour)
{
    const struct scheme *scheme = &schemes[accent];
    for (size_t i = 0; i < 2; i++)
        colour = tl_colour_readable(colour, scheme->backgrounds[i]);
    return colour;
}

/* Reads "#rrggbb" and checks that it is readable on the card and on the page behind it (WCAG AA);
 * the message has a colour that is. `setting` names it in messages. */
static bool accent_parse(enum accent accent, const char *setting, const char *text,
                         uint32_t *colour, struct tl_error *err)
{
    if (!tl_colour_parse(text, colour))
        return tl_error_set(err, TL_ERR_INVALID, "%s: not a colour such as #1a5fb4", setting);
    for (size_t i = 0; i < 2; i++) {
        uint32_t background = schemes[accent].backgrounds[i];
        double contrast = tl_colour_contrast(*colour, background);
        if (contrast < TL_COLOUR_AA)
            return tl_error_set(
                err, TL_ERR_INVALID,
                "%s: #%06x on #%06x has a contrast of %.2f to 1; readable text needs %.1f to 1 "
                "(WCAG AA): choose a %s colour, such as #%06x",
                setting, *colour, background, contrast, TL_COLOUR_AA,
                accent == ACCENT_LIGHT ? "darker" : "lighter", accent_adjusted(accent, *colour));
    }
    return true;
}

/* Appends the rule for a style sheet. */
static void accent_write(enum accent accent, uint32_t colour, struct tl_text *out)
{
    tl_text_append(out, "@media %s { :root { --accent: #%06x } }\n", schemes[accent].media, colour);
}

/* ---- the template ---- */

#define VALUE(name)  [FIELD_##name] = #name,
#define SOURCE(name) [FIELD_##name] = ">" #name,
const char *const tl_page_field_names[N_FIELDS] = {
#include "worker/page/page_fields.def"
};

_Static_assert(FIELD_event_title_lang == FIELD_event_title + TL_EVENT_TEXTS &&
                   FIELD_event_date_ms == FIELD_event_title_lang + TL_EVENT_TEXTS,
               "a field for each enum tl_event_text, in its order");
_Static_assert(FIRST_SOURCE + TL_PAGE_SOURCES == N_FIELDS,
               "a field for each enum tl_page_sources, in its order");

static struct tl_template *parse_template(const struct tl_catalogue *source, struct tl_error *err)
{
    const char *names[N_FIELDS + TL_CATALOGUE_TEXTS_MAX];
    memcpy(names, tl_page_field_names, sizeof(tl_page_field_names));
    for (size_t i = 0; i < source->n_texts; i++)
        names[N_FIELDS + i] = source->texts[i].name;
    return tl_template_parse("page.html", tl_page_html.bytes, tl_page_html.length, names,
                             N_FIELDS + source->n_texts, err);
}

/* ---- the brand ---- */

static bool is_set(const char *setting)
{
    return setting != NULL && setting[0] != '\0';
}

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
    bool good = true;
    for (unsigned i = 0; i < TL_PAGE_SOURCES && good; i++) {
        const struct tl_page_file *part = &tl_page_parts[i];
        if (part->name != NULL)
            good = tl_page_source_init(&brand->sources[i],
                                       i < TL_SOURCE_LOOK ? TL_SOURCE_SCRIPT : TL_SOURCE_STYLE,
                                       part->name, part->bytes, part->length, err);
    }
    return good;
}

static bool make_colours(struct tl_brand *brand, const struct tl_brand_settings *settings,
                         struct tl_error *err)
{
    const char *const accents[ACCENTS] = {settings->accent_light, settings->accent_dark};
    static const char *const names[ACCENTS] = {"accent_light", "accent_dark"};
    struct tl_text text = {0};
    bool good = true;
    for (unsigned i = 0; i < ACCENTS && good; i++) {
        uint32_t colour = 0;
        if (!is_set(accents[i]))
            continue;
        good = accent_parse((enum accent)i, names[i], accents[i], &colour, err);
        if (good)
            accent_write((enum accent)i, colour, &text);
    }
    if (good && text.failed)
        good = tl_error_set(err, TL_ERR_NOMEM, "brand: out of memory");
    if (good && text.length > 0)
        good = tl_page_source_init(&brand->sources[TL_SOURCE_COLOURS], TL_SOURCE_STYLE, "brand",
                                   text.data, text.length, err);
    tl_text_free(&text);
    return good;
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
    brand->settings = settings;
    brand->template = parse_template(languages->all[0], err);
    if (brand->template == NULL || !load_built_in(brand, err) ||
        !make_colours(brand, settings, err) || !load_style(brand, settings->style, err) ||
        (is_set(settings->logo) &&
         !tl_asset_file_init(&brand->logo, TL_FILE_LOGO, "logo", settings->logo, err)) ||
        (is_set(settings->timezone) && !tl_zone_check(settings->timezone, err)))
        tl_brand_free(&brand);
    return brand;
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

/* ---- events ---- */

/* Text over a gradient: the one of these that is readable on all of it. */
static const uint32_t on_gradient[] = {0xffffff, 0x15121f};

/* The event that is being made, and for messages where it is written. */
struct maker {
    const char *file, *queue;
    const struct tl_languages *languages;
    struct tl_event_look *look;
    struct tl_error *err;
};

/* The rows of the texts. */
static const char *const text_paths[TL_EVENT_TEXTS] = {
    [TL_EVENT_TITLE] = "page.title",
    [TL_EVENT_PLACE] = "page.place",
    [TL_EVENT_DATE] = "page.date",
    [TL_EVENT_BEFORE] = "page.texts.before",
    [TL_EVENT_WAITING] = "page.texts.waiting",
    [TL_EVENT_TURN] = "page.texts.turn",
    [TL_EVENT_AFTER] = "page.texts.after",
};

const char *tl_event_look_texts(const struct tl_event_look *look, enum tl_event_text text)
{
    size_t n;
    const struct tl_setting *rows = tl_page_table(&n);
    const struct tl_setting *row = tl_setting_find(rows, n, text_paths[text], NULL);
    return (const char *)look->page + row->offset;
}

/* Puts the queue and the place of the row before the sentence in err. */
static bool locate(const struct maker *maker, const char *path)
{
    size_t n;
    const struct tl_setting *rows = tl_page_table(&n);
    const struct tl_setting *row = tl_setting_find(rows, n, path, NULL);
    tl_error_prefix(maker->err, "queues.%s.page", maker->queue);
    return tl_yaml_locate(maker->err, maker->file, maker->look->page->places[row - rows]);
}

static bool check_languages(const struct maker *maker)
{
    char quoted[64];
    for (unsigned text = 0; text < TL_EVENT_TEXTS; text++) {
        const char *texts = tl_event_look_texts(maker->look, (enum tl_event_text)text);
        const char *code, *at = NULL;
        while ((at = tl_texts_next(texts, at, &code)) != NULL) {
            if (strcmp(code, TL_TEXTS_EVERYONE) == 0 ||
                tl_languages_find(maker->languages, code) != NULL)
                continue;
            tl_quote(code, quoted, sizeof(quoted));
            return tl_error_set(maker->err, TL_ERR_INVALID,
                                "%s: the page has no language %s; write its code as the page's "
                                "menu of languages does, such as ko or zh-Hant",
                                text_paths[text] + strlen("page."), quoted) ||
                   locate(maker, text_paths[text]);
        }
    }
    return true;
}

/* "2026-12-12...": meant as a date and time. */
static bool looks_like_time(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    for (size_t i = 0; form[i] != '\0'; i++)
        if (form[i] == 'd' ? isdigit((unsigned char)text[i]) == 0 : text[i] != form[i])
            return false;
    return true;
}

static bool make_date(const struct maker *maker)
{
    const char *code;
    const char *date = tl_texts_next(maker->look->page->date, NULL, &code);
    if (date == NULL || strcmp(code, TL_TEXTS_EVERYONE) != 0 || !looks_like_time(date))
        return true;
    return (tl_time_parse(date, &maker->look->date_ms, NULL) && maker->look->date_ms > 0) ||
           tl_error_set(
               maker->err, TL_ERR_INVALID,
               "date: a time has a zone, such as 2026-12-12T19:00:00+09:00; or write a text, "
               "such as \"12 December\"") ||
           locate(maker, "page.date");
}

/* Colours and the text on them, for the event's style sheet. */
static bool write_gradient(const struct maker *maker, struct tl_text *out)
{
    uint32_t colours[TL_EVENT_COLOURS_MAX];
    double contrasts[2];
    size_t n = 0;
    for (const char *at = maker->look->page->gradient; *at != '\0'; n++) {
        char colour[16];
        size_t length = strcspn(at, " ");
        snprintf(colour, sizeof(colour), "%.*s", (int)length, at);
        at += length + (at[length] == ' ');
        if (!tl_colour_parse(colour, &colours[n]))
            return tl_error_set(maker->err, TL_ERR_INVALID,
                                "gradient: not a colour such as #1a5fb4") ||
                   locate(maker, "page.gradient");
    }
    if (n == 0)
        return true;
    for (size_t i = 0; i < 2; i++)
        contrasts[i] = tl_colour_gradient_contrast(on_gradient[i], colours, n);
    if (contrasts[0] < TL_COLOUR_AA && contrasts[1] < TL_COLOUR_AA)
        return tl_error_set(
                   maker->err, TL_ERR_INVALID,
                   "gradient: white text has a contrast of %.2f to 1 somewhere on it, dark text of "
                   "%.2f to "
                   "1; readable text needs %.1f to 1 (WCAG AA): choose colours that are all "
                   "darker, or all lighter",
                   contrasts[0], contrasts[1], TL_COLOUR_AA) ||
               locate(maker, "page.gradient");
    tl_text_append(out, ":root { --event: linear-gradient(120deg");
    for (size_t i = 0; i < n; i++)
        tl_text_append(out, ", #%06x", colours[i]);
    tl_text_append(out, "); --on-event: #%06x }\n",
                   on_gradient[contrasts[0] >= TL_COLOUR_AA ? 0 : 1]);
    return true;
}

static bool make_style(const struct maker *maker)
{
    const struct tl_event_page *page = maker->look->page;
    struct tl_text text = {0};
    uint32_t accent = 0;
    bool good = write_gradient(maker, &text);
    if (good && is_set(page->accent)) {
        good = accent_parse(ACCENT_LIGHT, "accent", page->accent, &accent, maker->err) ||
               locate(maker, "page.accent");
        if (good) {
            accent_write(ACCENT_LIGHT, accent, &text);
            accent_write(ACCENT_DARK, accent_adjusted(ACCENT_DARK, accent), &text);
        }
    }
    if (good && text.failed)
        good = tl_error_set(maker->err, TL_ERR_NOMEM, "no memory for the page of an event");
    if (good && text.length > 0)
        good = tl_page_source_init(&maker->look->style, TL_SOURCE_STYLE, "event", text.data,
                                   text.length, maker->err);
    tl_text_free(&text);
    return good;
}

/* https, or a path of this host. */
static bool check_help(const struct maker *maker)
{
    const char *help = maker->look->page->help;
    bool path = help[0] == '/' && strpbrk(help + 1, "/\\") != help + 1;
    bool https = strncmp(help, "https://", 8) == 0 && tl_check_url(help, NULL);
    for (const char *at = help; path && *at != '\0'; at++)
        path = *at > ' ' && *at <= '~' && *at != '\\';
    return !is_set(help) || path || https ||
           tl_error_set(maker->err, TL_ERR_INVALID,
                        "help: expected an address that starts with https://, or a path of this "
                        "host such as /help, in ASCII without spaces") ||
           locate(maker, "page.help");
}

/* The file at `path` of this row. */
static bool read_file(const struct maker *maker, const char *path, enum tl_asset_file_kind kind,
                      const char *row, struct tl_asset_file *file)
{
    return !is_set(path) ||
           tl_asset_file_init(file, kind, row + strlen("page."), path, maker->err) ||
           locate(maker, row);
}

static bool make_look(const struct maker *maker, const struct tl_event_page *page)
{
    struct tl_event_look *look = maker->look;
    look->page = malloc(sizeof(*look->page));
    if (look->page == NULL)
        return tl_error_set(maker->err, TL_ERR_NOMEM, "no memory for the page of an event");
    *look->page = *page;
    look->has_head = is_set(page->title) || is_set(page->place) || is_set(page->date);
    return check_languages(maker) && make_date(maker) && make_style(maker) && check_help(maker) &&
           read_file(maker, page->image, TL_FILE_IMAGE, "page.image", &look->image) &&
           read_file(maker, page->logo, TL_FILE_LOGO, "page.logo", &look->logo) &&
           read_file(maker, page->logo_dark, TL_FILE_LOGO, "page.logo.dark", &look->logo_dark);
}

static bool read_events(const struct tl_config *config, const struct tl_languages *languages,
                        struct tl_event_looks *looks, struct tl_error *err)
{
    looks->all = calloc(config->n_queues + 1, sizeof(*looks->all));
    if (looks->all == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the pages of events");
    for (size_t i = 0; i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        if (queue->page == NULL)
            continue;
        struct tl_event_look *look = &looks->all[looks->n++];
        snprintf(look->queue, sizeof(look->queue), "%s", queue->name);
        const struct maker maker = {.file = config->queues_source,
                                    .queue = queue->name,
                                    .languages = languages,
                                    .look = look,
                                    .err = err};
        if (!make_look(&maker, queue->page))
            return false;
    }
    return true;
}

bool tl_page_read(const struct tl_config *config, const struct tl_languages *languages,
                  struct tl_brand **brand, struct tl_event_looks *looks, struct tl_error *err)
{
    struct tl_brand *read = tl_brand_load(&config->brand, languages, err);
    *looks = (struct tl_event_looks){0};
    bool good = read != NULL && read_events(config, languages, looks, err);
    if (!good)
        tl_event_looks_free(looks);
    if (good && brand != NULL)
        *brand = read;
    else
        tl_brand_free(&read);
    return good;
}

void tl_event_looks_free(struct tl_event_looks *looks)
{
    for (size_t i = 0; i < looks->n; i++) {
        struct tl_event_look *look = &looks->all[i];
        free(look->page);
        tl_page_source_deinit(&look->style);
        tl_asset_file_deinit(&look->image);
        tl_asset_file_deinit(&look->logo);
        tl_asset_file_deinit(&look->logo_dark);
    }
    free(looks->all);
    *looks = (struct tl_event_looks){0};
}

const struct tl_event_look *tl_event_looks_find(const struct tl_event_looks *looks,
                                                const char *queue)
{
    for (size_t i = 0; i < looks->n; i++)
        if (strcmp(looks->all[i].queue, queue) == 0)
            return &looks->all[i];
    return NULL;
}

static const struct tl_asset *asset_at(const struct tl_asset_file *file, const char *path)
{
    return file->bytes != NULL && strcmp(file->path, path) == 0 ? &file->asset : NULL;
}

const struct tl_asset *tl_look_asset(const struct tl_brand *brand,
                                     const struct tl_event_looks *looks, const char *path)
{
    const struct tl_asset *asset = tl_page_asset(path);
    if (asset == NULL)
        asset = asset_at(&brand->logo, path);
    for (size_t i = 0; asset == NULL && i < looks->n; i++) {
        const struct tl_event_look *look = &looks->all[i];
        const struct tl_asset_file *const files[] = {&look->image, &look->logo, &look->logo_dark};
        for (size_t j = 0; asset == NULL && j < sizeof(files) / sizeof(files[0]); j++)
            asset = asset_at(files[j], path);
    }
    return asset;
}
