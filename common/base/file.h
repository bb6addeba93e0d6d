/* SPDX-License-Identifier: Apache-2.0 */
/* Files, read whole. */
#ifndef TL_FILE_H
#define TL_FILE_H

#include <stddef.h>

#include "common/base/error.h"

/* The bytes of a file and a terminating zero, which the caller frees: at most `limit` of them, and
 * one more shows that the file is larger. `what` stands before the path in messages: "" or "the
 * configuration ". NULL with TL_ERR_SYSTEM or TL_ERR_NOMEM. */
char *tl_file_read(const char *what, const char *path, size_t limit, size_t *length,
                   struct tl_error *err);

#endif
