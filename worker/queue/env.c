/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "worker/queue/env.h"

/* ---- passthrough ---- */

bool tl_queue_env_read(struct tl_queue_env *env, const struct tl_config *config,
                       struct tl_error *err)
{
    char(*names)[sizeof(*env->passthrough)] = calloc(config->n_queues + 1, sizeof(*names));
    size_t n = 0;
    if (names == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the queues");
    for (size_t i = 0; i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        if (!queue->passthrough)
            continue;
        memcpy(names[n++], queue->name, sizeof(*names));
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue->name},
               "mode: passthrough in the file: this worker lets everyone in, until it is taken out "
               "and the worker gets SIGHUP");
    }
    free(env->passthrough);
    env->passthrough = names;
    env->n_passthrough = n;
    env->changes++;
    return true;
}

bool tl_queue_env_lets_in(const struct tl_queue_env *env, const char *queue)
{
    for (size_t i = 0; i < env->n_passthrough; i++) {
        if (strcmp(env->passthrough[i], queue) == 0)
            return true;
    }
    return false;
}

/* ---- press ---- */

enum {
    SHARE_MOST = 50, /* as many as http.joins_per_minute allows by default */
    SHARE_LEAST = 5,
    MEMORY_SCARCE = 80, /* percent */
    MEMORY_FULL = 95,
};

/* No room is left, for this purpose, at so much of a bound. Half of max_pending and a twentieth of
 * max_lag are 1.5 s behind, with the defaults. */
static const double of_pending = 0.5, of_lag = 0.05;

/* What is left of 1. */
static double room(double used, double most)
{
    return used < most ? 1 - used / most : 0;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

uint64_t tl_press_share(const struct tl_press *press)
{
    double left = room((double)press->pending, (double)press->pending_max * of_pending);
    left = least(left, room((double)press->lag_ms, (double)press->lag_max_ms * of_lag));
    if (press->memory_percent > MEMORY_SCARCE)
        left =
            least(left, room(press->memory_percent - MEMORY_SCARCE, MEMORY_FULL - MEMORY_SCARCE));
    if (left > 0.5)
        return 0;
    return SHARE_LEAST + (uint64_t)((SHARE_MOST - SHARE_LEAST) * 2 * left);
}
