/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/auth/invite.h"
#include "common/base/clock.h"
#include "common/config/queue_settings.h"
#include "worker/api/body.h"
#include "worker/api/handlers.h"
#include "worker/http/router.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/subscribers.h"

enum {
    KEY_MIN = 16, /* characters of an Idempotency-Key */
    KEY_MAX = 128,
    ADMISSION_WAIT_MS = 250, /* a running admitter needs a few ms */
};

/* What follows a JOIN: of a newcomer or a pending ticket; of one who leaves. What follows the CLAIM
 * of one who holds a place. */
static tl_step joined, left, joined_again;
static tl_step verified; /* the token of a newcomer */

bool tl_join_may_follow(struct tl_visit *visit)
{
    const struct tl_line_view *state = &visit->state;
    if (visit->worth == TL_WORTH_MOVED && tl_visit_is_held(visit))
        return tl_refuse(&visit->refusal, TL_REFUSAL_MOVED, "%s", "");
    if (state->status == TL_LINE_ENDED && state->reason == TL_REASON_REMOVED)
        return tl_refuse(&visit->refusal, TL_REFUSAL_REMOVED, "%s", "");
    return true;
}

/* ---- joining ---- */

/* Counts a join that is refused. Returns false. */
static bool count_refused(const struct tl_visit *visit)
{
    tl_metrics_add(visit->worker->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
    return false;
}

/* Waits for the join; pending NULL: there was no memory for it. The visit's ticket is the pending
 * one that repeats a join; or of a first join only says what opened it, for the pending ticket to
 * come.
 */
static bool wait_for(struct tl_visit *visit, struct tl_pending_command *pending)
{
    visit->joins = strcmp(tl_request_method(visit->request), "POST") == 0;
    return tl_wait_command(visit, pending, joined) || count_refused(visit);
}

/* May a visitor join now who was not accepted before? */
static bool may_join(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    bool may = tl_visit_may_send(visit);
    if (may && worker->env->memory_full)
        may = tl_refuse(&visit->refusal, TL_REFUSAL_STORE,
                        "The store's memory is nearly full; try again later");
    int64_t lag_ms = tl_outbox_lag_ms(visit->queue->outbox, visit->now_ms);
    if (may && lag_ms > worker->config->worker.max_lag_ms)
        may = tl_refuse(&visit->refusal, TL_REFUSAL_BUSY, "The line is %lld s behind; try again",
                        (long long)(lag_ms / 1000));
    return may || count_refused(visit);
}

/* What opens a join: an id that it spends, which lets nobody join after kept_until (Unix seconds);
 * a trusted caller; or nothing. */
struct opener {
    const char *id;
    int64_t kept_until;
    bool trusted;
};

static const char *key_header(const struct tl_visit *visit)
{
    return tl_request_header(visit->request, "Idempotency-Key");
}

/* The key with which a join may be sent again; NULL: it has none that is valid. Many visitors may
 * share a network, so it must be one that nobody else has. */
static const char *key_of(const struct tl_visit *visit)
{
    const char *key = key_header(visit);
    const size_t length = key != NULL ? strlen(key) : 0;
    return length >= KEY_MIN && tl_printable(key, length, KEY_MAX) ? key : NULL;
}

/* Names a visitor who brings no name. A join with a key that is sent again names the same one, and
 * so finds the place that the first one got: with any proof, because a token is good only once.
 * Without a key a proof names its visitor: then it never gives two places, even if the store does
 * not answer for a while. proof: its id, or NULL. */
static void name_newcomer(struct tl_visit *visit, const char *proof,
                          char visitor[TL_VISITOR_MAX + 1])
{
    struct tl_worker *worker = visit->worker;
    const char *key = key_of(visit), *caller = tl_visit_caller(visit);
    char network[TL_PREFIX_TEXT_MAX], sender[TL_CALLER_NAME_MAX + TL_PREFIX_TEXT_MAX];
    if (key != NULL) {
        const struct tl_prefix prefix = tl_visit_network(visit);
        tl_prefix_format(&prefix, network);
        snprintf(sender, sizeof(sender), "%s %s", caller != NULL ? "caller" : "from",
                 caller != NULL ? caller : network);
        tl_visitor_keyed(worker->secrets.keyring, visit->name, sender, key, visitor);
    } else if (proof != NULL) {
        snprintf(visitor, TL_VISITOR_MAX + 1, "%s", proof + 1);
    } else {
        tl_visitor_random(&worker->visitor_ids, visitor);
    }
}

/* Joins this visitor, and waits until the place is known. Joining again returns the place already
 * held. */
static bool join(struct tl_visit *visit, const char *visitor, unsigned lane, struct opener by)
{
    struct tl_outbox *outbox = visit->queue->outbox;
    /* It stays spent as long as the pending ticket may repeat the join. */
    const uint64_t until_ms = (uint64_t)(by.kept_until + TL_TICKET_PENDING_S) * 1000;
    if (!may_join(visit))
        return false;
    struct tl_pending_command *pending = tl_outbox_join(outbox, visitor, lane, by.id, until_ms);
    visit->ticket = (struct tl_ticket){.invite = by.id != NULL ? tl_invite_digest(by.id)
                                                 : by.trusted  ? TL_TICKET_TRUSTED
                                                               : 0};
    return wait_for(visit, pending);
}

bool tl_join_newcomer(struct tl_visit *visit, const char *visitor, unsigned lane,
                      const struct tl_proof *proof)
{
    struct tl_puzzle_solved solved = {0};
    char fresh[TL_VISITOR_MAX + 1];
    if (visit->queue->settings.join == TL_JOIN_INVITED)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    /* The store decides. But what it would refuse need not be sent, and no challenge be passed. A
     * join with a key is no exception, although it may have been taken before: anyone can make a
     * key. */
    if (!tl_visit_newcomers(visit))
        return count_refused(visit);
    if (tl_challenge_takes_token(visit, proof)) {
        struct tl_ticket joins = {.place = tl_place_make(lane, 0)};
        snprintf(joins.visitor, sizeof(joins.visitor), "%s", visitor != NULL ? visitor : "");
        visit->ticket = joins;
        /* A token is good once: what would refuse the join is asked before it is used. */
        return may_join(visit) && tl_visit_may_join(visit, true) &&
               tl_verification_begin(visit, proof->token, verified);
    }
    if (!tl_challenge_passed(visit, proof, &solved))
        return false;
    bool paid = solved.id[0] != '\0';
    if (!tl_visit_may_join(visit, paid))
        return false;
    if (visitor == NULL)
        name_newcomer(visit, paid ? solved.id : NULL, fresh);
    return join(visit, visitor != NULL ? visitor : fresh, lane,
                (struct opener){.id = paid ? solved.id : NULL, .kept_until = solved.kept_until});
}

static bool verified(struct tl_visit *visit)
{
    struct tl_ticket joins = visit->ticket;
    struct opener by = {.id = visit->wait.about};
    if (!tl_verification_passed(visit, &by.kept_until))
        return false;
    if (joins.visitor[0] == '\0')
        name_newcomer(visit, by.id, joins.visitor);
    return join(visit, joins.visitor, tl_place_lane(joins.place), by);
}

bool tl_join_by_ticket(struct tl_visit *visit)
{
    struct tl_queue *queue = visit->queue;
    const bool joining = tl_outbox_joining(queue->outbox, visit->ticket.visitor) != NULL;
    if (!tl_rejoin_may(visit))
        return false;
    /* Accepted before: what keeps new visitors out does not matter. Asked too often, the answer is
     * what is known. */
    if (!joining && !tl_visit_may_repeat(visit))
        return tl_answer_pending(visit);
    if (!tl_visit_may_send(visit))
        return count_refused(visit);
    return wait_for(visit, tl_rejoin(queue, &visit->ticket));
}

bool tl_join_then_leave(struct tl_visit *visit)
{
    if (!tl_rejoin_may(visit) || !tl_visit_may_send(visit))
        return false;
    struct tl_pending_command *pending = tl_rejoin(visit->queue, &visit->ticket);
    if (pending != NULL)
        pending->leaves = true;
    return tl_wait_command(visit, pending, left);
}

/* ---- by invite ---- */

/* The number of a lane's name; "" is the default lane. */
static bool find_lane(struct tl_visit *visit, const char *name, unsigned *lane)
{
    const struct tl_queue_settings *settings = &visit->queue->settings;
    *lane = settings->default_lane;
    return name[0] == '\0' || tl_lane_find(settings, name, lane) ||
           tl_refuse(&visit->refusal, TL_REFUSAL_BAD_BODY,
                     "\"lane\" must name one of the queue's lanes");
}

bool tl_join_by_invite(struct tl_visit *visit, const char *text)
{
    struct tl_invite invite;
    unsigned lane;
    if (!tl_past_invite(visit, text, &invite))
        return false;
    if (invite.bypass)
        return tl_past_by_invite(visit, text, &invite);
    return find_lane(visit, invite.lane, &lane) &&
           join(visit, invite.visitor, lane,
                (struct opener){.id = invite.id, .kept_until = invite.kept_until});
}

/* ---- POST /v1/queues/{q}/join ---- */

/* The body may be empty: nothing is wanted then. So it is with a form of the page, if that may be.
 */
static bool read_body(struct tl_visit *visit, bool may_be_form, struct tl_join_body *body)
{
    struct tl_error err = {0};
    size_t length;
    const char *text = tl_request_body(visit->request, &length);
    const bool json = length > 0 && tl_body_is(visit->request, TL_BODY_JSON);
    if (!tl_join_body_parse(text, json ? length : 0, body, &err))
        return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_BODY, "%s", err.text);
    return json || length == 0 || may_be_form ||
           tl_refuse(&visit->refusal, TL_REFUSAL_NOT_JSON, "%s", "");
}

