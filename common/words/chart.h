/* SPDX-License-Identifier: Apache-2.0 */
/* A curve over time, and charts of it. */
#ifndef TL_CHART_H
#define TL_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/text.h"

/*
 * A curve over time in bounded memory: at most TL_SERIES_MOST stretches of equal width, which
 * doubles whenever the time outgrows them.
 */
enum { TL_SERIES_MOST = 1024, TL_SERIES_MARKS = 64 };

struct tl_series_point {
    uint64_t arrived, admitted; /* within this stretch */
    uint64_t waiting, active;   /* the most at any moment of it */
};

struct tl_series {
    int64_t width_ms;         /* of a stretch, 1 at first; the first begins at 0 */
    int64_t begin_ms;         /* what a chart says of that moment; may be below 0 */
    size_t n;                 /* stretches up to the latest moment noted */
    uint64_t waiting, active; /* since that moment */
    struct tl_series_point points[TL_SERIES_MOST];
    size_t n_marks;
    int64_t marks_ms[TL_SERIES_MARKS]; /* moments that a chart marks by their numbers */
};

/* Draws the line, and the active visitors, over time, for a terminal of 80 columns. Each column
 * shows the most within its stretch of time. */
void tl_chart_text(const struct tl_series *series, bool colour, struct tl_text *out);

struct tl_chart {
    const struct tl_series *series;
    const struct tl_series *other; /* drawn over it, of the same width and length; NULL: none */
    const char *name, *other_name; /* of both, where there are two */
    const char *title, *description;
};
/* A whole SVG document. Its texts are any; see tl_markup_append. Without marks where there are two.
 */
void tl_chart_svg(const struct tl_chart *chart, struct tl_text *out);

#endif
