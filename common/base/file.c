/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"

char *tl_file_read(const char *what, const char *path, size_t limit, size_t *length,
                   struct tl_error *err)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        tl_error_set(err, errno == ENOMEM ? TL_ERR_NOMEM : TL_ERR_SYSTEM, "cannot open %s%s: %s",
                     what, path, strerror(errno));
        return NULL;
    }
    char *bytes = malloc(limit + 2);
    if (bytes == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "out of memory while reading %s", path);
    } else {
        errno = 0;
        *length = fread(bytes, 1, limit + 1, file);
        bytes[*length] = '\0';
    }
    if (bytes != NULL && ferror(file)) {
        tl_error_set(err, TL_ERR_SYSTEM, "cannot read %s%s: %s", what, path, strerror(errno));
        free(bytes);
        bytes = NULL;
    }
    (void)fclose(file); /* only read from: nothing can be lost */
    return bytes;
}
