/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plan` and `rehearse` say. Each report is made once, as JSON; the text for people is written
 * from that, so that both say the same.
 */
#ifndef TL_LAB_REPORT_H
#define TL_LAB_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/text.h"

#include "lab/figures.h"
#include "lab/model.h"

/* ---- plan ---- */

/* Pointers are borrowed. */
struct tl_plan_report {
    const struct tl_plan_input *input;
    const struct tl_plan *plan; /* NULL: there are no figures to compute one from */
    const struct tl_sentences *warnings;
    const struct tl_simulation *simulation;   /* NULL: none, and the next two are not used */
    const struct tl_queue_settings *settings; /* that were simulated */
    const char *visitors;                     /* who was replayed, as a sentence */
    bool colour;
};

/* Owned by the caller. */
json_t *tl_plan_report_json(const struct tl_plan_report *report);
/* json: that of the same report. For 80 columns. */
void tl_plan_report_text(const struct tl_plan_report *report, const json_t *json,
                         struct tl_text *out);
/* The queue `sale` with these settings, valid for `tellerline check`. */
void tl_plan_report_yaml(const struct tl_queue_settings *settings, struct tl_text *out);

/* ---- rehearse ---- */

struct tl_rehearse_report {
    const char *queue, *scratch, *target;
    const char *source;   /* where the settings are from */
    const char *visitors; /* who came */
    uint64_t speed;
    const struct tl_queue_settings *settings; /* of the sale; the scratch queue's are scaled */
    const struct tl_rehearsal *rehearsal;
    const struct tl_figures *figures;
    const struct tl_sentences *broken;
    const struct tl_simulation *simulation; /* of the same crowd */
};

/* Owned by the caller. */
json_t *tl_rehearse_report_json(const struct tl_rehearse_report *report);
/* json: that of the same report. */
void tl_rehearse_report_text(const struct tl_rehearse_report *report, const json_t *json,
                             struct tl_text *out);

/* What to do about a reason for which joins were refused; NULL: nothing is known. */
const char *tl_rehearse_advice(const char *reason);

#endif
