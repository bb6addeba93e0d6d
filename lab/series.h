/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A curve over time in bounded memory: at most TL_SERIES_MOST stretches of equal width, which
 * doubles whenever the time outgrows them.
 */
#ifndef TL_LAB_SERIES_H
#define TL_LAB_SERIES_H

#include <stddef.h>
#include <stdint.h>

enum { TL_SERIES_MOST = 1024 };

struct tl_series_point {
    uint64_t arrived, admitted; /* within this stretch */
    uint64_t waiting, active;   /* the most at any moment of it */
};

struct tl_series {
    int64_t width_ms;         /* of a stretch; the first begins at 0 */
    size_t n;                 /* stretches up to the latest moment noted */
    uint64_t waiting, active; /* since that moment */
    struct tl_series_point points[TL_SERIES_MOST];
};

void tl_series_init(struct tl_series *series);

/* From `now_ms` on, so many wait and are active; arrived and admitted are those of this moment.
 * now_ms is at least 0 and never goes back. */
void tl_series_note(struct tl_series *series, int64_t now_ms, const struct tl_series_point *point);

#endif
