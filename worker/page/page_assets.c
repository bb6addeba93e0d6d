/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "generated/worker_web.h"

#include "common/base/file.h"
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
const struct tl_asset tl_page_proof = ASSET(TL_ASSET_PREFIX "proof-" TL_WEB_PROOF_JS_HASH ".js",
                                            SCRIPT, proof_js, TL_WEB_PROOF_JS_HASH);
const struct tl_asset tl_page_icon =
    ASSET(TL_ASSET_PREFIX "favicon-" TL_WEB_FAVICON_SVG_HASH ".svg", "image/svg+xml", favicon_svg,
          TL_WEB_FAVICON_SVG_HASH);
const struct tl_asset tl_page_embed =
    ASSET(TL_ASSET_PREFIX "tellerline.js", SCRIPT, tellerline_js, TL_WEB_TELLERLINE_JS_HASH);
const struct tl_asset tl_page_openapi = ASSET("/openapi.yaml", "application/yaml; charset=utf-8",
                                              openapi_yaml, TL_WEB_OPENAPI_YAML_HASH);

const struct tl_asset *tl_page_asset(const char *path)
{
    static const struct tl_asset *const all[] = {&tl_page_challenge, &tl_page_proof, &tl_page_icon};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(path, all[i]->path) == 0)
            return all[i];
    }
    return NULL;
}

#define PART(name, symbol)                                                                         \
    {                                                                                              \
        (name), tl_web_##symbol, sizeof(tl_web_##symbol)                                           \
    }

const struct tl_page_file tl_page_html = PART("page.html", page_html);
const struct tl_page_file tl_page_proof_html = PART("proof.html", proof_html);
const struct tl_page_file tl_page_parts[TL_PAGE_SOURCES] = {
    [TL_SOURCE_REFRESH] = PART("refresh.js", refresh_js),
    [TL_SOURCE_PAGE] = PART("page.js", page_js),
    [TL_SOURCE_CHALLENGE] = PART("challenge.js", challenge_js),
    [TL_SOURCE_LOOK] = PART("page.css", page_css),
};

/* ---- the operator's files ---- */

struct file_type {
    const char *extension, *type;
    const char *begins; /* the file, where "." is any byte; NULL: it is a text, and has no zero */
    const char *holds;  /* somewhere; of a text */
};

struct file_kind {
    const char *name;          /* in the asset's address */
    size_t limit;              /* bytes */
    const char *extensions;    /* for messages */
    struct file_type types[4]; /* those without an extension match no file */
};

#define PNG  "\x89PNG\r\n\x1a\n"
#define WEBP "RIFF....WEBP"
#define JPEG "\xff\xd8\xff"

static const struct file_kind kinds[] = {
    [TL_FILE_STYLE] = {.name = "style",
                       .limit = TL_BRAND_STYLE_MAX,
                       .extensions = ".css",
                       .types = {{"css", "text/css", NULL, ""}}},
    [TL_FILE_LOGO] = {.name = "logo",
                      .limit = TL_BRAND_LOGO_MAX,
                      .extensions = ".svg, .png or .webp",
                      .types = {{"svg", "image/svg+xml", NULL, "<svg"},
                                {"png", "image/png", PNG, NULL},
                                {"webp", "image/webp", WEBP, NULL}}},
    [TL_FILE_IMAGE] = {.name = "image",
                       .limit = TL_EVENT_IMAGE_MAX,
                       .extensions = ".jpg, .jpeg, .png or .webp",
                       .types = {{"jpg", "image/jpeg", JPEG, NULL},
                                 {"jpeg", "image/jpeg", JPEG, NULL},
                                 {"png", "image/png", PNG, NULL},
                                 {"webp", "image/webp", WEBP, NULL}}},
};

static bool matches(const struct file_type *type, const char *bytes, size_t length)
{
    if (type->begins == NULL)
        return length > 0 && memchr(bytes, '\0', length) == NULL &&
               memmem(bytes, length, type->holds, strlen(type->holds)) != NULL;
    size_t n = strlen(type->begins);
    for (size_t i = 0; i < n && i < length; i++) {
        if (type->begins[i] != '.' && type->begins[i] != bytes[i])
            return false;
    }
    return length > n;
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
    file->bytes = tl_file_read("", path, kind->limit, &length, err);
    if (file->bytes == NULL)
        return tl_error_prefix(err, "%s", setting);
    bool fits = length <= kind->limit;
    if (!fits || !matches(type, file->bytes, length)) {
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
