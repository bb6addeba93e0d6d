/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the line, and the active visitors, over time. */
#ifndef TL_LAB_CHART_H
#define TL_LAB_CHART_H

#include <stdbool.h>

#include "common/base/text.h"

#include "lab/series.h"

/* For a terminal of 80 columns. Each column shows the most within its stretch of time. */
void tl_chart_text(const struct tl_series *series, bool colour, struct tl_text *out);

/* A whole SVG document. Title and description are any text; what is not printable ASCII becomes
 * '?'. */
void tl_chart_svg(const struct tl_series *series, const char *title, const char *description,
                  struct tl_text *out);

#endif
