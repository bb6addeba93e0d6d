/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `tellerline plan` and `rehearse`, beside those that other commands have, too. */
#ifndef TL_LAB_OPTIONS_H
#define TL_LAB_OPTIONS_H

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
    const char *lanes;    /* who comes in which (lab/crowd.h); NULL: in the default lane */
    int64_t opens_after_ms;
    int64_t patience_ms; /* 0: nobody gives up */
    double spread;
    uint64_t seed;
};

struct tl_rehearse_options {
    const char *target; /* NULL: http.listen of the configuration */
    uint64_t speed;     /* 0: as fast as the sale */
    double leaving;     /* share of those who give up */
};

/* Each sets the defaults and writes its rows, which store into *options. Returns how many. Missing
 * options of plan are noticed by tl_plan_options_check and tl_plan_compute. */
size_t tl_plan_options_rows(struct tl_plan_options *options, struct tl_option *rows);
/* Those of them that describe a crowd, and not the site or its settings. */
size_t tl_crowd_options_rows(struct tl_plan_options *options, struct tl_option *rows);
size_t tl_rehearse_options_rows(struct tl_rehearse_options *options, struct tl_option *rows);

/* Combinations that make no sense, of those that describe a crowd. replays: visitor by visitor. */
bool tl_crowd_options_check(const struct tl_plan_options *options, bool replays,
                            struct tl_error *err);
/* The same of all of plan. */
bool tl_plan_options_check(const struct tl_plan_options *options, bool json, struct tl_error *err);

#endif
