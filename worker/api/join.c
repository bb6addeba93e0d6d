/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/auth/invite.h"
#include "common/base/clock.h"
#include "worker/api/answer.h"
#include "worker/api/block.h"
#include "worker/api/bypass.h"
#include "worker/api/challenge.h"
#include "worker/api/join.h"
#include "worker/api/join_body.h"
#include "worker/api/misuse.h"
#include "worker/api/restore.h"
#include "worker/api/standing.h"
#include "worker/api/through.h"
#include "worker/api/visitor.h"
#include "worker/http/renderer.h"
#include "worker/queue/tickets.h"
#include "worker/report/worker_metrics.h"

/* ---- joining ---- */

/* Holds the request for its join; pending NULL: there was no memory for that. ticket: the pending
 * one that repeats a join; or of a first join what opened it, for the pending ticket to come. */
static bool hold(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                 struct tl_pending_command *pending, const struct tl_ticket *ticket,
                 struct tl_refusal *refusal)
{
    const struct tl_held held = {.queue = queue,
                                 .request = request,
                                 .ticket = *ticket,
                                 .joins = strcmp(tl_request_method(request), "POST") == 0,
                                 .since_us = tl_clock_us()};
    if (pending != NULL && tl_holds_command(api->holds, &held, pending))
        return true;
    tl_metrics_add(api->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
    return tl_refuse(refusal, TL_REFUSAL_BUSY, "There is no memory for this join; try again");
}

/* May a visitor join now who was not accepted before? */
static bool may_join(const struct tl_api *api, struct tl_queue *queue, struct tl_refusal *refusal)
{
    bool may = tl_visitor_may_send(api, refusal);
    if (may && api->env->memory_full)
        may = tl_refuse(refusal, TL_REFUSAL_STORE,
                        "The store's memory is nearly full; try again later");
    int64_t lag_ms = tl_outbox_lag_ms(queue->outbox, tl_clock_ms());
    if (may && lag_ms > api->config->worker.max_lag_ms)
        may = tl_refuse(refusal, TL_REFUSAL_BUSY, "The line is %lld s behind; try again",
                        (long long)(lag_ms / 1000));
    if (!may)
        tl_metrics_add(api->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
    return may;
}

/* Joins this visitor and holds the request until the place is known. Joining again returns the
 * place already held. trusted: a trusted caller says so. False: refused. */
static bool join_visitor(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                         const char *visitor, unsigned lane, bool trusted,
                         struct tl_refusal *refusal)
{
    const struct tl_ticket first = {.invite = trusted ? TL_TICKET_TRUSTED : 0};
    if (!may_join(api, queue, refusal))
        return false;
    return hold(api, queue, request, tl_outbox_join(queue->outbox, visitor, lane), &first, refusal);
}

/* The join spends this id, which lets nobody join after kept_until (Unix seconds). visitor: to
 * join.
 */
static bool join_spending(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                          const char *visitor, unsigned lane, const char *id, int64_t kept_until,
                          struct tl_refusal *refusal)
{
    const struct tl_ticket first = {.invite = tl_invite_digest(id)};
    /* It stays spent as long as the pending ticket may repeat the join. */
    uint64_t until_ms = (uint64_t)(kept_until + TL_TICKET_PENDING_S) * 1000;
    if (!may_join(api, queue, refusal))
        return false;
    return hold(api, queue, request,
                tl_outbox_join_invited(queue->outbox, visitor, lane, id, until_ms), &first,
                refusal);
}

bool tl_join_newcomer(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                      const char *visitor, unsigned lane, const struct tl_proof *proof,
                      struct tl_refusal *refusal)
{
    struct tl_puzzle_solved solved;
    char fresh[TL_VISITOR_MAX + 1];
    /* The store decides. But what it would refuse need not be sent, and no puzzle be solved. */
    if (!tl_standing_joins(api, request, queue, refusal)) {
        tl_metrics_add(api->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
        return false;
    }
    if (tl_challenge_takes_token(api, queue, request, proof)) {
        struct tl_token_join join = {.queue = queue, .request = request, .lane = lane};
        snprintf(join.visitor, sizeof(join.visitor), "%s", visitor != NULL ? visitor : "");
        /* A token is good once: what would refuse the join is asked before it is used. */
        return may_join(api, queue, refusal) &&
               tl_visitor_may_join(api, queue, request, true, tl_clock_ms(), refusal) &&
               tl_verification_begin(api, &join, proof->token, refusal);
    }
    if (!tl_challenge_passed(api, queue, request, proof, &solved, refusal))
        return false;
    bool paid = solved.id[0] != '\0';
    if (!tl_visitor_may_join(api, queue, request, paid, tl_clock_ms(), refusal))
        return false;
    /* The puzzle names the new visitor: so a repeated request gets the same place, and a solution
     * never has two, even if the store does not answer for a while. */
    if (visitor == NULL && paid)
        snprintf(fresh, sizeof(fresh), "%s", solved.id + 1);
    else if (visitor == NULL)
        tl_visitor_random(fresh);
    const char *joins = visitor != NULL ? visitor : fresh;
    if (!paid)
        return join_visitor(api, queue, request, joins, lane, false, refusal);
    return join_spending(api, queue, request, joins, lane, solved.id, solved.kept_until, refusal);
}

bool tl_join_verified(struct tl_api *api, const struct tl_token_join *join,
                      struct tl_refusal *refusal)
{
    /* The token names a new visitor: it never has two places, even if it was accepted twice. */
    const char *visitor = join->visitor[0] != '\0' ? join->visitor : join->id + 1;
    return join_spending(api, join->queue, join->request, visitor, join->lane, join->id,
                         join->kept_until, refusal);
}

/* The lane in which a ticket joins. A pending one repeats its own join, so it keeps that lane if
 * the queue still has it. With any other, a new place is in the default lane: the old one used up
 * what had opened its lane. (Who still holds a place keeps it, whatever lane a JOIN names.) */
static unsigned lane_of(const struct tl_queue *queue, tl_place place)
{
    const struct tl_queue_settings *settings = &queue->settings;
    unsigned lane = tl_place_lane(place);
    bool pending = tl_place_seq(place) == 0;
    return pending && lane < settings->n_lanes ? lane : settings->default_lane;
}

/* The join of a pending ticket once more: the one in progress, or a JOIN that the store takes only
 * if the place has not ended, and what opened the join was not spent before
 * (common/store/line/invites.lua). */
static struct tl_pending_command *repeat(struct tl_queue *queue, const struct tl_ticket *ticket)
{
    struct tl_outbox *outbox = queue->outbox;
    char id[TL_BATCH_INVITE_MAX];
    /* An invite's own end is not known here: none is later than this. */
    uint64_t until_ms = (ticket->issued + (uint64_t)TL_INVITE_LIFETIME_S + 2 * UINT64_C(60)) * 1000;
    struct tl_pending_command *pending = tl_outbox_joining(outbox, ticket->visitor);
    if (pending != NULL)
        return pending;
    if (ticket->invite == 0 || ticket->invite == TL_TICKET_TRUSTED)
        snprintf(id, sizeof(id), " %lu", (unsigned long)ticket->issued);
    else
        snprintf(id, sizeof(id), " %lu %016llx", (unsigned long)ticket->issued,
                 (unsigned long long)ticket->invite);
    return tl_outbox_join_invited(outbox, ticket->visitor, lane_of(queue, ticket->place), id,
                                  until_ms);
}

bool tl_join_gave_place(const struct tl_pending_result *result)
{
    return result->outcome != TL_OUTCOME_SPENT && result->outcome != TL_OUTCOME_FULL;
}

bool tl_join_repeats(const struct tl_pending_command *join, uint32_t *issued)
{
    if (join->invite == NULL || join->invite[0] != ' ')
        return false;
    *issued = (uint32_t)strtoul(join->invite + 1, NULL, 10);
    return true;
}

/* May a pending ticket still join? Not into another generation of the queue, except while that
 * recovers; and not uninvited where only the invited may join. */
static bool may_repeat(const struct tl_queue *queue, const struct tl_ticket *ticket,
                       struct tl_refusal *refusal)
{
    bool before = ticket->issued + TL_TICKET_CLOCK_S < tl_line_generation(queue->line) / 1000000;
    if (before && !tl_queue_recovering(queue))
        return tl_refuse(refusal, TL_REFUSAL_OLD_GENERATION, "%s", "");
    if (ticket->invite == 0 && queue->settings.join == TL_JOIN_INVITED)
        return tl_refuse(refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    return true;
}

bool tl_join_by_ticket(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                       const struct tl_ticket *ticket, struct tl_refusal *refusal)
{
    if (!may_repeat(queue, ticket, refusal))
        return false;
    /* Accepted before: what keeps new visitors out does not matter. Asked too often, the answer is
     * what is known. */
    if (tl_outbox_joining(queue->outbox, ticket->visitor) == NULL &&
        !tl_visitor_may_repeat(api, queue, ticket)) {
        tl_answer_pending(api, queue, request, ticket);
        return true;
    }
    if (!tl_visitor_may_send(api, refusal)) {
        tl_metrics_add(api->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
        return false;
    }
    return hold(api, queue, request, repeat(queue, ticket), ticket, refusal);
}

bool tl_join_then_leave(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                        const struct tl_ticket *ticket, struct tl_refusal *refusal)
{
    const struct tl_held held = {.queue = queue,
                                 .request = request,
                                 .ticket = *ticket,
                                 .leaves = true,
                                 .since_us = tl_clock_us()};
    if (!may_repeat(queue, ticket, refusal) || !tl_visitor_may_send(api, refusal))
        return false;
    struct tl_pending_command *pending = repeat(queue, ticket);
    if (pending != NULL)
        pending->leaves = true;
    return (pending != NULL && tl_holds_command(api->holds, &held, pending)) ||
           tl_refuse(refusal, TL_REFUSAL_BUSY, "There is no memory for this command; try again");
}

void tl_join_ask_number(void *context, struct tl_queue *queue, const struct tl_ticket *ticket)
{
    const struct tl_api *api = context;
    struct tl_refusal refusal;
    if (may_repeat(queue, ticket, &refusal) && tl_visitor_may_send(api, &refusal))
        (void)repeat(queue, ticket); /* else the stream asks again */
}

/* The number of a lane's name; "" is the default lane. */
static bool find_lane(const struct tl_queue *queue, const char *name, unsigned *lane,
                      struct tl_refusal *refusal)
{
    const struct tl_queue_settings *settings = &queue->settings;
    *lane = settings->default_lane;
    if (name[0] == '\0')
        return true;
    for (unsigned i = 0; i < settings->n_lanes; i++) {
        if (strcmp(settings->lanes[i], name) == 0) {
            *lane = i;
            return true;
        }
    }
    return tl_refuse(refusal, TL_REFUSAL_BAD_BODY, "\"lane\" must name one of the queue's lanes");
}

/* An invite that lets its bearer past the line: remembered in a cookie, which `check` reads. */
static bool pass_by(const struct tl_api *api, const struct tl_queue *queue,
                    struct tl_request *request, const char *text, const struct tl_invite *invite,
                    struct tl_refusal *refusal)
{
    char cookie[TL_BYPASS_COOKIE_MAX];
    const char *name = queue->name;
    if (!tl_bypass_cookie(api, request, name, text, invite, cookie))
        return tl_refuse(refusal, TL_REFUSAL_BAD_INVITE, "It has expired, or is too long");
    tl_bypass_note(api, request, name, "invite", tl_clock_ms());
    tl_through_answer(api, request, name, cookie);
    return true;
}

static bool read_invite(struct tl_api *api, const struct tl_queue *queue,
                        const struct tl_request *request, const char *text,
                        struct tl_invite *invite, struct tl_refusal *refusal)
{
    struct tl_error err = {0};
    int64_t now_ms = tl_clock_ms();
    int64_t store_s = tl_queue_env_store_ms(api->env, now_ms) / 1000;
    const struct tl_jwt_keys *keys = api->secrets.invite_keys;
    const struct tl_visitor_tokens tokens = {
        .kind = TL_LIMITER_INVITES, .queue = queue->name, .request = request, .now_ms = now_ms};
    if (!tl_visitor_may_verify(api, &tokens, keys, text, refusal))
        return false;
    if (tl_invite_verify(keys, queue->name, text, strlen(text), store_s, invite, &err))
        return true;
    tl_visitor_refused(api, &tokens, keys, text);
    return tl_refuse(refusal, TL_REFUSAL_BAD_INVITE, "%s", err.text);
}

bool tl_join_passes_by(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                       const char *text)
{
    struct tl_invite invite;
    struct tl_refusal unused;
    return read_invite(api, queue, request, text, &invite, &unused) && invite.bypass &&
           pass_by(api, queue, request, text, &invite, &unused);
}

bool tl_join_by_invite(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                       const char *text, struct tl_refusal *refusal)
{
    struct tl_invite invite;
    unsigned lane;
    if (!read_invite(api, queue, request, text, &invite, refusal))
        return false;
    if (invite.bypass)
        return pass_by(api, queue, request, text, &invite, refusal);
    return find_lane(queue, invite.lane, &lane, refusal) &&
           join_spending(api, queue, request, invite.visitor, lane, invite.id, invite.kept_until,
                         refusal);
}

/* ---- POST /v1/queues/{q}/join ---- */

static bool is_json(const struct tl_request *request)
{
    const char *type = tl_request_header(request, "Content-Type");
    const char json[] = "application/json";
    if (type == NULL || strncasecmp(type, json, sizeof(json) - 1) != 0)
        return false;
    return strchr("; \t", type[sizeof(json) - 1]) != NULL; /* or the end of the header */
}

/* The body may be empty: nothing is wanted then. */
static bool read_body(const struct tl_request *request, struct tl_join_body *body,
                      struct tl_refusal *refusal)
{
    struct tl_error err = {0};
    size_t length;
    const char *text = tl_request_body(request, &length);
    tl_join_body_clear(body);
    if (length == 0)
        return true;
    if (!is_json(request))
        return tl_refuse(refusal, TL_REFUSAL_NOT_JSON, "%s", "");
    return tl_join_body_parse(text, length, body, &err) ||
           tl_refuse(refusal, TL_REFUSAL_BAD_BODY, "%s", err.text);
}

void tl_join_past_end(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                      const struct tl_ticket *ticket)
{
    struct tl_join_body body;
    struct tl_refusal refusal;
    const struct tl_queue_settings *settings = &queue->settings;
    tl_join_body_clear(&body);
    bool ok = settings->join == TL_JOIN_INVITED
                  ? tl_refuse(&refusal, TL_REFUSAL_BY_INVITATION, "%s", "")
                  : !is_json(request) || read_body(request, &body, &refusal);
    const char *solution = tl_request_query(request, "solution"); /* of the page */
    const struct tl_proof proof = {.solution = body.solution[0] != '\0' ? body.solution : solution,
                                   .token = body.token};
    if (!ok || !tl_join_newcomer(api, queue, request, ticket->visitor, settings->default_lane,
                                 &proof, &refusal))
        tl_render_refusal(request, &refusal);
}

/* It may have been given up through another worker a moment ago, with the event still on its way
 * here. A command knows: it follows in the ingest stream what gave the place up. JOIN returns the
 * place held, or takes a new one; where an invite or a solution is needed for that, CLAIM only
 * looks. Without the store, or asked too often, the place is given as known.
 */
void tl_join_confirm(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                     const struct tl_ticket *ticket)
{
    struct tl_refusal unused;
    struct tl_outbox *outbox = queue->outbox;
    const struct tl_queue_settings *settings = &queue->settings;
    bool free = settings->join == TL_JOIN_OPEN && settings->challenge == TL_CHALLENGE_NONE;
    struct tl_pending_command *pending = NULL;
    if (tl_visitor_may_repeat(api, queue, ticket) && tl_visitor_may_send(api, &unused))
        pending = free
                      ? tl_outbox_join(outbox, ticket->visitor, lane_of(queue, ticket->place))
                      : tl_outbox_command(outbox, TL_COMMAND_CLAIM, ticket->visitor, ticket->place);
    const struct tl_held held = {.queue = queue,
                                 .request = request,
                                 .ticket = *ticket,
                                 .again = true,
                                 .since_us = tl_clock_us()};
    if (pending == NULL || !tl_holds_command(api->holds, &held, pending))
        tl_answer_view(api, queue, request, ticket, true);
}

/* A visitor who comes with a ticket: the place still held, or a new one in the default lane. */
static bool join_again(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                       const struct tl_ticket *ticket, const struct tl_proof *proof,
                       struct tl_refusal *refusal)
{
    bool pending = tl_place_seq(ticket->place) == 0;
    if (tl_queue_may_return(queue, ticket))
        return tl_restore_request(api, queue, request, ticket, refusal);
    if (tl_queue_moved_held(queue, ticket))
        return tl_refuse(refusal, TL_REFUSAL_MOVED, "%s", "");
    if (!pending && !tl_queue_outdated(queue, ticket)) {
        bool known;
        enum tl_line_status status = tl_queue_look(queue, ticket->place, &known).status;
        if (status == TL_LINE_WAITING || status == TL_LINE_ACTIVE) {
            tl_join_confirm(api, queue, request, ticket);
            return true;
        }
        if (tl_restore_removed(queue, ticket->generation, ticket->place))
            return tl_refuse(refusal, TL_REFUSAL_REMOVED, "%s", "");
    }
    if (pending) /* accepted before: what new visitors need does not matter */
        return tl_join_by_ticket(api, queue, request, ticket, refusal);
    if (queue->settings.join == TL_JOIN_INVITED)
        return tl_refuse(refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    return tl_join_newcomer(api, queue, request, ticket->visitor, lane_of(queue, ticket->place),
                            proof, refusal);
}

bool tl_handle_join(void *context, struct tl_request *request, const char *name,
                    struct tl_refusal *refusal)
{
    struct tl_api *api = context;
    if (tl_through_passes_all(api, request, name))
        return true;
    struct tl_queue *queue = tl_visitor_queue(api, name, refusal);
    struct tl_join_body body;
    struct tl_ticket ticket;
    unsigned lane;
    if (queue == NULL || !read_body(request, &body, refusal))
        return false;
    const struct tl_proof proof = {.solution = body.solution, .token = body.token};
    bool trusted = tl_visitor_trusted(api, request);
    bool named = body.visitor[0] != '\0' || body.lane[0] != '\0';
    if (!trusted && !tl_block_passes(api, request, name, refusal))
        return false;
    if (!trusted)
        tl_misuse_join(api, request, name);
    if (named && !trusted)
        return tl_refuse(refusal, TL_REFUSAL_NOT_TRUSTED,
                         "\"visitor\" and \"lane\" are taken only with an API key");
    if (body.invite[0] != '\0')
        return tl_join_by_invite(api, queue, request, body.invite, refusal);
    if (!named && tl_visitor_ticket(api, request, name, &ticket)) {
        (void)tl_queue_adopt(queue, &ticket);
        return join_again(api, queue, request, &ticket, &proof, refusal);
    }
    if (!trusted && queue->settings.join == TL_JOIN_INVITED)
        return tl_refuse(refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    if (!find_lane(queue, body.lane, &lane, refusal))
        return false;
    if (!trusted)
        return tl_join_newcomer(api, queue, request, NULL, lane, &proof, refusal);
    if (body.visitor[0] == '\0')
        tl_visitor_random(body.visitor);
    return join_visitor(api, queue, request, body.visitor, lane, trusted, refusal);
}
