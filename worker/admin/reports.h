/* SPDX-License-Identifier: Apache-2.0 */
/* Past sales of a queue, from the archive in PostgreSQL: one report and one list at a time, over a
 * connection of its own and within 25 seconds, so that people who look at reports cannot keep
 * PostgreSQL busy. Thread-safe. */
#ifndef TL_ADMIN_REPORTS_H
#define TL_ADMIN_REPORTS_H

#include "common/config/settings.h"
#include "common/control/control.h"
#include "worker/admin/previews.h"

struct tl_admin_reports;

/* config is borrowed. NULL: no memory. */
struct tl_admin_reports *tl_admin_reports_new(const struct tl_config *config, struct tl_error *err);
void tl_admin_reports_free(struct tl_admin_reports **reports); /* NULL allowed */

/* Answers `route`, whose target this is: the list of sales, or the report of one as JSON; with
 * `format=html` as a page. */
void tl_admin_reports_answer(struct tl_admin_reports *reports, const struct tl_control_route *route,
                             const struct tl_target *target, struct tl_admin_page *page,
                             struct tl_control_answer *answer);

#endif
