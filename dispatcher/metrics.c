/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatcher/dispatcher.h"

const struct tl_metric_desc tl_dispatcher_metrics[TL_DISPATCHER_METRICS] = {
    [TL_DISPATCHER_BATCHES] = {"tellerline_dispatcher_batches_total", "Ingest batches applied.",
                               TL_COUNTER},
    [TL_DISPATCHER_REPEATED] = {"tellerline_dispatcher_repeated_total",
                                "Batches recognised as sent twice and ignored.", TL_COUNTER},
    [TL_DISPATCHER_COMMANDS] = {"tellerline_dispatcher_commands_total",
                                "Commands in the batches applied.", TL_COUNTER},
    [TL_DISPATCHER_POISON] = {"tellerline_dispatcher_poison_total",
                              "Ingest entries set aside because they cannot be applied.",
                              TL_COUNTER},
    [TL_DISPATCHER_LOST] = {"tellerline_dispatcher_lost_total",
                            "Ingest entries whose payload was gone before they were applied.",
                            TL_COUNTER},
    [TL_DISPATCHER_TAKEOVERS] = {"tellerline_dispatcher_takeovers_total", "Leases taken.",
                                 TL_COUNTER},
    [TL_DISPATCHER_QUEUES] = {"tellerline_dispatcher_queues",
                              "Queues this process holds the lease of.", TL_GAUGE},
    [TL_DISPATCHER_TROUBLED] = {"tellerline_dispatcher_queues_troubled",
                                "Queues set aside because their data is damaged.", TL_GAUGE},
    [TL_DISPATCHER_UNAPPLIED] = {"tellerline_dispatcher_ingest_unapplied",
                                 "Ingest entries of these queues that are not yet applied.",
                                 TL_GAUGE},
    [TL_DISPATCHER_AGE] = {"tellerline_dispatcher_ingest_age_milliseconds",
                           "Age of the oldest of them.", TL_GAUGE},
    [TL_DISPATCHER_APPLY_TIME] = {"tellerline_dispatcher_apply_seconds",
                                  "From reading ingest entries to having them applied.",
                                  TL_HISTOGRAM},
    [TL_DISPATCHER_LISTED] = {"tellerline_dispatcher_queues_listed",
                              "Queues there are, held by this process or not.", TL_GAUGE},
    [TL_DISPATCHER_STORE_TIME] = {"tellerline_store_seconds",
                                  "One command to Redis and its answer, pipelines and waits for "
                                  "events left out.",
                                  TL_HISTOGRAM},
};

static const struct tl_metric_desc queue_rows[TL_DISPATCHER_QUEUE_METRICS] = {
    [TL_QUEUE_INGEST_UNAPPLIED] = {"tellerline_queue_ingest_unapplied",
                                   "Ingest entries that are not yet applied.", TL_GAUGE},
    [TL_QUEUE_INGEST_AGE] = {"tellerline_queue_ingest_age_milliseconds",
                             "Age of the oldest of them.", TL_GAUGE_MAX},
    [TL_QUEUE_COMMANDS] = {"tellerline_queue_commands_total", "Commands of visitors applied.",
                           TL_COUNTER},
};

const struct tl_queue_metrics_tables tl_dispatcher_queue_metrics = {
    .queue = queue_rows, .n_queue = TL_DISPATCHER_QUEUE_METRICS};
