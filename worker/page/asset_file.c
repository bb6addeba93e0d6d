/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/page/asset_file.h"

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

/* Reads the whole file; the caller frees it. */
static unsigned char *read_whole(const char *setting, const char *path, size_t limit,
                                 size_t *length, struct tl_error *err)
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
    if (failed)
        tl_error_set(err, TL_ERR_SYSTEM, "%s: cannot read %s: %s", setting, path,
                     strerror(saved_errno));
    else if (*length > limit)
        tl_error_set(err, TL_ERR_INVALID, "%s: %s is too large, at most %zu bytes", setting, path,
                     limit);
    else
        return bytes;
    free(bytes);
    return NULL;
}

/* The content, and the type that both the name and the content say. */
static unsigned char *read_typed(const struct file_kind *kind, const char *setting,
                                 const char *path, const struct file_type **of_type, size_t *length,
                                 struct tl_error *err)
{
    const char *dot = strrchr(path, '.');
    const struct file_type *type = NULL;
    for (size_t i = 0; dot != NULL && i < sizeof(kind->types) / sizeof(kind->types[0]); i++) {
        const struct file_type *known = &kind->types[i];
        if (known->extension != NULL && strcmp(dot + 1, known->extension) == 0)
            type = known;
    }
    if (type == NULL) {
        tl_error_set(err, TL_ERR_INVALID, "%s: %s: the name must end in %s", setting, path,
                     kind->extensions);
        return NULL;
    }
    unsigned char *bytes = read_whole(setting, path, kind->limit, length, err);
    if (bytes != NULL && !type->matches(bytes, *length)) {
        free(bytes);
        tl_error_set(err, TL_ERR_INVALID, "%s: %s: its content is not %s", setting, path,
                     type->type);
        return NULL;
    }
    *of_type = type;
    return bytes;
}

unsigned char *tl_asset_file_read(enum tl_asset_file_kind kind, const char *setting,
                                  const char *path, size_t *length, struct tl_error *err)
{
    const struct file_type *type;
    return read_typed(&kinds[kind], setting, path, &type, length, err);
}

bool tl_asset_file_init(struct tl_asset_file *file, enum tl_asset_file_kind kind,
                        const char *setting, const char *path, struct tl_error *err)
{
    unsigned char digest[crypto_generichash_BYTES_MIN];
    char hash[2 * 6 + 1];
    const struct file_type *type;
    size_t length;
    file->bytes = read_typed(&kinds[kind], setting, path, &type, &length, err);
    if (file->bytes == NULL)
        return false;
    crypto_generichash(digest, sizeof(digest), file->bytes, length, NULL, 0);
    sodium_bin2hex(hash, sizeof(hash), digest, 6);
    snprintf(file->path, sizeof(file->path), TL_ASSET_PREFIX "%s-%s.%s", kinds[kind].name, hash,
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