static bool is_key_valid(struct tl_visit *visit)
{
    return key_header(visit) == NULL || key_of(visit) != NULL ||
           tl_refuse(&visit->refusal, TL_REFUSAL_BAD_REQUEST,
                     "Idempotency-Key: expected %d to %d printable ASCII characters", KEY_MIN,
                     KEY_MAX);
}

/* It may have been given up through another worker a moment ago, with the event still on its way
 * here. A command knows: it follows in the ingest stream what gave the place up. CLAIM only looks.
 * A JOIN that reaches the store late, when the place has ended, would make a second place of which
 * nobody knows. Without the store, or asked too often, the place is given as known. */
static bool confirm(struct tl_visit *visit)
{
    struct tl_pending_command *pending = NULL;
    if (tl_visit_may_repeat(visit) && tl_visit_may_send(visit))
        pending = tl_outbox_command(visit->queue->outbox, TL_COMMAND_CLAIM, visit->ticket.visitor,
                                    visit->ticket.place, NULL);
    if (pending != NULL && tl_wait_command(visit, pending, joined_again))
        return true;
    visit->gives_ticket = true;
    return tl_answer_view(visit);
}

bool tl_join_again(struct tl_visit *visit, const struct tl_proof *proof)
{
    const struct tl_ticket *ticket = &visit->ticket;
    if (visit->worth == TL_WORTH_PENDING) /* accepted before: what newcomers need does not matter */
        return tl_join_by_ticket(visit);
    if (tl_visit_may_return(visit))
        return tl_visit_restore(visit, 0, 0);
    if (!tl_join_may_follow(visit))
        return false;
    if (tl_visit_is_held(visit))
        return confirm(visit);
    return tl_join_newcomer(visit, ticket->visitor, tl_rejoin_lane(visit->queue, ticket->place),
                            proof);
}

