/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes in the reports of `tellerline plan --simulate` and `tellerline rehearse`: the same words.
 */
#ifndef TL_LAB_LANES_REPORT_H
#define TL_LAB_LANES_REPORT_H

#include <jansson.h>

#include "common/base/text.h"

#include "lab/lanes.h"

/* The line above the rows. */
void tl_lanes_report_head(struct tl_text *out);
/* One lane; source: "rehearsed" or "simulated". */
void tl_lanes_report_row(const struct tl_plan_lanes *lanes, unsigned lane, const char *source,
                         const struct tl_lane_waits *waits, struct tl_text *out);
/* Says so if the lane starved, and what to do. */
void tl_lanes_report_starved(const struct tl_plan_lanes *lanes, unsigned lane,
                             const struct tl_lane_waits *waits, struct tl_text *out);
/* Owned by the caller; NULL when out of memory. */
json_t *tl_lanes_report_json(const struct tl_plan_lanes *lanes, unsigned lane,
                             const struct tl_lane_waits *waits);

#endif
