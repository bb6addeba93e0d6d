/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a rehearsal, for people and for programs. */
#ifndef TL_LAB_REHEARSE_REPORT_H
#define TL_LAB_REHEARSE_REPORT_H

#include <stdint.h>

#include <jansson.h>

#include "common/base/text.h"
#include "common/config/settings.h"

#include "lab/figures.h"
#include "lab/lane_figures.h"
#include "lab/simulate.h"

struct tl_rehearse_report {
    const char *queue, *scratch, *server;
    const char *source;   /* where the settings are from */
    const char *visitors; /* who came */
    uint64_t speed;
    int64_t opens_after_ms;                   /* of the sale */
    const struct tl_queue_settings *settings; /* of the sale; the scratch queue's are scaled */
    const struct tl_rehearsal *rehearsal;
    const struct tl_figures *figures;
    const struct tl_broken *broken;
    const struct tl_simulation *simulation; /* of the same crowd */
    const struct tl_plan_lanes *lanes;
    const struct tl_lane_figures *lane_figures; /* one for each lane */
};

void tl_rehearse_report_text(const struct tl_rehearse_report *report, struct tl_text *out);
/* Owned by the caller; NULL when out of memory. */
json_t *tl_rehearse_report_json(const struct tl_rehearse_report *report);

/* What to do about a reason for which joins were refused; NULL: nothing is known. */
const char *tl_rehearse_advice(const char *reason);

#endif
