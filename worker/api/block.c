/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/api/block.h"
#include "common/base/clock.h"
#include "common/store/blocks.h"
#include "worker/api/visitor.h"
#include "worker/report/worker_metrics.h"

bool tl_block_names(const struct tl_api *api, const struct tl_address *address, const char *queue,
                    int64_t now_ms)
{
    return tl_blocks_find(tl_queues_blocks(api->queues), address, queue,
                          tl_queue_env_store_ms(api->env, now_ms)) != NULL;
}

bool tl_block_passes(const struct tl_api *api, const struct tl_request *request, const char *queue,
                     struct tl_refusal *refusal)
{
    const struct tl_blocks *blocks = tl_queues_blocks(api->queues);
    struct tl_address address;
    if (blocks == NULL || blocks->n == 0 || !tl_visitor_address(api, request, &address) ||
        !tl_block_names(api, &address, queue, tl_clock_ms()))
        return true;
    tl_metrics_add(api->env->metrics, TL_WORKER_BLOCKED, 1);
    return tl_refuse(refusal, TL_REFUSAL_BLOCKED, "%s", "");
}
