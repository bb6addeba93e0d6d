/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/visit/changes.h"
#include "common/base/clock.h"
#include "worker/visit/rejoin.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/wait.h"

void tl_changes_take(void *context, struct tl_change *change)
{
    struct tl_worker *worker = context;
    int64_t now_ms = tl_clock_ms();
    struct tl_taken taken = tl_queues_take(&worker->queues, change, now_ms);
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

void tl_changes_settled(void *context, struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    struct tl_queue *queue = context;
    struct tl_worker *worker = queue->env->worker;
    struct tl_subscribers *subscribers = worker->subscribers;
    tl_queue_settled(queue, pending, result);
    if (pending->leaves && result->end == TL_PENDING_APPLIED && tl_rejoin_gave_place(result) &&
        tl_queue_serial(queue, result->place) == 0) /* else the pending ticket does not count */
        worker->leaving = tl_outbox_command(queue->outbox, TL_COMMAND_LEAVE, pending->visitor,
                                            result->place, NULL);
    tl_waits_settle(pending, result);
    worker->leaving = NULL;
    if (result->end != TL_PENDING_APPLIED)
        return;
    if (pending->kind == TL_COMMAND_JOIN)
        tl_subscribers_joined(subscribers, queue, pending, result, tl_clock_ms());
    else if (pending->kind == TL_COMMAND_RESTORE ||
             ((pending->kind == TL_COMMAND_RENEW || pending->kind == TL_COMMAND_CLAIM) &&
              result->outcome == TL_OUTCOME_WAITING))
        tl_subscribers_look(subscribers, queue, pending->place, tl_clock_ms());
}
