/* SPDX-License-Identifier: Apache-2.0 */
/* `report`: what happened in a queue (common/report), for the terminal and for programs. */
#ifndef TL_CTL_REPORT_H
#define TL_CTL_REPORT_H

#include "common/report/report.h"

#include "ctl/shell/shell.h"

/* other: a second sale beside it, or NULL. */

/* For 80 columns, but the changes. */
void tl_report_text(const json_t *report, const json_t *other, bool colour, struct tl_text *out);
/* A line for each step, below the names of the numbers; of two sales with the name of each, and the
 * time since it opened. */
void tl_report_csv(const json_t *report, const json_t *other, struct tl_text *out);
/* The sales of a queue. */
void tl_report_list(const json_t *sales, bool colour, struct tl_text *out);

tl_ctl_verb tl_command_report;

#endif
