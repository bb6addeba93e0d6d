/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `GET /preview/{queue}`: the waiting page of a queue in every state, with invented numbers and
 * with the queue's own texts, in its own look. `?state=` and `?lang=` choose one; without a state
 * it is a list of all. A preview joins nothing and asks for nothing. Thread-safe.
 */
#ifndef TL_ADMIN_PREVIEWS_H
#define TL_ADMIN_PREVIEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/text.h"
#include "common/config/settings.h"
#include "common/control/control.h"
#include "worker/admin/backend.h"
#include "worker/page/look.h"

#define TL_ADMIN_PREVIEWS "/preview/"

struct tl_admin_previews;

/* A page and the policy that it must be sent with. Zeroed before the first use. */
struct tl_admin_page {
    struct tl_text html;
    char *policy; /* owned; NULL: that of the dashboard's pages */
};
void tl_admin_page_clear(struct tl_admin_page *page);

/* All of it is borrowed; a reload replaces the events. NULL: no memory. */
struct tl_admin_previews *tl_admin_previews_new(const struct tl_config *config,
                                                const struct tl_brand *brand,
                                                struct tl_event_looks *events,
                                                struct tl_error *err);
void tl_admin_previews_free(struct tl_admin_previews **previews);
/* Takes over the events of a new configuration, which is not kept; on failure the old ones stay. */
bool tl_admin_previews_reload(struct tl_admin_previews *previews, const struct tl_config *config,
                              struct tl_error *err);

/* The page for the target of such a request. False: the answer is the problem. */
bool tl_admin_previews_render(struct tl_admin_previews *previews, struct tl_control *control,
                              const struct tl_target *target, int64_t now_ms,
                              struct tl_admin_page *page, struct tl_control_answer *answer);
/* What the pages show beside their text, such as the logo: the asset with this path of `length`
 * bytes, or NULL. It stays until tl_admin_previews_return, which must follow in any case. */
const struct tl_asset *tl_admin_previews_borrow(struct tl_admin_previews *previews,
                                                const char *path, size_t length);
void tl_admin_previews_return(struct tl_admin_previews *previews);

#endif
