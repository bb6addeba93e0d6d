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
/* A file of worker/admin/assets, which are built into the program: the dashboard. */
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
/* Queues it. */
bool tl_admin_answer_file(struct MHD_Connection *connection, const struct tl_admin_file *file);

/* Queues a file that a waiting page shows. */
bool tl_admin_answer_asset(struct MHD_Connection *connection, const struct tl_asset *asset);

#endif
