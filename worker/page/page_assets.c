/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "generated/worker_web.h"

#include "worker/page/page_assets.h"

#define ASSET(address, content_type, symbol, hash)                                                 \
    {                                                                                              \
        .path = (address), .type = (content_type), .etag = "\"" hash "\"",                         \
        .bytes = tl_web_##symbol, .length = sizeof(tl_web_##symbol),                               \
        .gzip = tl_web_##symbol##_gzip, .gzip_length = sizeof(tl_web_##symbol##_gzip)              \
    }
#define SCRIPT "text/javascript; charset=utf-8"

const struct tl_asset tl_page_challenge =
    ASSET(TL_ASSET_PREFIX "challenge-" TL_WEB_CHALLENGE_JS_HASH ".js", SCRIPT, challenge_js,
          TL_WEB_CHALLENGE_JS_HASH);
const struct tl_asset tl_page_icon =
    ASSET(TL_ASSET_PREFIX "favicon-" TL_WEB_FAVICON_SVG_HASH ".svg", "image/svg+xml", favicon_svg,
          TL_WEB_FAVICON_SVG_HASH);
const struct tl_asset tl_page_embed =
    ASSET(TL_ASSET_PREFIX "tellerline.js", SCRIPT, tellerline_js, TL_WEB_TELLERLINE_JS_HASH);
const struct tl_asset tl_page_openapi = ASSET("/openapi.yaml", "application/yaml; charset=utf-8",
                                              openapi_yaml, TL_WEB_OPENAPI_YAML_HASH);

const struct tl_asset *tl_page_asset(const char *path)
{
    static const struct tl_asset *const all[] = {&tl_page_challenge, &tl_page_icon};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(path, all[i]->path) == 0)
            return all[i];
    }
    return NULL;
}

const struct tl_page_file tl_page_html = {tl_web_page_html, sizeof(tl_web_page_html)};
const struct tl_page_file tl_page_style = {tl_web_page_css, sizeof(tl_web_page_css)};
const struct tl_page_file tl_page_script = {tl_web_page_js, sizeof(tl_web_page_js)};
const struct tl_page_file tl_page_attention = {tl_web_attention_js, sizeof(tl_web_attention_js)};
const struct tl_page_file tl_page_refresh = {tl_web_refresh_js, sizeof(tl_web_refresh_js)};

/* ---- the operator's files ---- */

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

static bool is_jpeg(const unsigned char *bytes, size_t length)
{
    return length > 4 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

struct file_type {
    const char *extension, *type;
    bool (*matches)(const unsigned char *bytes, size_t length);
};

struct file_kind {
    const char *name;          /* in the asset's address */
    size_t limit;              /* bytes */
    const char *extensions;    /* for messages */
    struct file_type types[4]; /* those without an extension match no file */
};

static const struct file_kind kinds[] = {
    [TL_FILE_STYLE] = {.name = "style",
                       .limit = TL_BRAND_STYLE_MAX,
                       .extensions = ".css",
                       .types = {{"css", "text/css", is_text}}},
    [TL_FILE_LOGO] = {.name = "logo",
                      .limit = TL_BRAND_LOGO_MAX,
                      .extensions = ".svg, .png or .webp",
                      .types = {{"svg", "image/svg+xml", is_svg},
                                {"png", "image/png", is_png},
                                {"webp", "image/webp", is_webp}}},
    [TL_FILE_IMAGE] = {.name = "image",
                       .limit = TL_EVENT_IMAGE_MAX,
                       .extensions = ".jpg, .jpeg, .png or .webp",
                       .types = {{"jpg", "image/jpeg", is_jpeg},
                                 {"jpeg", "image/jpeg", is_jpeg},
                                 {"png", "image/png", is_png},
                                 {"webp", "image/webp", is_webp}}},
};

unsigned char *tl_file_read(const char *setting, const char *path, size_t limit, size_t *length,
                            struct tl_error *err)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot open %s: %s", setting, path, strerror(errno));
        return NULL;
    }
    unsigned char *bytes = malloc(limit + 1);
    if (bytes == NULL) {
        (void)fclose(file);
        tl_error_set(err, TL_ERR_NOMEM, "%s: out of memory", setting);
        return NULL;
    }
    *length = fread(bytes, 1, limit + 1, file);
    bool failed = ferror(file) != 0;
    int saved_errno = errno;
    (void)fclose(file);
    if (!failed)
        return bytes;
    free(bytes);
    tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot read %s: %s", setting, path,
                 strerror(saved_errno));
    return NULL;
}

bool tl_asset_file_init(struct tl_asset_file *file, enum tl_asset_file_kind of_kind,
                        const char *setting, const char *path, struct tl_error *err)
{
    const struct file_kind *kind = &kinds[of_kind];
    const struct file_type *type = NULL;
    const char *dot = strrchr(path, '.');
    unsigned char digest[crypto_generichash_BYTES_MIN];
    char hash[2 * 6 + 1];
    size_t length;
    for (size_t i = 0; dot != NULL && i < sizeof(kind->types) / sizeof(kind->types[0]); i++) {
        const struct file_type *known = &kind->types[i];
        if (known->extension != NULL && strcmp(dot + 1, known->extension) == 0)
            type = known;
    }
    if (type == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "%s: %s: the name must end in %s", setting, path,
                            kind->extensions);
    file->bytes = tl_file_read(setting, path, kind->limit, &length, err);
    if (file->bytes == NULL)
        return false;
    bool fits = length <= kind->limit;
    if (!fits || !type->matches(file->bytes, length)) {
        tl_asset_file_deinit(file);
        return fits ? tl_error_set(err, TL_ERR_INVALID, "%s: %s: its content is not %s", setting,
                                   path, type->type)
                    : tl_error_set(err, TL_ERR_INVALID, "%s: %s is too large, at most %zu bytes",
                                   setting, path, kind->limit);
    }
    crypto_generichash(digest, sizeof(digest), file->bytes, length, NULL, 0);
    sodium_bin2hex(hash, sizeof(hash), digest, 6);
    snprintf(file->path, sizeof(file->path), TL_ASSET_PREFIX "%s-%s.%s", kind->name, hash,
             type->extension);
    snprintf(file->etag, sizeof(file->etag), "\"%s\"", hash);
    file->asset = (struct tl_asset){.path = file->path,
                                    .type = type->type,
                                    .etag = file->etag,
                                    .bytes = file->bytes,
                                    .length = length};
    return true;
}

void tl_asset_file_deinit(struct tl_asset_file *file)
{
    free(file->bytes);
    *file = (struct tl_asset_file){0};
}