bool tl_handle_join(struct tl_visit *visit)
{
    if (tl_past_everyone(visit))
        return true;
    struct tl_join_body body;
    unsigned lane;
    if (!tl_visit_queue(visit) || !is_key_valid(visit) || !read_body(visit, false, &body))
        return false;
    const struct tl_proof proof = {.solution = body.solution, .token = body.token};
    bool trusted = tl_visit_trusted(visit);
    bool named = body.visitor[0] != '\0' || body.lane[0] != '\0';
    if (!trusted && !tl_visit_passes_blocks(visit))
        return false;
    if (!trusted)
        tl_misuse_join(visit);
    if (named && !trusted)
        return tl_refuse(&visit->refusal, TL_REFUSAL_NOT_TRUSTED,
                         "\"visitor\" and \"lane\" are taken only with an API key");
    if (body.invite[0] != '\0')
        return tl_join_by_invite(visit, body.invite);
    if (!named && tl_visit_brought(visit, &visit->ticket)) {
        tl_visit_judge(visit);
        return tl_join_again(visit, &proof);
    }
    if (!find_lane(visit, body.lane, &lane))
        return false;
    if (!trusted)
        return tl_join_newcomer(visit, NULL, lane, &proof);
    if (body.visitor[0] == '\0')
        name_newcomer(visit, NULL, body.visitor);
    return join(visit, body.visitor, lane, (struct opener){.trusted = true});
}

