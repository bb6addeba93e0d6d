#include "worker/api/outcome.h"
#include "common/base/clock.h"
#include "worker/api/answer.h"
#include "worker/http/renderer.h"
#include "worker/report/worker_metrics.h"

static void answer_join(struct tl_api *api, const struct tl_held *held,
                        const struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    struct tl_metrics *metrics = api->env->metrics;
    bool applied = result != NULL && result->end == TL_PENDING_APPLIED;
    if (applied && result->outcome == TL_OUTCOME_SPENT) {
        tl_render_refused(held->request, TL_REFUSAL_INVITE_SPENT, "");
    } else if (applied) {
        int64_t now_us = tl_clock_us();
        const struct tl_ticket ticket =
            tl_answer_ticket(held->queue, api->env, pending->visitor, result->place, now_us / 1000);
        tl_metrics_add(metrics, TL_WORKER_JOINS, 1);
        tl_metrics_observe(metrics, TL_WORKER_JOIN_TIME, now_us - held->since_us);
        if (!tl_local_queue_about_to_admit(held->queue, ticket.place, now_us / 1000) ||
            !tl_subscribers_wait_for_admission(tl_local_queue_subscribers(held->queue),
                                               held->request, &ticket, held->since_us / 1000))
            tl_answer_view(api, held->queue, held->request, &ticket, true);
    } else if (result != NULL ? result->end == TL_PENDING_LOST : pending->sent) {
        tl_answer_pending(api, held->queue, held->request, pending->visitor, pending->lane);
    } else {
        tl_metrics_add(metrics, TL_WORKER_JOINS_REFUSED, 1);
        tl_render_refused(held->request, TL_REFUSAL_STORE,
                          result != NULL ? "The store did not take the join; try again"
                                         : "The store has not taken the join in time; try again");
    }
}

static void answer_command(struct tl_api *api, const struct tl_held *held,
                           const struct tl_pending_result *result)
{
    if (result == NULL)
        tl_render_refused(held->request, TL_REFUSAL_UNKNOWN_OUTCOME,
                          "The command is in progress; ask for the status to see its outcome");
    else if (result->end == TL_PENDING_REFUSED)
        tl_render_refused(held->request, TL_REFUSAL_STORE,
                          "The store did not take the command; try again");
    else if (result->end == TL_PENDING_LOST)
        tl_render_refused(
            held->request, TL_REFUSAL_UNKNOWN_OUTCOME,
            "The command was taken, but its outcome is not known; ask for the status");
    else if (result->outcome == TL_OUTCOME_WAITING)
        tl_render_refused(held->request, TL_REFUSAL_NOT_ADMITTED, "This place is still waiting");
    else
        tl_answer_view(api, held->queue, held->request, &held->ticket, false);
}

void tl_outcome_settled(void *context, const struct tl_held *held,
                        const struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    if (result != NULL && tl_local_queue_deleted(held->queue))
        tl_render_refused(held->request, TL_REFUSAL_NO_QUEUE, "The queue was deleted");
    else if (pending->kind == TL_COMMAND_JOIN)
        answer_join(context, held, pending, result);
    else
        answer_command(context, held, result);
}

void tl_outcome_looked_up(void *context, const struct tl_held *held, bool known)
{
    struct tl_subscribers *subscribers = tl_local_queue_subscribers(held->queue);
    if (held->request == NULL && subscribers != NULL) /* asked for an event stream */
        tl_subscribers_look(subscribers, held->ticket.place, tl_clock_ms());
    else if (held->request != NULL && known)
        tl_answer_view(context, held->queue, held->request, &held->ticket, false);
    else if (held->request != NULL)
        tl_render_refused(held->request, TL_REFUSAL_STORE,
                          "The store could not be asked about this place; try again");
}

void tl_outcome_changed(void *context, struct tl_local_queue *queue, struct tl_request *request,
                        const struct tl_ticket *ticket, bool give_ticket)
{
    const struct tl_api *api = context;
    const struct tl_ticket fresh =
        tl_answer_ticket(queue, api->env, ticket->visitor, ticket->place, tl_clock_ms());
    tl_answer_view(context, queue, request, &fresh, give_ticket);
}

void tl_outcome_refused(void *context, struct tl_local_queue *queue, struct tl_request *request)
{
    (void)context;
    tl_render_refused(
        request, tl_local_queue_deleted(queue) ? TL_REFUSAL_NO_QUEUE : TL_REFUSAL_STOPPING, "");
}
