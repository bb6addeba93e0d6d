/* SPDX-License-Identifier: Apache-2.0 */
/* The last known place of a visitor, from the archive: while the store is away, and this process
 * does not know the line. */
#include <string.h>

#include "worker/api/handlers.h"
#include "worker/archive/archive.h"

/* Can the store be reached, as far as this queue is known? */
static bool is_store_up(const struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    const struct tl_queue *queue = tl_queues_find(&worker->queues, visit->name);
    return tl_queue_env_store_up(worker->env) && (queue == NULL || !queue->away);
}

/* The view of the place. Nothing is said of the queue, and nothing promised. */
static bool answer(struct tl_visit *visit, const struct tl_archived_place *place)
{
    const struct tl_worker *worker = visit->worker;
    const bool moved = visit->ticket.serial < place->serial;
    struct tl_line_view state = place->state;
    if (moved)
        state.status = TL_LINE_ENDED;
    const struct tl_view view = {.queue = visit->name,
                                 .visitor = visit->ticket.visitor,
                                 .place = tl_place_make(place->lane, place->seq),
                                 .state = state,
                                 .mode = TL_MODE_OPEN,
                                 .phase = TL_PHASE_OPEN,
                                 .moved = moved,
                                 .unplaced = !place->has_position,
                                 .store_ms = tl_queue_env_store_ms(worker->env, visit->now_ms),
                                 .as_of_ms = place->as_of_ms};
    tl_render_view(visit->request, &view, NULL);
    return true;
}

/* The archive has said what it knows, or not in time. */
static bool told(struct tl_visit *visit)
{
    const struct tl_archive_job *job = visit->wait.archived;
    if (visit->worker->env->draining)
        return tl_refuse(&visit->refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (is_store_up(visit)) /* meanwhile */
        return tl_refuse(&visit->refusal, TL_REFUSAL_LOADING, "%s", "");
    if (job == NULL || job->found != TL_ARCHIVE_FOUND)
        return tl_refuse(&visit->refusal, TL_REFUSAL_STORE,
                         "The store cannot be reached, and the archive does not know the place");
    if (job->place.deleted)
        return tl_refuse(&visit->refusal, TL_REFUSAL_NO_QUEUE, "The queue was deleted");
    return answer(visit, &job->place);
}

bool tl_archived_place(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    const enum tl_refusal_kind kind = visit->refusal.kind;
    struct tl_archive_job question = {.kind = TL_ARCHIVE_PLACE};
    if ((kind != TL_REFUSAL_LOADING && kind != TL_REFUSAL_STORE) || worker->env->archive == NULL ||
        is_store_up(visit) || !tl_visit_brought(visit, &visit->ticket) ||
        tl_place_seq(visit->ticket.place) == 0)
        return false;
    memcpy(question.queue, visit->name, sizeof(question.queue));
    question.generation = visit->ticket.generation;
    question.seq = tl_place_seq(visit->ticket.place);
    return tl_wait_archive(visit, &question, told);
}
