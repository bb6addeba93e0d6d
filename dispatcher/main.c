/*
 * tellerline-dispatcher: applies ingest batches to the lines, exactly once and in stream order.
 *
 * Each queue is applied by the one replica that holds its lease; the apply script checks the
 * lease's fence and that no older entry is pending, so a former holder that wakes up late can do no
 * harm. See apply.c and apply.lua.
 */
#include "common/role/daemon.h"
#include "dispatcher/dispatcher.h"

static const struct tl_listen *admin_listen(const struct tl_config *config)
{
    return &config->admin.dispatcher;
}

int main(int argc, char **argv)
{
    const struct tl_role role = {
        .name = "dispatcher",
        .summary = "Applies what the workers took in to the lines, in the order it came.",
        .metrics = tl_dispatcher_metrics,
        .n_metrics = TL_DISPATCHER_METRICS,
        .admin = admin_listen,
        .start = tl_dispatcher_start,
        .turn = tl_dispatcher_turn,
        .stop = tl_dispatcher_stop,
    };
    return tl_daemon_main(&role, argc, argv);
}
