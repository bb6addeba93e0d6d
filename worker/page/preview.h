/* SPDX-License-Identifier: Apache-2.0 */
/* Every state of the waiting page with invented numbers, for the operator to look at. */
#ifndef TL_PAGE_PREVIEW_H
#define TL_PAGE_PREVIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/page/view.h"

/* The name of the i-th one, for `?state=`: "waiting"; NULL: there are fewer. Static storage. */
const char *tl_page_preview_name(size_t i);

/* Fills the view of the state with this name. False: there is none. The settings are those of the
 * queue, and change to what the state shows; the view borrows them. The caller adds the queue's
 * name, its event, and the QR code of view->code_address, if there is one. */
bool tl_page_preview(const char *name, int64_t now_ms, struct tl_queue_settings *settings,
                     struct tl_view *view);

#endif
