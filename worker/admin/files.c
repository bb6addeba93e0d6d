/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "generated/admin_web.h"

#include "worker/admin/files.h"

#define TYPE_HTML "text/html; charset=utf-8"
#define TYPE_CSS  "text/css; charset=utf-8"
#define TYPE_JS   "text/javascript; charset=utf-8"
#define TYPE_SVG  "image/svg+xml"
#define TYPE_YAML "application/yaml; charset=utf-8"

#define FILE_ROW(file, symbol, extension, hash)                                                    \
    {.name = (file),                                                                               \
     .type = TYPE_##extension,                                                                     \
     .etag = "\"" hash "\"",                                                                       \
     .bytes = tl_web_##symbol,                                                                     \
     .length = sizeof(tl_web_##symbol),                                                            \
     .gzip = tl_web_##symbol##_gzip,                                                               \
     .gzip_length = sizeof(tl_web_##symbol##_gzip)},

static const struct tl_admin_file files[] = {TL_WEB_FILES(FILE_ROW)};

const struct tl_admin_file *tl_admin_file_find(const char *path, size_t length)
{
    static const char folder[] = "/assets/", first[] = "index.html";
    const char *name = path;
    size_t n = length;
    if (length == 1 && path[0] == '/') {
        name = first;
        n = sizeof(first) - 1;
    } else if (length > sizeof(folder) - 1 && memcmp(path, folder, sizeof(folder) - 1) == 0) {
        name = path + sizeof(folder) - 1;
        n = length - (sizeof(folder) - 1);
    } else {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strlen(files[i].name) == n && memcmp(files[i].name, name, n) == 0)
            return &files[i];
    return NULL;
}
