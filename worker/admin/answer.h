/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the admin listener, with the headers that keep other sites out of them. */
#ifndef TL_ADMIN_ANSWER_H
#define TL_ADMIN_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include <microhttpd.h>

#include "worker/admin/call.h"
#include "worker/page/page_assets.h"

/* Queues the answer of a call. secure: cookies are for https only. False: the connection should be
 * closed. */
bool tl_admin_answer_call(struct tl_admin_call *call, bool secure);

/* The file of worker/admin/assets that is served at this path of `length` bytes: "/" is index.html,
 * any other is at "/assets/NAME". NULL: there is none. */
const struct tl_asset *tl_admin_file_find(const char *path, size_t length);

enum tl_admin_file_kind {
    TL_ADMIN_FILE_DASHBOARD, /* of worker/admin/assets */
    TL_ADMIN_FILE_SHOWN,     /* what a waiting page shows; copied */
    TL_ADMIN_FILE_TEXT,      /* made for this answer; copied */
};
/* Queues a file. False: the connection should be closed. */
bool tl_admin_answer_file(struct MHD_Connection *connection, const struct tl_asset *file,
                          enum tl_admin_file_kind kind);

#endif
