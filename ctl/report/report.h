/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `report`: what happened in a queue, from the archive. PostgreSQL counts and makes the report, as
 * JSON (report.sql); the other forms are written from that, so that all say the same.
 */
#ifndef TL_CTL_REPORT_H
#define TL_CTL_REPORT_H

#include "lab/simulate.h"

#include "ctl/shell/shell.h"

/* series: the line, and the active visitors, over time, with a mark for each change. */

/* For 80 columns, but the changes. */
void tl_report_text(const json_t *report, const struct tl_series *series, bool colour,
                    struct tl_text *out);
/* A line for each step, below the names of the numbers. */
void tl_report_csv(const json_t *report, struct tl_text *out);
/* One page without anything from elsewhere. */
void tl_report_html(const json_t *report, const struct tl_series *series, struct tl_text *out);

tl_ctl_verb tl_command_report;

#endif
