/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tellerline-dispatcher: applies ingest batches to the lines, exactly once and in stream order.
 *
 * The replica that holds a queue's lease applies its batches. The function apply checks the fence
 * of the lease and that no older entry is pending, so an earlier holder that wakes up late does no
 * harm. See dispatcher.c, apply.c and apply.lua.
 */
#include "common/role/daemon.h"
#include "dispatcher/dispatcher.h"

int main(int argc, char **argv)
{
    const struct tl_role role = {
        .name = "dispatcher",
        .summary = "Applies the batches of the workers to the lines, in the order of the stream.",
        .metrics = tl_dispatcher_metrics,
        .n_metrics = TL_DISPATCHER_METRICS,
        .queue_metrics = &tl_dispatcher_queue_metrics,
        .admin = offsetof(struct tl_config, admin.dispatcher),
        .start = tl_dispatcher_start,
        .turn = tl_dispatcher_turn,
        .stop = tl_dispatcher_stop,
    };
    return tl_daemon_main(&role, argc, argv);
}
