/* SPDX-License-Identifier: Apache-2.0 */
#include "archiver/metrics.h"

const struct tl_metric_desc tl_archive_metrics[TL_ARCHIVED_METRICS + TL_ROLE_METRICS] = {
    [TL_ARCHIVED_ENTRIES] = {"tellerline_archive_entries_total",
                             "Entries of the records of queues that PostgreSQL has.", TL_COUNTER},
    [TL_ARCHIVED_ROWS] = {"tellerline_archive_rows_total", "Rows written to PostgreSQL.",
                          TL_COUNTER},
    [TL_ARCHIVED_FAILED] = {"tellerline_archive_failures_total",
                            "Connections to PostgreSQL and transactions that failed.", TL_COUNTER},
    [TL_ARCHIVED_WRITE_TIME] = {"tellerline_archive_write_seconds",
                                "One transaction in PostgreSQL.", TL_HISTOGRAM},
    [TL_ARCHIVED_BEHIND_ENTRIES] =
        {"tellerline_archive_behind_entries",
         "Entries of the records in Redis that PostgreSQL does not have yet.", TL_GAUGE},
    [TL_ARCHIVED_BEHIND_SECONDS] = {"tellerline_archive_behind_seconds",
                                    "Age of the oldest entry that PostgreSQL does not have yet.",
                                    TL_GAUGE_MAX},
    [TL_ARCHIVED_MISSING] =
        {"tellerline_archive_missing",
         "Notes about visitors not written because the archiver is too far behind.", TL_GAUGE},
    [TL_ARCHIVED_RESTORED] = {"tellerline_archive_restored_total",
                              "Visitors brought back to queues whose data Redis had lost.",
                              TL_COUNTER},
    [TL_ARCHIVED_COMPARED] = {"tellerline_archive_compared_total",
                              "Entries of PostgreSQL, and visitors of Redis, that were compared.",
                              TL_COUNTER},
    [TL_ARCHIVED_DIFFERENCES] = {"tellerline_archive_differences",
                                 "Places at which Redis and PostgreSQL differ; at most 100 of each "
                                 "queue are counted.",
                                 TL_GAUGE},
    [TL_ARCHIVED_TRAILS_DAMAGED] = {"tellerline_archive_trails_damaged",
                                    "Queues with a damaged trail, to which nothing is added.",
                                    TL_GAUGE},
    [TL_ARCHIVED_CONNECTED] = {"tellerline_archive_connected", "1 while PostgreSQL can be used.",
                               TL_GAUGE_MAX},
    [TL_ARCHIVED_METRICS] = TL_ROLE_METRIC_ROWS("archiver"),
};
