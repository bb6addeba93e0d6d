/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include "common/auth/puzzle.h"
#include "common/base/clock.h"
#include "worker/api/challenge.h"
#include "worker/http/router.h"
#include "worker/report/worker_metrics.h"
#include "worker/verify/verifier.h"
#include "worker/visit/recent.h"

enum {
    GRACE_MS = 250, /* for the verdict to come from its thread */
    LOOK_MS = 250,  /* how often it looks for clients that are gone */
    LOG_EVERY_MS = 10000,
    CLOCK_S = 120, /* how far the clocks of two workers may differ, and more */
};

/* Asks the service; with the visitor's address, if it may be sent. NULL: it could not be asked. */
static struct tl_fetch *ask(const struct tl_visit *visit, const char *token, int64_t until_ms)
{
    const struct tl_worker *worker = visit->worker;
    char text[INET6_ADDRSTRLEN];
    struct tl_address address;
    struct tl_question question = {
        .secret = worker->secrets.challenge_secret, .token = token, .until_ms = until_ms};
    if (worker->config->challenge_service.send_address && tl_visit_address(visit, &address)) {
        bool ipv4 = tl_address_is_ipv4(&address); /* mapped: the last four bytes */
        question.address = inet_ntop(ipv4 ? AF_INET : AF_INET6, address.bytes + (ipv4 ? 12 : 0),
                                     text, sizeof(text));
    }
    return worker->env->verifier != NULL ? tl_verifier_ask(worker->env->verifier, &question) : NULL;
}

bool tl_verification_begin(struct tl_visit *visit, const char *token, tl_step *step)
{
    struct tl_worker *worker = visit->worker;
    const int64_t now_ms = visit->now_ms;
    const int64_t timeout_ms = worker->config->challenge_service.timeout_ms;
    char *id = visit->wait.about;
    static_assert(sizeof(visit->wait.about) > TL_PUZZLE_ID_LENGTH, "an id fits");
    if (!tl_visit_may_verify(visit, TL_LIMITER_TOKENS, NULL, token))
        return false;
    if (worker->waits.lists[TL_WAIT_VERDICT].count >=
        worker->config->challenge_service.max_concurrent +
            worker->config->challenge_service.max_waiting) {
        tl_metrics_add(worker->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
        return worker->service.down ? tl_challenge_refuse_unverified(visit)
                                    : tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                                                "Too many tokens wait to be verified; try again");
    }
    tl_token_id(token, id);
    if (!tl_recent_token(worker->service.tokens, id, now_ms)) {
        tl_metrics_add(worker->env->metrics, TL_WORKER_TOKENS_REFUSED, 1);
        tl_visit_unverified(visit, TL_LIMITER_TOKENS, NULL, token);
        return tl_challenge_refuse_token(visit, "The token has been used already");
    }
    visit->wait.fetch = ask(visit, token, now_ms + timeout_ms);
    if (visit->wait.fetch == NULL) {
        tl_recent_forget(worker->service.tokens, id);
        return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                         "There is no memory for this join; try again");
    }
    tl_wait_begin(visit, TL_WAIT_VERDICT, timeout_ms + GRACE_MS, step);
    return true;
}

/* ---- ending ---- */

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
    const char *name = tl_provider_of(worker->config->challenge_service.provider)->name;
    bool refuses = worker->config->challenge_service.on_unreachable == TL_UNREACHABLE_REFUSE;
    bool down = verdict->kind != TL_VERDICT_PASSED && verdict->kind != TL_VERDICT_REFUSED;
    unsigned suppressed;
    tl_metrics_add(worker->env->metrics, metrics[verdict->kind], 1);
    if (worker->service.down && !down)
        tl_info("the challenge service (%s) answers again", name);
    worker->service.down = down;
    if (!down || !tl_log_allow(&worker->service.down_log, tl_clock_ms(), LOG_EVERY_MS, &suppressed))
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

bool tl_verification_passed(struct tl_visit *visit, int64_t *kept_until)
{
    struct tl_worker *worker = visit->worker;
    const bool served = tl_visit_queue(visit); /* else it was deleted meanwhile */
    struct tl_verdict verdict;
    bool judged = tl_verifier_judge(worker->env->verifier, visit->wait.fetch, &verdict);
    tl_fetch_end(&visit->wait.fetch);
    if (!judged && served && !worker->env->draining) {
        tl_verdict_set(&verdict, TL_VERDICT_TIMED_OUT, "it does not answer in time");
        judged = true;
    }
    if (judged)
        note(worker, &verdict);
    if (!judged || (verdict.kind != TL_VERDICT_PASSED && verdict.kind != TL_VERDICT_REFUSED))
        tl_recent_forget(worker->service.tokens, visit->wait.about);
    *kept_until =
        tl_queue_env_store_ms(worker->env, visit->now_ms) / 1000 + TL_TOKENS_LIFE_S + CLOCK_S;
    if (!served)
        return false;
    if (!judged)
        return tl_refuse(&visit->refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (verdict.kind == TL_VERDICT_PASSED)
        return true;
    if (verdict.kind != TL_VERDICT_REFUSED)
        return tl_challenge_refuse_unverified(visit);
    tl_visit_unverified(visit, TL_LIMITER_TOKENS, NULL, NULL);
    return tl_challenge_refuse_token(visit, verdict.why);
}

/* Instead of the step: the client is gone, and nobody needs the verdict. */
static bool abandon(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    tl_recent_forget(worker->service.tokens, visit->wait.about);
    tl_fetch_end(&visit->wait.fetch);
    tl_request_answer(visit->request, &(struct tl_answer){.status = 408}); /* for no one */
    return true;
}

/* Each of them has at most max_concurrent before it that have not ended. */
void tl_verifications_ended(void *context)
{
    struct tl_worker *worker = context;
    const uint64_t most = worker->config->challenge_service.max_concurrent;
    uint64_t asked = 0;
    struct tl_visit *next;
    for (struct tl_visit *at = worker->waits.lists[TL_WAIT_VERDICT].first;
         at != NULL && asked <= most; at = next) {
        next = at->wait.next;
        if (tl_fetch_result(at->wait.fetch) != NULL)
            tl_wait_end(at);
        else
            asked++;
    }
}

void tl_verifications_tick(struct tl_worker *worker, int64_t now_ms)
{
    struct tl_visit *next;
    if (now_ms < worker->service.look_ms)
        return;
    worker->service.look_ms = now_ms + LOOK_MS;
    for (struct tl_visit *at = worker->waits.lists[TL_WAIT_VERDICT].first; at != NULL; at = next) {
        next = at->wait.next;
        if (!tl_request_gone(at->request))
            continue;
        at->wait.step = abandon;
        tl_wait_end(at);
    }
}
