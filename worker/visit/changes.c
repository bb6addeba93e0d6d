/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/visit/changes.h"
#include "common/base/clock.h"
#include "worker/http/refusal.h"
#include "worker/visit/rejoin.h"

void tl_changes_take(void *context, struct tl_change *change)
{
    struct tl_worker *worker = context;
    int64_t now_ms = tl_clock_ms();
    struct tl_taken taken = tl_queues_take(worker->queues, change, now_ms);
    switch (taken.kind) {
    case TL_TAKEN:
        break;
    case TL_TAKEN_ENTRY:
        tl_subscribers_entry(worker->subscribers, taken.queue, &taken.entry, now_ms);
        tl_events_free(&taken.entry);
        break;
    case TL_TAKEN_RECREATED:
        tl_waits_drop(worker, taken.queue);
        tl_subscribers_recreated(worker->subscribers, taken.queue, now_ms);
        break;
    case TL_TAKEN_DELETED:
        tl_waits_drop(worker, taken.queue);
        tl_subscribers_end(worker->subscribers, taken.queue);
        tl_queue_free(&taken.queue);
        break;
    }
}

/* The streams of pending tickets that wait for this join. */
static void tell_join(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                      const struct tl_pending_command *join, const struct tl_pending_result *result)
{
    const char *visitor = join->visitor;
    int64_t now_ms = tl_clock_ms();
    int64_t wait_ms = INT64_C(1000) * tl_problem_retry_after_s(TL_REFUSAL_FULL);
    uint32_t issued;
    if (tl_place_seq(result->place) != 0)
        tl_subscribers_numbered(subscribers, queue, visitor, result->place, now_ms);
    else if (result->outcome == TL_OUTCOME_FULL)
        tl_subscribers_full(subscribers, queue, visitor, wait_ms, now_ms);
    else if (result->outcome == TL_OUTCOME_SPENT && tl_rejoin_issued(join, &issued))
        tl_subscribers_spent(subscribers, queue, visitor, issued, now_ms);
}

void tl_changes_settled(void *context, struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    struct tl_queue *queue = context;
    struct tl_worker *worker = queue->env->worker;
    struct tl_subscribers *subscribers = worker->subscribers;
    tl_queue_settled(queue, pending, result);
    if (pending->leaves && result->end == TL_PENDING_APPLIED && tl_rejoin_gave_place(result) &&
        tl_queue_serial(queue, result->place) == 0) /* else the pending ticket does not count */
        worker->leaving =
            tl_outbox_command(queue->outbox, TL_COMMAND_LEAVE, pending->visitor, result->place);
    tl_waits_settle(pending, result);
    worker->leaving = NULL;
    if (result->end != TL_PENDING_APPLIED)
        return;
    if (pending->kind == TL_COMMAND_JOIN)
        tell_join(subscribers, queue, pending, result);
    else if (pending->kind == TL_COMMAND_RESTORE ||
             ((pending->kind == TL_COMMAND_RENEW || pending->kind == TL_COMMAND_CLAIM) &&
              result->outcome == TL_OUTCOME_WAITING))
        tl_subscribers_look(subscribers, queue, pending->place, tl_clock_ms());
}
