/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tellerline-notifier: tells the hooks of the configuration what happens to queues.
 *
 * It reads what the other programs write into the journal of a queue, and slows none of them.
 */
#include "common/role/daemon.h"
#include "notifier/notifier.h"

int main(int argc, char **argv)
{
    const struct tl_role role = {
        .name = "notifier",
        .summary = "Tells the hooks of the configuration what happens to queues.",
        .metrics = tl_notifier_metrics,
        .n_metrics = TL_NOTIFIER_METRICS,
        .queue_metrics = &tl_notifier_queue_metrics,
        .admin = offsetof(struct tl_config, admin.notifier),
        .start = tl_notifier_start,
        .turn = tl_notifier_turn,
        .stop = tl_notifier_stop,
    };
    return tl_daemon_main(&role, argc, argv);
}
