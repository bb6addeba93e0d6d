/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include "common/base/clock.h"
#include "worker/api/challenge.h"
#include "worker/api/verifications.h"
#include "worker/http/router.h"
#include "worker/report/worker_metrics.h"
#include "worker/verify/provider.h"
#include "worker/visit/recent.h"

enum {
    GRACE_MS = 250, /* for the verdict to come from its thread */
    LOOK_MS = 250,  /* how often it looks for clients that are gone */
    LOG_EVERY_MS = 10000,
    CLOCK_S = 120, /* how far the clocks of two workers may differ, and more */
};

struct verification {
    struct verification *prev, *next; /* the earliest deadline first */
    uint64_t number;
    int64_t deadline_ms;
    char queue[TL_QUEUE_NAME_MAX + 1]; /* which may be deleted meanwhile */
    struct tl_request *request;
    struct tl_token_join join;
};

struct tl_verifications {
    tl_token_passed *passed;
    struct verification *first, *last;
    uint64_t count, last_number;
    struct tl_recent *tokens;
    int64_t look_ms; /* when to look for clients that are gone */
    bool down;       /* the last question had no verdict */
    struct tl_log_limit down_log;
};

struct tl_verifications *tl_verifications_new(tl_token_passed *passed)
{
    struct tl_verifications *all = calloc(1, sizeof(*all));
    if (all == NULL || (all->tokens = tl_recent_new(TL_RECENT_TOKENS)) == NULL) {
        free(all);
        return NULL;
    }
    all->passed = passed;
    return all;
}

void tl_verifications_free(struct tl_verifications **verifications)
{
    if (*verifications == NULL)
        return;
    tl_recent_free(&(*verifications)->tokens);
    free(*verifications);
    *verifications = NULL;
}

uint64_t tl_verifications_count(const struct tl_verifications *verifications)
{
    return verifications->count;
}

/* ---- beginning ---- */

static void add(struct tl_verifications *all, struct verification *verification)
{
    verification->prev = all->last;
    if (all->last != NULL)
        all->last->next = verification;
    else
        all->first = verification;
    all->last = verification;
    all->count++;
}

/* Asks the service; with the visitor's address, if it may be sent. */
static bool ask(const struct tl_worker *worker, const struct verification *verification,
                const char *token, int64_t until_ms)
{
    char text[INET6_ADDRSTRLEN];
    struct tl_address address;
    struct tl_question question = {.number = verification->number,
                                   .secret = worker->secrets.challenge_secret,
                                   .token = token,
                                   .until_ms = until_ms};
    if (worker->config->challenge_service.send_address &&
        tl_visitor_address(worker, verification->request, &address)) {
        bool ipv4 = tl_address_is_ipv4(&address); /* mapped: the last four bytes */
        question.address = inet_ntop(ipv4 ? AF_INET : AF_INET6, address.bytes + (ipv4 ? 12 : 0),
                                     text, sizeof(text));
    }
    return worker->env->verifier != NULL && tl_verifier_ask(worker->env->verifier, &question);
}

bool tl_verification_begin(struct tl_visit *visit, const struct tl_token_join *join,
                           const char *token)
{
    struct tl_worker *worker = visit->worker;
    struct tl_verifications *all = worker->verifications;
    const int64_t now_ms = tl_clock_ms();
    const int64_t until_ms = now_ms + worker->config->challenge_service.timeout_ms;
    if (!tl_visit_may_fail(visit, TL_LIMITER_TOKENS))
        return false;
    if (all->count >= worker->config->challenge_service.max_concurrent +
                          worker->config->challenge_service.max_waiting) {
        tl_metrics_add(worker->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
        return all->down ? tl_challenge_refuse_unverified(visit)
                         : tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                                     "Too many tokens wait to be verified; try again");
    }
    struct verification *verification = calloc(1, sizeof(*verification));
    if (verification == NULL)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                         "There is no memory for this join; try again");
    verification->join = *join;
    verification->request = visit->request;
    tl_token_id(token, verification->join.id);
    if (!tl_recent_token(all->tokens, verification->join.id, now_ms)) {
        free(verification);
        tl_metrics_add(worker->env->metrics, TL_WORKER_TOKENS_REFUSED, 1);
        tl_visit_failed(visit, TL_LIMITER_TOKENS);
        return tl_challenge_refuse_token(visit, "The token has been used already");
    }
    verification->join.kept_until =
        tl_queue_env_store_ms(worker->env, now_ms) / 1000 + TL_TOKENS_LIFE_S + CLOCK_S;
    verification->number = ++all->last_number;
    verification->deadline_ms = until_ms + GRACE_MS;
    snprintf(verification->queue, sizeof(verification->queue), "%s", visit->queue->name);
    if (!ask(worker, verification, token, until_ms)) {
        tl_recent_forget(all->tokens, verification->join.id);
        free(verification);
        return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                         "There is no memory for this join; try again");
    }
    add(all, verification);
    tl_request_hold(visit->request);
    return true;
}

/* ---- ending ---- */

