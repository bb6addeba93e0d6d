/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of the admitter. */
#ifndef TL_ADMITTER_METRICS_H
#define TL_ADMITTER_METRICS_H

#include "common/role/queue_metrics.h"

enum tl_admitter_metric {
    TL_ADMITTER_ADMITTED,   /* visitors */
    TL_ADMITTER_STEPS,      /* calls of the function admit */
    TL_ADMITTER_IDLE_STEPS, /* of these, calls that admitted no visitor */
    TL_ADMITTER_QUEUES,     /* leases held now */
    TL_ADMITTER_TROUBLED,   /* queues set aside */
    TL_ADMITTER_STEP_TIME,  /* one call of the function */
    TL_ADMITTER_STEERED,    /* queues held whose capacity is steered */
    TL_ADMITTER_UNREPORTED, /* of these, queues without a fresh report of the site */
    TL_ADMITTER_CAPACITY,   /* of these queues, added up */
    TL_ADMITTER_RAISES,     /* of such a capacity */
    TL_ADMITTER_CUTS,
    TL_ADMITTER_PROBES,       /* answers of sites, and failures */
    TL_ADMITTER_PROBE_ERRORS, /* failures alone */
    TL_ADMITTER_LISTED,       /* all queues there are */
    TL_ADMITTER_STORE_TIME,   /* one command */
    TL_ADMITTER_METRICS
};

extern const struct tl_metric_desc tl_admitter_metrics[TL_ADMITTER_METRICS];

/* Of a held queue. */
enum tl_admitter_queue_metric {
    TL_QUEUE_WAITING,
    TL_QUEUE_ACTIVE,
    TL_QUEUE_CAPACITY,
    TL_QUEUE_ADMITTED,
    TL_QUEUE_OVER_ADMISSION,
    TL_QUEUE_WITHOUT_FEEDBACK,
    TL_QUEUE_SITE_LOAD,
    TL_ADMITTER_QUEUE_METRICS
};

extern const struct tl_queue_metrics_tables tl_admitter_queue_metrics;

#endif
