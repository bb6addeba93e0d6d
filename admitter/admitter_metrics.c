/* SPDX-License-Identifier: Apache-2.0 */
#include "admitter/admitter_metrics.h"

const struct tl_metric_desc tl_admitter_metrics[TL_ADMITTER_METRICS] = {
    [TL_ADMITTER_ADMITTED] = {"tellerline_admitter_admitted_total", "Visitors admitted.",
                              TL_COUNTER},
    [TL_ADMITTER_STEPS] = {"tellerline_admitter_steps_total", "Calls of the function admit.",
                           TL_COUNTER},
    [TL_ADMITTER_IDLE_STEPS] = {"tellerline_admitter_idle_steps_total",
                                "Calls of the function admit that admitted no visitor.",
                                TL_COUNTER},
    [TL_ADMITTER_QUEUES] = {"tellerline_admitter_queues", "Queues this process holds the lease of.",
                            TL_GAUGE},
    [TL_ADMITTER_TROUBLED] = {"tellerline_admitter_queues_troubled",
                              "Queues set aside because their data is damaged.", TL_GAUGE},
    [TL_ADMITTER_STEP_TIME] = {"tellerline_admitter_step_seconds",
                               "One call of the function admit.", TL_HISTOGRAM},
    [TL_ADMITTER_STEERED] = {"tellerline_admitter_queues_steered",
                             "Queues held whose capacity the site's reports steer.", TL_GAUGE},
    [TL_ADMITTER_UNREPORTED] = {"tellerline_admitter_queues_without_feedback",
                                "Those without a fresh report: their capacity is the last one seen "
                                "to be safe.",
                                TL_GAUGE},
    [TL_ADMITTER_CAPACITY] = {"tellerline_admitter_capacity_steered",
                              "Capacity of the steered queues, added up.", TL_GAUGE},
    [TL_ADMITTER_RAISES] = {"tellerline_admitter_capacity_raises_total",
                            "Times a steered capacity was raised.", TL_COUNTER},
    [TL_ADMITTER_CUTS] = {"tellerline_admitter_capacity_cuts_total",
                          "Times a steered capacity was cut.", TL_COUNTER},
    [TL_ADMITTER_PROBES] = {"tellerline_admitter_probes_total",
                            "Probes of sites that ended, one way or another.", TL_COUNTER},
    [TL_ADMITTER_PROBE_ERRORS] = {"tellerline_admitter_probe_errors_total",
                                  "Probes of sites that failed.", TL_COUNTER},
    [TL_ADMITTER_LISTED] = {"tellerline_admitter_queues_listed",
                            "Queues there are, held by this process or not.", TL_GAUGE},
    [TL_ADMITTER_STORE_TIME] = {"tellerline_store_seconds",
                                "One command to Redis and its answer, pipelines and waits for "
                                "events left out.",
                                TL_HISTOGRAM},
};

static const struct tl_metric_desc queue_rows[TL_ADMITTER_QUEUE_METRICS] = {
    [TL_QUEUE_WAITING] = {"tellerline_queue_waiting", "Visitors in the line.", TL_GAUGE},
    [TL_QUEUE_ACTIVE] = {"tellerline_queue_active", "Visitors with a session.", TL_GAUGE},
    [TL_QUEUE_CAPACITY] = {"tellerline_queue_capacity",
                           "Capacity in force, as steered where it is.", TL_GAUGE},
    [TL_QUEUE_ADMITTED] = {"tellerline_queue_admitted_total", "Visitors admitted.", TL_COUNTER},
    [TL_QUEUE_OVER_ADMISSION] = {"tellerline_queue_over_admission",
                                 "Active visitors beyond what capacity and overbook allowed at the "
                                 "last admission. Must be 0.",
                                 TL_GAUGE},
    [TL_QUEUE_WITHOUT_FEEDBACK] = {"tellerline_queue_without_feedback",
                                   "1 when the capacity is steered and the site reports nothing.",
                                   TL_GAUGE},
    [TL_QUEUE_SITE_LOAD] = {"tellerline_queue_site_load_percent",
                            "The load that the site reported last, of a steered queue.",
                            TL_GAUGE_MAX},
};

const struct tl_queue_metrics_tables tl_admitter_queue_metrics = {
    .queue = queue_rows, .n_queue = TL_ADMITTER_QUEUE_METRICS, .state = true};
