/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `tellerline plan`, beside those that other commands have, too. */
#ifndef TL_LAB_PLAN_OPTIONS_H
#define TL_LAB_PLAN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/role/options.h"

#include "lab/model.h"

struct tl_plan_options {
    struct tl_plan_input input;
    bool yaml; /* write the configuration only */
    bool simulate;
    const char *arrivals; /* file; NULL: draw the crowd */
    const char *svg;      /* file; NULL: none */
    const char *queue;    /* of the configuration, whose settings are simulated; NULL: the plan's */
    const char *lanes;    /* who comes in which (lab/lanes.h); NULL: in the default lane */
    int64_t opens_after_ms;
    int64_t patience_ms; /* 0: nobody gives up */
    double spread;
    uint64_t seed;
};

enum { TL_PLAN_OPTIONS_N = 29, TL_CROWD_OPTIONS_N = 12 };

/* Sets the defaults and writes the rows, each of which stores into *options. Missing options are
 * noticed by tl_plan_options_check and tl_plan_compute. */
void tl_plan_options_rows(struct tl_plan_options *options,
                          struct tl_option rows[TL_PLAN_OPTIONS_N]);

/* Those of them that describe a crowd, and not the site or its settings. Sets all defaults. */
void tl_crowd_options_rows(struct tl_plan_options *options,
                           struct tl_option rows[TL_CROWD_OPTIONS_N]);

/* A share such as "0.15" or "15%", up to `most`. */
bool tl_plan_ratio(const char *value, double most, double *ratio, struct tl_error *err);

/* Combinations that make no sense. */
bool tl_plan_options_check(const struct tl_plan_options *options, bool json, struct tl_error *err);

#endif