/* ---- what became of a join ---- */

/* Joins again after the place has ended, as the same visitor, where the queue lets newcomers in. */
static bool join_past_end(struct tl_visit *visit)
{
    struct tl_join_body body;
    if (!read_body(visit, true, &body))
        return false;
    const char *solution = tl_request_query(visit->request, "solution"); /* of the page */
    const struct tl_proof proof = {.solution = body.solution[0] != '\0' ? body.solution : solution,
                                   .token = body.token};
    return tl_join_newcomer(visit, visit->ticket.visitor, visit->queue->settings.default_lane,
                            &proof);
}

/* The store has said what became of the place of a pending ticket. */
static bool ended(struct tl_visit *visit)
{
    const enum tl_reason reason = (enum tl_reason)visit->wait.ended;
    if (!visit->wait.known)
        return tl_answer_unknown(visit);
    if (visit->wait.ended == 0)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_TICKET,
                         "Its invite was spent before, or its place ended long ago");
    if (!visit->joins)
        return tl_answer_ended(visit, reason);
    if (reason == TL_REASON_REMOVED)
        return tl_refuse(&visit->refusal, TL_REFUSAL_REMOVED, "%s", "");
    return join_past_end(visit);
}

/* The join of a pending ticket was not repeated, or a join came so late that the place which its
 * visitor got meanwhile has ended: asks the store about that end. */
static bool ask_for_end(struct tl_visit *visit)
{
    const struct tl_pending_command *sent = visit->wait.pending;
    struct tl_ticket *ticket = &visit->ticket;
    if (ticket->issued == 0) {
        ticket->issued = (uint32_t)(sent->made_ms / 1000);
        memcpy(ticket->visitor, sent->visitor, sizeof(ticket->visitor));
    }
    return tl_wait_lookup(visit, ended) || tl_answer_unknown(visit);
}

/* Did the join find a place that was handed over to another device? Only that device's ticket, or a
 * trusted caller, gets it. */
static bool found_moved(const struct tl_visit *visit, tl_place place)
{
    return tl_queue_serial(visit->queue, place) > visit->ticket.serial && !tl_visit_trusted(visit);
}

/* The form of a page whose visitor's place is over has the invite of the address, which may be the
 * one that opened that place. Where a newcomer needs none, it is left out of the address. */
static bool goes_without(const struct tl_visit *visit)
{
    return strcmp(tl_request_method(visit->request), "POST") == 0 &&
           strncmp(tl_request_path(visit->request), "/q/", 3) == 0 &&
           tl_request_query(visit->request, "invite") != NULL &&
           visit->queue->settings.join != TL_JOIN_INVITED;
}

