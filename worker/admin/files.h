/* SPDX-License-Identifier: Apache-2.0 */
/* The files of worker/admin/assets, which are built into the program: the dashboard. */
#ifndef TL_ADMIN_FILES_H
#define TL_ADMIN_FILES_H

#include <stddef.h>

struct tl_admin_file {
    const char *name; /* "dashboard.js" */
    const char *type; /* Content-Type */
    const char *etag; /* in double quotes */
    const void *bytes;
    size_t length;
    const void *gzip; /* the same compressed */
    size_t gzip_length;
};

/* The file that is served at this path, of so many bytes: "/" is index.html, any other is at
 * "/assets/NAME". NULL: there is none. */
const struct tl_admin_file *tl_admin_file_find(const char *path, size_t length);

#endif
