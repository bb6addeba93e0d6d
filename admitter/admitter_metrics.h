/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of the admitter, which several of its modules count. */
#ifndef TL_ADMITTER_METRICS_H
#define TL_ADMITTER_METRICS_H

enum tl_admitter_metric {
    TL_ADMITTER_ADMITTED,   /* visitors */
    TL_ADMITTER_STEPS,      /* calls of the function admit */
    TL_ADMITTER_IDLE_STEPS, /* of these, calls that admitted no visitor */
    TL_ADMITTER_STEP_TIME,  /* one call of the function */
    TL_ADMITTER_STEERED,    /* queues held whose capacity is steered */
    TL_ADMITTER_UNREPORTED, /* of these, queues without a fresh report of the site */
    TL_ADMITTER_CAPACITY,   /* of these queues, added up */
    TL_ADMITTER_RAISES,     /* of such a capacity */
    TL_ADMITTER_CUTS,
    TL_ADMITTER_PROBES,       /* answers of sites, and failures */
    TL_ADMITTER_PROBE_ERRORS, /* failures alone */
    TL_ADMITTER_METRICS
};

#endif
