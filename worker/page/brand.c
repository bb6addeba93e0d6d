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
    struct tl_brand_look look;
    struct own_asset colours, style, logo; /* what the look points to */
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

/* How a page looks on a light or a dark screen. */
struct scheme {
    const char *setting; /* of its accent colour */
    const char *media;
    uint32_t backgrounds[2]; /* the card and the page behind it */
};

static const struct scheme schemes[] = {
    {"accent_light", "not all and (prefers-color-scheme: dark)", {LIGHT_CARD, LIGHT_PAGE}},
    {"accent_dark", "(prefers-color-scheme: dark)", {DARK_CARD, DARK_PAGE}},
};

static bool check_accent(const struct scheme *scheme, const char *value, struct tl_error *err)
{
    uint32_t accent;
    if (!tl_colour_parse(value, &accent))
        return tl_error_set(err, TL_ERR_INVALID, "%s: not a colour such as #1a5fb4",
                            scheme->setting);
    for (size_t i = 0; i < 2; i++) {
        uint32_t background = scheme->backgrounds[i];
        double contrast = tl_colour_contrast(accent, background);
        if (contrast < AA_CONTRAST)
            return tl_error_set(
                err, TL_ERR_INVALID,
                "%s: #%06x on #%06x has a contrast of %.2f to 1; readable text needs %.1f to 1 "
                "(WCAG AA): choose a %s colour",
                scheme->setting, accent, background, contrast, AA_CONTRAST,
                background > 0x808080 ? "darker" : "lighter");
    }
    return true;
}

/* A style sheet, because the policy of the pages forbids styles in the HTML. */
static bool make_colours(struct tl_brand *brand, const struct tl_brand_settings *settings,
                         struct tl_error *err)
{
    const char *const accents[] = {settings->accent_light, settings->accent_dark};
    char text[STYLE_BYTES];
    int n = 0;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (!is_set(accents[i]))
            continue;
        if (!check_accent(&schemes[i], accents[i], err))
            return false;
        n += snprintf(text + n, sizeof(text) - (size_t)n, "@media %s { :root { --accent: %s } }\n",
                      schemes[i].media, accents[i]);
    }
    if (n == 0)
        return true;
    char *style = strdup(text);
    if (style == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "brand: out of memory");
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
    bool ok = copy_text("name", settings->name, brand->look.name, sizeof(brand->look.name), err);
    for (int i = 0; ok && i < TL_LANGUAGES; i++)
        ok = copy_text("text", settings->text[i], brand->look.text[i], sizeof(brand->look.text[i]),
                       err);
    if (ok)
        brand->template = tl_page_template_new(err);
    if (brand->template == NULL || !make_colours(brand, settings, err) ||
        !load_file(&brand->style, &style_setting, settings->style_file, err) ||
        !load_file(&brand->logo, &logo_setting, settings->logo_file, err)) {
        tl_brand_free(&brand);
        return NULL;
    }
    brand->look.colours = brand->colours.bytes != NULL ? &brand->colours.asset : NULL;
    brand->look.style = brand->style.bytes != NULL ? &brand->style.asset : NULL;
    brand->look.logo = brand->logo.bytes != NULL ? &brand->logo.asset : NULL;
    brand->look.template = brand->template;
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

const struct tl_brand_look *tl_brand_look(const struct tl_brand *brand)
{
    return &brand->look;
}

const struct tl_asset *tl_brand_asset(const struct tl_brand *brand, const char *path)
{
    const struct tl_asset *const all[] = {brand->look.colours, brand->look.style, brand->look.logo};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i] != NULL && strcmp(path, all[i]->path) == 0)
            return all[i];
    }
    return NULL;
}
