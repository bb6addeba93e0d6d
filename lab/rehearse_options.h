/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `tellerline rehearse`, beside those of the crowd (plan_options.h) and those that
 * other commands have, too. */
#ifndef TL_LAB_REHEARSE_OPTIONS_H
#define TL_LAB_REHEARSE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/role/options.h"

struct tl_rehearse_options {
    const char *server; /* NULL: http.listen of the configuration */
    uint64_t speed;     /* 0: as fast as the sale */
    double leaving;     /* share of those who give up */
    bool remove;        /* only remove a scratch queue that is left */
};

enum { TL_REHEARSE_OPTIONS_N = 4 };

/* Sets the defaults and writes the rows, each of which stores into *options. */
void tl_rehearse_options_rows(struct tl_rehearse_options *options,
                              struct tl_option rows[TL_REHEARSE_OPTIONS_N]);

#endif
