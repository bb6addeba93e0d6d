/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include "common/base/clock.h"
#include "worker/api/handlers.h"
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

static void make(const struct tl_visit *visit, enum tl_puzzle_kind kind, unsigned amount,
                 char text[TL_PUZZLE_MAX])
{
    const struct tl_worker *worker = visit->worker;
    const struct tl_prefix network = tl_visit_network(visit);
    const struct tl_puzzle_scope scope = {.queue = visit->queue->name, .prefix = &network};
    tl_puzzle_make(worker->secrets.keyring, &scope, kind, amount,
                   tl_queue_env_store_ms(worker->env, visit->now_ms) / 1000, text);
}

void tl_challenge_wait(const struct tl_visit *visit, char text[TL_PUZZLE_MAX])
{
    make(visit, TL_PUZZLE_WAIT, TL_CHALLENGE_WAIT_S, text);
}

/* Refuses with a fresh puzzle. Returns false. */
static bool refuse(struct tl_visit *visit, enum tl_refusal_kind kind, const char *detail)
{
    struct tl_refusal *refusal = &visit->refusal;
    static_assert(sizeof(refusal->puzzle.text) == TL_PUZZLE_MAX, "a puzzle fits");
    tl_refuse(refusal, kind, "%s", detail);
    refusal->puzzle.parts = TL_PUZZLE_PARTS;
    refusal->puzzle.bits = tl_effort_bits(&visit->worker->effort, visit->now_ms);
    make(visit, TL_PUZZLE_WORK, refusal->puzzle.bits, refusal->puzzle.text);
    tl_metrics_add(visit->worker->env->metrics, TL_WORKER_PUZZLES, 1);
    return false;
}

static const char *const reasons[] = {
    [TL_PUZZLE_FORGED] = "This is no solution of a puzzle of this queue for your address",
    [TL_PUZZLE_EXPIRED] = "The puzzle has expired",
    [TL_PUZZLE_EARLY] = "The time to wait is not over yet",
    [TL_PUZZLE_WRONG] = "The solution is wrong",
};

static bool is_external(const struct tl_visit *visit)
{
    return visit->queue->settings.challenge == TL_CHALLENGE_EXTERNAL;
}

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* ---- tokens of a service ---- */

bool tl_challenge_takes_token(const struct tl_visit *visit, const struct tl_proof *proof)
{
    return is_external(visit) && is_given(proof->token) &&
           tl_config_has_service(visit->worker->config, NULL) && !tl_visit_trusted(visit);
}

/* Refuses, and says whose token is asked for. Returns false. */
static bool ask_for_token(struct tl_visit *visit, enum tl_refusal_kind kind, const char *why)
{
    const struct tl_config *config = visit->worker->config;
    tl_refuse(&visit->refusal, kind, "%s", why);
    visit->refusal.service.provider = tl_provider_of(config->challenge_service.provider)->name;
    visit->refusal.service.site_key = config->challenge_service.site_key;
    return false;
}

