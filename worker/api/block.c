#include "worker/api/block.h"
#include "common/base/clock.h"
#include "common/store/blocks.h"
#include "worker/api/visitor.h"
#include "worker/report/worker_metrics.h"

bool tl_block_passes(const struct tl_api *api, const struct tl_request *request, const char *queue,
                     struct tl_refusal *refusal)
{
    const struct tl_blocks *blocks = tl_queues_blocks(api->queues);
    struct tl_address address;
    if (blocks == NULL || blocks->n == 0 || !tl_visitor_address(api, request, &address))
        return true;
    int64_t store_ms = tl_queue_env_store_ms(api->env, tl_clock_ms());
    if (tl_blocks_find(blocks, &address, queue, store_ms) == NULL)
        return true;
    tl_metrics_add(api->env->metrics, TL_WORKER_BLOCKED, 1);
    return tl_refuse(refusal, TL_REFUSAL_BLOCKED, "%s", "");
}
