/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the admin listener, with the headers that keep other sites out of them. */
#ifndef TL_ADMIN_ANSWER_H
#define TL_ADMIN_ANSWER_H

#include <stdbool.h>

#include <microhttpd.h>

#include "worker/admin/call.h"
#include "worker/admin/files.h"
#include "worker/page/page_assets.h"

/* Queues the answer of a call. secure: cookies are for https only. False: the connection should be
 * closed. */
bool tl_admin_answer_call(struct tl_admin_call *call, bool secure);
/* Queues a file of the dashboard. */
bool tl_admin_answer_file(struct MHD_Connection *connection, const struct tl_admin_file *file);

/* Queues a file that a waiting page shows. */
bool tl_admin_answer_asset(struct MHD_Connection *connection, const struct tl_asset *asset);

#endif