/* The service cannot say whether a token is good. Returns false. */
static bool refuse_unverified(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    if (worker->config->challenge_service.on_unreachable == TL_UNREACHABLE_WORK)
        return refuse(visit, TL_REFUSAL_CHALLENGE,
                      "The service that checks visitors cannot be reached; solve this puzzle");
    tl_metrics_add(worker->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
    return tl_refuse(&visit->refusal, TL_REFUSAL_UNVERIFIED,
                     "The service that checks visitors cannot be reached; try again");
}

/* The queue asks for tokens, and the configuration of this worker has no service. */
static bool refuse_without_service(struct tl_visit *visit)
{
    struct tl_worker *worker = visit->worker;
    unsigned suppressed;
    struct tl_error err = {0};
    (void)tl_config_has_service(worker->config, &err);
    if (tl_log_allow(&worker->no_service_log, visit->now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = visit->name, .error = &err},
               "newcomers are refused: add it to the configuration of every worker and restart "
               "them, or set the queue to another challenge");
    tl_metrics_add(worker->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
    return tl_refuse(&visit->refusal, TL_REFUSAL_UNVERIFIED, "%s", "");
}

/* ---- verifying tokens ---- */

/* Asks the service; with the visitor's address, if it may be sent. NULL: it could not be asked. */
static struct tl_fetch *ask(const struct tl_visit *visit, const char *token, int64_t until_ms)
{
    const struct tl_worker *worker = visit->worker;
    char text[INET6_ADDRSTRLEN];
    struct tl_question question = {
        .secret = worker->secrets.challenge_secret, .token = token, .until_ms = until_ms};
    if (worker->config->challenge_service.send_address && visit->has_address) {
        bool ipv4 = tl_address_is_ipv4(&visit->address); /* mapped: the last four bytes */
        question.address = inet_ntop(ipv4 ? AF_INET : AF_INET6,
                                     visit->address.bytes + (ipv4 ? 12 : 0), text, sizeof(text));
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
            worker->config->challenge_service.max_queued) {
        tl_metrics_add(worker->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
        return worker->service.down ? refuse_unverified(visit)
                                    : tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                                                "Too many tokens wait to be verified; try again");
    }
    tl_token_id(token, id);
    if (!tl_recent_token(worker->service.tokens, id, now_ms)) {
        tl_metrics_add(worker->env->metrics, TL_WORKER_TOKENS_REFUSED, 1);
        tl_visit_unverified(visit, TL_LIMITER_TOKENS, NULL, token);
        return ask_for_token(visit, TL_REFUSAL_CHALLENGE_FAILED, "The token has been used already");
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

/* Counts the verdict, and tells the operator when the service cannot be asked. */
static void note_verdict(struct tl_worker *worker, const struct tl_verdict *verdict)
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
        note_verdict(worker, &verdict);
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
        return refuse_unverified(visit);
    tl_visit_unverified(visit, TL_LIMITER_TOKENS, NULL, NULL);
    return ask_for_token(visit, TL_REFUSAL_CHALLENGE_FAILED, verdict.why);
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

/* ---- both ---- */

bool tl_challenge_passed(struct tl_visit *visit, const struct tl_proof *proof,
                         struct tl_puzzle_solved *solved)
{
    struct tl_worker *worker = visit->worker;
    int64_t now_ms = visit->now_ms;
    const bool external = is_external(visit);
    solved->id[0] = '\0';
    if (visit->queue->settings.challenge == TL_CHALLENGE_NONE || tl_visit_trusted(visit))
        return true;
    if (external && !tl_config_has_service(worker->config, NULL))
        return refuse_without_service(visit);
    /* With `external` there are puzzles only while the service cannot be reached. */
    bool work =
        !external || worker->config->challenge_service.on_unreachable == TL_UNREACHABLE_WORK;
    if (external && !(work && is_given(proof->solution)))
        return ask_for_token(visit, TL_REFUSAL_CHALLENGE, "");
    if (!is_given(proof->solution))
        return refuse(visit, TL_REFUSAL_CHALLENGE, "");
    const struct tl_prefix network = tl_visit_network(visit);
    const struct tl_puzzle_scope scope = {.queue = visit->queue->name, .prefix = &network};
    enum tl_puzzle_result result =
        tl_puzzle_check(worker->secrets.keyring, &scope, proof->solution, strlen(proof->solution),
                        tl_queue_env_store_ms(worker->env, now_ms) / 1000, solved);
    if (result == TL_PUZZLE_SOLVED && external && solved->kind != TL_PUZZLE_WORK)
        result = TL_PUZZLE_FORGED; /* a wait is for browsers without scripts */
    if (result != TL_PUZZLE_SOLVED) {
        tl_metrics_add(worker->env->metrics, TL_WORKER_SOLUTIONS_REFUSED, 1);
        return external ? ask_for_token(visit, TL_REFUSAL_CHALLENGE_FAILED, reasons[result])
                        : refuse(visit, TL_REFUSAL_CHALLENGE_FAILED, reasons[result]);
    }
    if (solved->kind == TL_PUZZLE_WAIT &&
        !tl_visit_within(visit, TL_LIMITER_WAITS, TL_CHALLENGE_WAITS_A_MINUTE))
        return tl_refuse(&visit->refusal, TL_REFUSAL_TOO_MANY,
                         "At most %d a minute without a script; please wait a little",
                         TL_CHALLENGE_WAITS_A_MINUTE);
    if (solved->kind == TL_PUZZLE_WORK)
        tl_effort_count(&worker->effort, now_ms);
    tl_metrics_add(worker->env->metrics, TL_WORKER_SOLUTIONS, 1);
    return true;
}

bool tl_challenge_refuse_spent(struct tl_visit *visit, const char *id)
{
    if (id[0] != '~' || strlen(id) != TL_PUZZLE_ID_LENGTH)
        return tl_refuse(&visit->refusal, TL_REFUSAL_INVITE_SPENT, "%s", "");
    if (is_external(visit))
        return ask_for_token(visit, TL_REFUSAL_CHALLENGE_FAILED, "This has been used already");
    return refuse(visit, TL_REFUSAL_CHALLENGE_FAILED, "The solution has been used already");
}
