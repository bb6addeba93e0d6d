/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/grow.h"

enum { PIECE_BYTES = 65536 }; /* that are read at once */

char *tl_file_read(const char *what, const char *path, size_t limit, size_t *length,
                   struct tl_error *err)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        tl_error_set(err, errno == ENOMEM ? TL_ERR_NOMEM : TL_ERR_SYSTEM, "cannot open %s%s: %s",
                     what, path, strerror(errno));
        return NULL;
    }
    char *bytes = NULL;
    size_t capacity = 0, taken;
    errno = 0;
    *length = 0;
    do { /* it may be a pipe */
        size_t wanted = limit + 1 - *length < PIECE_BYTES ? limit + 1 - *length : PIECE_BYTES;
        char *longer = tl_grow(bytes, &capacity, *length + wanted + 1, 1);
        if (longer == NULL) {
            tl_error_set(err, TL_ERR_NOMEM, "out of memory while reading %s", path);
            free(bytes);
            bytes = NULL;
            break;
        }
        bytes = longer;
        taken = fread(bytes + *length, 1, wanted, file);
        *length += taken;
        bytes[*length] = '\0';
    } while (taken > 0 && *length <= limit);
    if (bytes != NULL && ferror(file)) {
        tl_error_set(err, TL_ERR_SYSTEM, "cannot read %s%s: %s", what, path, strerror(errno));
        free(bytes);
        bytes = NULL;
    }
    (void)fclose(file); /* only read from: nothing can be lost */
    return bytes;
}
