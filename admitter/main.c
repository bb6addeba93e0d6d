/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tellerline-admitter: admits the next visitors while there is capacity.
 *
 * Events wake it: a session ended, a visitor joined, the settings changed. A slow timer makes up
 * for a missed one. See admitter.c and admit.lua.
 */
#include "admitter/admitter.h"
#include "admitter/admitter_metrics.h"
#include "common/role/daemon.h"

int main(int argc, char **argv)
{
    const struct tl_role role = {
        .name = "admitter",
        .summary = "Admits the next visitors while there is capacity.",
        .metrics = tl_admitter_metrics,
        .n_metrics = TL_ADMITTER_METRICS,
        .queue_metrics = &tl_admitter_queue_metrics,
        .admin = offsetof(struct tl_config, admin.admitter),
        .start = tl_admitter_start,
        .turn = tl_admitter_turn,
        .stop = tl_admitter_stop,
    };
    return tl_daemon_main(&role, argc, argv);
}