/* Takes it off the list and frees it. */
static struct verification release(struct tl_verifications *all, struct verification *verification)
{
    struct verification copy = *verification;
    if (copy.prev != NULL)
        copy.prev->next = copy.next;
    else
        all->first = copy.next;
    if (copy.next != NULL)
        copy.next->prev = copy.prev;
    else
        all->last = copy.prev;
    all->count--;
    free(verification);
    return copy;
}

/* Counts the verdict, and tells the operator when the service cannot be asked. */
static void note(struct tl_worker *worker, const struct tl_verdict *verdict)
{
    static const enum tl_worker_metric metrics[] = {
        [TL_VERDICT_PASSED] = TL_WORKER_TOKENS_PASSED,
        [TL_VERDICT_REFUSED] = TL_WORKER_TOKENS_REFUSED,
        [TL_VERDICT_UNREACHABLE] = TL_WORKER_TOKENS_UNREACHABLE,
        [TL_VERDICT_TIMED_OUT] = TL_WORKER_TOKENS_TIMED_OUT,
        [TL_VERDICT_NO_SECRET] = TL_WORKER_TOKENS_UNREACHABLE,
    };
    struct tl_verifications *all = worker->verifications;
    const char *name = tl_provider_of(worker->config->challenge_service.provider)->name;
    bool refuses = worker->config->challenge_service.on_unreachable == TL_UNREACHABLE_REFUSE;
    bool down = verdict->kind != TL_VERDICT_PASSED && verdict->kind != TL_VERDICT_REFUSED;
    unsigned suppressed;
    tl_metrics_add(worker->env->metrics, metrics[verdict->kind], 1);
    if (all->down && !down)
        tl_info("the challenge service (%s) answers again", name);
    all->down = down;
    if (!down || !tl_log_allow(&all->down_log, tl_clock_ms(), LOG_EVERY_MS, &suppressed))
        return;
    const char *now = refuses ? "are refused" : "get a puzzle instead";
    if (verdict->kind == TL_VERDICT_NO_SECRET)
        tl_log(TL_LOG_ERROR, NULL,
               "the challenge service (%s) does not accept our secret (%s), and newcomers %s: put "
               "the secret of this site key into %s and send SIGHUP",
               name, verdict->why, now, worker->config->secrets.challenge_secret);
    else
        tl_warn("the challenge service (%s) cannot verify tokens, and newcomers %s: %s; see that "
                "the workers can connect to it (challenge_service.verify_url), or set the queues "
                "to challenge=work",
                name, now, verdict->why);
}

static void settle(struct tl_worker *worker, struct verification *waiting,
                   const struct tl_verdict *verdict)
{
    struct tl_verifications *all = worker->verifications;
    const struct verification verification = release(all, waiting);
    struct tl_visit *visit = tl_visit_begin(worker, verification.request, verification.queue);
    bool ok = false;
    note(worker, verdict);
    if (verdict->kind != TL_VERDICT_PASSED && verdict->kind != TL_VERDICT_REFUSED)
        tl_recent_forget(all->tokens, verification.join.id);
    if (tl_visit_queue(visit) && verdict->kind == TL_VERDICT_PASSED) {
        ok = all->passed(visit, &verification.join);
    } else if (visit->queue != NULL && verdict->kind == TL_VERDICT_REFUSED) {
        tl_visit_failed(visit, TL_LIMITER_TOKENS);
        ok = tl_challenge_refuse_token(visit, verdict->why);
    } else if (visit->queue != NULL) {
        ok = tl_challenge_refuse_unverified(visit);
    }
    if (!ok)
        tl_render_refusal(visit->request, &visit->refusal);
}

void tl_verification_ended(struct tl_worker *worker, uint64_t number,
                           const struct tl_verdict *verdict)
{
    struct verification *waiting = worker->verifications->first;
    while (waiting != NULL && waiting->number != number)
        waiting = waiting->next;
    if (waiting != NULL) /* else it has timed out, or its client is gone */
        settle(worker, waiting, verdict);
}

void tl_verifications_tick(struct tl_worker *worker, int64_t now_ms)
{
    struct tl_verifications *all = worker->verifications;
    struct tl_verdict late;
    tl_verdict_set(&late, TL_VERDICT_TIMED_OUT, "it does not answer in time");
    struct verification *next;
    for (struct verification *at = all->first; at != NULL && at->deadline_ms <= now_ms; at = next) {
        next = at->next;
        settle(worker, at, &late);
    }
    if (now_ms < all->look_ms)
        return;
    all->look_ms = now_ms + LOOK_MS;
    for (struct verification *at = all->first; at != NULL; at = next) {
        next = at->next;
        if (!tl_request_gone(at->request))
            continue;
        struct verification gone = release(all, at);
        tl_recent_forget(all->tokens, gone.join.id);
        if (worker->env->verifier != NULL)
            tl_verifier_cancel(worker->env->verifier, gone.number);
        tl_request_answer(gone.request, &(struct tl_answer){.status = 408}); /* for no one */
    }
}

void tl_verifications_stop(struct tl_worker *worker)
{
    struct tl_verifications *all = worker->verifications;
    struct verification *next;
    for (struct verification *at = all->first; at != NULL; at = next) {
        next = at->next;
        tl_render_refused(release(all, at).request, TL_REFUSAL_STOPPING, "");
    }
}
