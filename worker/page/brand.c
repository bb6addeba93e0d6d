#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/page/brand.h"
#include "worker/page/colour.h"
#include "worker/page/page_template.h"

#define PATH_BYTES  64
#define STYLE_BYTES 512
#define AA_CONTRAST 4.5
/* The backgrounds of page.css that accent colours appear on: the card and the page behind it. */
#define LIGHT_CARD 0xffffff
#define LIGHT_PAGE 0xf4f6f9
#define DARK_CARD  0x1c2127
#define DARK_PAGE  0x12161b

/* An asset of this brand, with an address made from a hash of its content. */
struct own_asset {
    struct tl_asset asset;
    char path[PATH_BYTES], etag[20];
    void *bytes; /* owned; NULL: there is no such asset */
};

struct tl_brand {
    char name[TL_BRAND_NAME_MAX + 1];
    char text[TL_LANGUAGES][TL_BRAND_TEXT_MAX + 1];
    struct own_asset colours, style, logo;
    struct tl_template *template;
};

static bool is_set(const char *setting)
{
    return setting != NULL && setting[0] != '\0';
}

/* Takes ownership of bytes (from malloc) and fills in the asset. */
static void make_asset(struct own_asset *own, void *bytes, size_t length, const char *name,
                       const char *extension, const char *type)
{
    unsigned char digest[crypto_generichash_BYTES_MIN];
    char hash[2 * 6 + 1];
    crypto_generichash(digest, sizeof(digest), bytes, length, NULL, 0);
    sodium_bin2hex(hash, sizeof(hash), digest, 6);
    snprintf(own->path, sizeof(own->path), TL_ASSET_PREFIX "%s-%s.%s", name, hash, extension);
    snprintf(own->etag, sizeof(own->etag), "\"%s\"", hash);
    own->bytes = bytes;
    own->asset = (struct tl_asset){
        .path = own->path, .type = type, .etag = own->etag, .bytes = bytes, .length = length};
}

/* ---- the operator's style sheet and logo ---- */

static bool is_text(const unsigned char *bytes, size_t length)
{
    return length > 0 && memchr(bytes, '\0', length) == NULL;
}

static bool is_svg(const unsigned char *bytes, size_t length)
{
    return memmem(bytes, length, "<svg", 4) != NULL && is_text(bytes, length);
}

static bool is_png(const unsigned char *bytes, size_t length)
{
    return length > 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_webp(const unsigned char *bytes, size_t length)
{
    return length > 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

struct file_kind {
    const char *extension, *type;
    bool (*matches)(const unsigned char *bytes, size_t length);
};

/* A setting that names a file the pages refer to. */
struct file_setting {
    const char *name;
    size_t limit;              /* bytes */
    const char *extensions;    /* for messages */
    struct file_kind kinds[3]; /* those without an extension match no file */
};

static const struct file_setting style_setting = {
    .name = "style",
    .limit = TL_BRAND_STYLE_MAX,
    .extensions = ".css",
    .kinds = {{"css", "text/css; charset=utf-8", is_text}},
};

static const struct file_setting logo_setting = {
    .name = "logo",
    .limit = TL_BRAND_LOGO_MAX,
    .extensions = ".svg, .png or .webp",
    .kinds = {{"svg", "image/svg+xml", is_svg},
              {"png", "image/png", is_png},
              {"webp", "image/webp", is_webp}},
};

/* Reads the whole file that a setting names; the caller frees it. */
static unsigned char *read_file(const struct file_setting *setting, const char *path,
                                size_t *length, struct tl_error *err)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot open %s: %s", setting->name, path,
                     strerror(errno));
        return NULL;
    }
    unsigned char *bytes = malloc(setting->limit + 1);
    if (bytes == NULL) {
        (void)fclose(file);
        tl_error_set(err, TL_ERR_NOMEM, "%s: out of memory", setting->name);
        return NULL;
    }
    *length = fread(bytes, 1, setting->limit + 1, file);
    bool failed = ferror(file) != 0;
    int saved_errno = errno;
    (void)fclose(file);
    if (failed)
        tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot read %s: %s", setting->name, path,
                     strerror(saved_errno));
    else if (*length > setting->limit)
        tl_error_set(err, TL_ERR_INVALID, "%s: %s is too large, at most %zu bytes", setting->name,
                     path, setting->limit);
    else
        return bytes;
    free(bytes);
    return NULL;
}

static bool load_file(struct own_asset *own, const struct file_setting *setting, const char *path,
                      struct tl_error *err)
{
    if (!is_set(path))
        return true;
    const char *dot = strrchr(path, '.');
    const struct file_kind *kind = NULL;
    for (size_t i = 0; dot != NULL && i < sizeof(setting->kinds) / sizeof(setting->kinds[0]); i++) {
        const struct file_kind *known = &setting->kinds[i];
        if (known->extension != NULL && strcmp(dot + 1, known->extension) == 0)
            kind = known;
    }
    if (kind == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "%s: %s: the name must end in %s", setting->name,
                            path, setting->extensions);
    size_t length;
    unsigned char *bytes = read_file(setting, path, &length, err);
    if (bytes == NULL)
        return false;
    if (!kind->matches(bytes, length)) {
        free(bytes);
        return tl_error_set(err, TL_ERR_INVALID, "%s: %s: its content is not %s", setting->name,
                            path, kind->type);
    }
    make_asset(own, bytes, length, setting->name, kind->extension, kind->type);
    return true;
}

