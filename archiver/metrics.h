/* SPDX-License-Identifier: Apache-2.0 */
/* What the archiver counts and measures. */
#ifndef TL_ARCHIVE_METRICS_H
#define TL_ARCHIVE_METRICS_H

#include "common/role/role_main.h"

enum tl_archive_metric {
    TL_ARCHIVED_ENTRIES,
    TL_ARCHIVED_ROWS,
    TL_ARCHIVED_FAILED,
    TL_ARCHIVED_WRITE_TIME,
    TL_ARCHIVED_BEHIND_ENTRIES,
    TL_ARCHIVED_BEHIND_SECONDS,
    TL_ARCHIVED_MISSING,
    TL_ARCHIVED_RESTORED,
    TL_ARCHIVED_COMPARED,
    TL_ARCHIVED_DIFFERENCES,
    TL_ARCHIVED_TRAILS_DAMAGED,
    TL_ARCHIVED_CONNECTED,
    TL_ARCHIVED_METRICS
};

/* TL_ARCHIVED_..., then those of every role. */
extern const struct tl_metric_desc tl_archive_metrics[TL_ARCHIVED_METRICS + TL_ROLE_METRICS];

#endif
