/* SPDX-License-Identifier: Apache-2.0 */
/* What `tellerline plan` says: as text, as JSON, and as a configuration. */
#ifndef TL_LAB_PLAN_REPORT_H
#define TL_LAB_PLAN_REPORT_H

#include <stdbool.h>

#include <jansson.h>

#include "common/base/text.h"

#include "lab/model.h"
#include "lab/simulate.h"

/* Pointers are borrowed. */
struct tl_plan_report {
    const struct tl_plan_input *input;
    const struct tl_plan *plan; /* NULL: there are no figures to compute one from */
    const struct tl_plan_warnings *warnings;
    const struct tl_simulation *simulation; /* NULL: none, and the next two are not used */
    struct tl_simulation_settings settings;
    char visitors[400]; /* who was replayed, as a sentence */
    bool colour;
};

/* For 80 columns. */
void tl_plan_report_text(const struct tl_plan_report *report, struct tl_text *out);
/* NULL when out of memory. */
json_t *tl_plan_report_json(const struct tl_plan_report *report);
/* The queue `sale` with the settings of the plan, valid for `tellerline check`. */
void tl_plan_report_yaml(const struct tl_plan_input *input, const struct tl_plan *plan,
                         struct tl_text *out);

#endif