/* ---- colours ---- */

static bool check_contrast(const char *setting, uint32_t accent, uint32_t background,
                           struct tl_error *err)
{
    double contrast = tl_colour_contrast(accent, background);
    if (contrast >= AA_CONTRAST)
        return true;
    bool light = background > 0x808080;
    return tl_error_set(
        err, TL_ERR_INVALID,
        "%s: #%06x on #%06x has a contrast of %.2f to 1; readable text needs %.1f to 1 "
        "(WCAG AA): choose a %s colour",
        setting, accent, background, contrast, AA_CONTRAST, light ? "darker" : "lighter");
}

static bool check_accent(const char *setting, const char *value, uint32_t card, uint32_t page,
                         struct tl_error *err)
{
    uint32_t accent;
    if (!is_set(value))
        return true;
    if (!tl_colour_parse(value, &accent))
        return tl_error_set(err, TL_ERR_INVALID, "%s: not a colour such as #1a5fb4", setting);
    return check_contrast(setting, accent, card, err) && check_contrast(setting, accent, page, err);
}

/* A style sheet, because the policy of the pages forbids styles in the HTML. */
static bool make_colours(struct tl_brand *brand, const struct tl_brand_settings *settings,
                         struct tl_error *err)
{
    if (!check_accent("accent_light", settings->accent_light, LIGHT_CARD, LIGHT_PAGE, err) ||
        !check_accent("accent_dark", settings->accent_dark, DARK_CARD, DARK_PAGE, err))
        return false;
    if (!is_set(settings->accent_light) && !is_set(settings->accent_dark))
        return true;
    char *style = malloc(STYLE_BYTES);
    if (style == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "brand: out of memory");
    int n = 0;
    if (is_set(settings->accent_light))
        n +=
            snprintf(style, STYLE_BYTES,
                     "@media not all and (prefers-color-scheme: dark) { :root { --accent: %s } }\n",
                     settings->accent_light);
    if (is_set(settings->accent_dark))
        n += snprintf(style + n, STYLE_BYTES - (size_t)n,
                      "@media (prefers-color-scheme: dark) { :root { --accent: %s } }\n",
                      settings->accent_dark);
    make_asset(&brand->colours, style, (size_t)n, "brand", "css", "text/css; charset=utf-8");
    return true;
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

struct tl_brand *tl_brand_load(const struct tl_brand_settings *settings, struct tl_error *err)
{
    struct tl_brand *brand = calloc(1, sizeof(*brand));
    if (brand == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "brand: out of memory");
        return NULL;
    }
    bool ok = copy_text("name", settings->name, brand->name, sizeof(brand->name), err);
    for (int i = 0; ok && i < TL_LANGUAGES; i++)
        ok = copy_text("text", settings->text[i], brand->text[i], sizeof(brand->text[i]), err);
    if (ok)
        brand->template = tl_page_template_new(err);
    if (brand->template == NULL || !make_colours(brand, settings, err) ||
        !load_file(&brand->style, &style_setting, settings->style_file, err) ||
        !load_file(&brand->logo, &logo_setting, settings->logo_file, err))
        tl_brand_free(&brand);
    return brand;
}

void tl_brand_free(struct tl_brand **brand)
{
    if (*brand == NULL)
        return;
    free((*brand)->colours.bytes);
    free((*brand)->style.bytes);
    free((*brand)->logo.bytes);
    tl_template_free(&(*brand)->template);
    free(*brand);
    *brand = NULL;
}

const char *tl_brand_name(const struct tl_brand *brand)
{
    return brand->name;
}

const char *tl_brand_text(const struct tl_brand *brand, enum tl_language language)
{
    return brand->text[language];
}

static const struct tl_asset *asset_of(const struct own_asset *own)
{
    return own->bytes == NULL ? NULL : &own->asset;
}

const struct tl_asset *tl_brand_colours(const struct tl_brand *brand)
{
    return asset_of(&brand->colours);
}

const struct tl_asset *tl_brand_style(const struct tl_brand *brand)
{
    return asset_of(&brand->style);
}

const struct tl_asset *tl_brand_logo(const struct tl_brand *brand)
{
    return asset_of(&brand->logo);
}

const struct tl_template *tl_brand_template(const struct tl_brand *brand)
{
    return brand->template;
}

const struct tl_asset *tl_brand_asset(const struct tl_brand *brand, const char *path)
{
    const struct tl_asset *const all[] = {tl_brand_colours(brand), tl_brand_style(brand),
                                          tl_brand_logo(brand)};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i] != NULL && strcmp(path, all[i]->path) == 0)
            return all[i];
    }
    return NULL;
}