/* The visitor has this place. */
static bool answer_place(struct tl_visit *visit)
{
    const struct tl_wait *wait = &visit->wait;
    struct tl_metrics *metrics = visit->worker->env->metrics;
    visit->ticket =
        tl_answer_ticket(visit->queue, wait->pending->visitor, wait->result->place, visit->now_ms);
    tl_metrics_add(metrics, TL_WORKER_JOINS, 1);
    tl_metrics_observe(metrics, TL_WORKER_JOIN_TIME, tl_clock_us() - wait->since_us);
    visit->gives_ticket = true;
    return (tl_queue_about_to_admit(visit->queue, visit->ticket.place, visit->now_ms) &&
            tl_subscribers_wait(visit, wait->since_us / 1000 + ADMISSION_WAIT_MS, true)) ||
           tl_answer_anew(visit);
}

/* The place has no number yet: with a pending ticket of the join. */
static bool answer_unnumbered(struct tl_visit *visit, bool repeated)
{
    const struct tl_pending_command *sent = visit->wait.pending;
    struct tl_ticket *ticket = &visit->ticket;
    memcpy(ticket->visitor, sent->visitor, sizeof(ticket->visitor));
    ticket->place = tl_place_make(sent->lane, 0);
    if (!repeated)
        ticket->issued = 0;
    return tl_answer_pending(visit);
}

static bool joined(struct tl_visit *visit)
{
    const struct tl_pending_command *sent = visit->wait.pending;
    const struct tl_pending_result *result = visit->wait.result;
    bool applied = tl_wait_applied(&visit->wait);
    bool spent = applied && result->outcome == TL_OUTCOME_SPENT;
    bool repeated = tl_place_seq(visit->ticket.place) == 0 && visit->ticket.issued != 0;
    if (spent && (repeated || sent->invite == NULL))
        return ask_for_end(visit);
    if (spent && goes_without(visit))
        return tl_page_redirect(visit, TL_PAGE_CLEAN);
    if (spent)
        return tl_challenge_refuse_spent(visit, sent->invite);
    if (applied && result->outcome == TL_OUTCOME_FULL) {
        if (tl_visit_newcomers(visit)) /* the news of it is on its way here */
            tl_refuse(&visit->refusal, TL_REFUSAL_FULL, "As many wait as may; try again later");
        return count_refused(visit);
    }
    if (applied && found_moved(visit, result->place))
        return tl_refuse(&visit->refusal, TL_REFUSAL_MOVED, "%s", "");
    if (applied)
        return answer_place(visit);
    if (result == NULL || result->end == TL_PENDING_LOST)
        return answer_unnumbered(visit, repeated);
    (void)tl_refuse(&visit->refusal, TL_REFUSAL_STORE,
                    "The store did not take the join; try again");
    return count_refused(visit);
}

/* A visitor gives up a place whose number was not known: the LEAVE follows the join. Not numbered
 * in time: the join remembers to leave (tl_join_then_leave). */
static bool left(struct tl_visit *visit)
{
    const struct tl_pending_result *result = visit->wait.result;
    if (!tl_wait_applied(&visit->wait) || !tl_rejoin_gave_place(result))
        return joined(visit);
    if (tl_queue_serial(visit->queue, result->place) > 0) /* a pending ticket has none */
        return tl_refuse(&visit->refusal, TL_REFUSAL_MOVED, "%s", "");
    visit->ticket =
        tl_answer_ticket(visit->queue, visit->wait.pending->visitor, result->place, visit->now_ms);
    return tl_wait_command(visit, visit->worker->leaving, tl_answer_command);
}

/* Joining again. Without an outcome the visitor gets what is known here. The store may have lost
 * the place while the command was on its way: then that comes back first, whatever the command
 * found. */
static bool joined_again(struct tl_visit *visit)
{
    const struct tl_wait *wait = &visit->wait;
    bool gone = tl_queue_outdated(visit->queue, &visit->ticket) ||
                (tl_wait_applied(wait) && wait->result->outcome == TL_OUTCOME_GONE);
    bool adopted = tl_queue_adopt(visit->queue, &visit->ticket);
    if (tl_queue_may_return(visit->queue, &visit->ticket) || (gone && adopted))
        return tl_visit_again(visit);
    visit->gives_ticket = !gone;
    return gone ? join_past_end(visit) : tl_answer_anew(visit);
}
