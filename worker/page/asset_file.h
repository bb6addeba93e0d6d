/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's files that pages show: read whole, with a limit, and held against what their name
 * says. */
#ifndef TL_ASSET_FILE_H
#define TL_ASSET_FILE_H

#include <stdbool.h>

#include "common/base/error.h"
#include "worker/page/page_assets.h"

#define TL_BRAND_LOGO_MAX  102400 /* bytes */
#define TL_BRAND_STYLE_MAX 65536  /* bytes */
#define TL_EVENT_IMAGE_MAX 512000 /* bytes */

enum tl_asset_file_kind {
    TL_FILE_STYLE, /* .css */
    TL_FILE_LOGO,  /* .svg, .png or .webp */
    TL_FILE_IMAGE  /* .jpg, .png or .webp */
};

/* An asset of a file, with an address made from a hash of its content. Zeroed before the first use;
 * it does not move while the asset is used. */
struct tl_asset_file {
    struct tl_asset asset;
    char path[64], etag[20];
    void *bytes; /* owned; NULL: there is no such asset */
};

/* Reads and checks the file. `setting` names it in messages; the kind names it in its address. */
bool tl_asset_file_init(struct tl_asset_file *file, enum tl_asset_file_kind kind,
                        const char *setting, const char *path, struct tl_error *err);
void tl_asset_file_deinit(struct tl_asset_file *file);

/* Only the content; the caller frees it. NULL on failure. */
unsigned char *tl_asset_file_read(enum tl_asset_file_kind kind, const char *setting,
                                  const char *path, size_t *length, struct tl_error *err);

#endif
