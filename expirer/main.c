/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tellerline-expirer: ends sessions at their deadline and drops waiting visitors who went away.
 *
 * It sleeps until the next deadline instead of polling. See expirer.c (sessions), absence.c
 * (waiting visitors) and the functions beside them.
 */
#include "common/role/daemon.h"
#include "expirer/expirer.h"
#include "expirer/visits.h"

int main(int argc, char **argv)
{
    const struct tl_role role = {
        .name = "expirer",
        .summary = "Ends sessions at their deadline and drops waiting visitors who went away.",
        .metrics = tl_expirer_metrics,
        .n_metrics = TL_EXPIRER_METRICS,
        .queue_metrics = &tl_visits_tables,
        .admin = offsetof(struct tl_config, admin.expirer),
        .start = tl_expirer_start,
        .turn = tl_expirer_turn,
        .stop = tl_expirer_stop,
    };
    return tl_daemon_main(&role, argc, argv);
}
