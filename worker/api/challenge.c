/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/api/challenge.h"
#include "worker/report/worker_metrics.h"
#include "worker/verify/verdict.h"

enum { LOG_EVERY_MS = 10000 };

/* What puzzles of this visit are bound to: its queue and the prefix of its address, which is
 * zeroed where that is unknown. */
static struct tl_puzzle_scope scope_of(const struct tl_visit *visit, struct tl_prefix *prefix)
{
    struct tl_address address;
    *prefix = (struct tl_prefix){0};
    if (tl_visitor_address(visit->worker, visit->request, &address))
        *prefix = tl_prefix_of(&address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    return (struct tl_puzzle_scope){.queue = visit->queue->name, .prefix = prefix};
}

static void make(const struct tl_visit *visit, enum tl_puzzle_kind kind, unsigned amount,
                 char text[TL_PUZZLE_MAX])
{
    const struct tl_worker *worker = visit->worker;
    struct tl_prefix prefix;
    const struct tl_puzzle_scope scope = scope_of(visit, &prefix);
    tl_puzzle_make(worker->secrets.keyring, &scope, kind, amount,
                   tl_queue_env_store_ms(worker->env, tl_clock_ms()) / 1000, text);
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
    refusal->puzzle.bits = tl_effort_bits(&visit->worker->effort, tl_clock_ms());
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
           tl_config_has_service(visit->worker->config, NULL) &&
           !tl_visitor_trusted(visit->worker, visit->request);
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

bool tl_challenge_refuse_token(struct tl_visit *visit, const char *why)
{
    return ask_for_token(visit, TL_REFUSAL_CHALLENGE_FAILED, why);
}

bool tl_challenge_refuse_unverified(struct tl_visit *visit)
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
    if (tl_log_allow(&worker->no_service_log, tl_clock_ms(), LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = visit->name, .error = &err},
               "newcomers are refused: add it to the configuration of every worker and restart "
               "them, or set the queue to another challenge");
    tl_metrics_add(worker->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
    return tl_refuse(&visit->refusal, TL_REFUSAL_UNVERIFIED, "%s", "");
}

/* ---- both ---- */

bool tl_challenge_passed(struct tl_visit *visit, const struct tl_proof *proof,
                         struct tl_puzzle_solved *solved)
{
    struct tl_worker *worker = visit->worker;
    int64_t now_ms = tl_clock_ms();
    const bool external = is_external(visit);
    solved->id[0] = '\0';
    if (visit->queue->settings.challenge == TL_CHALLENGE_NONE ||
        tl_visitor_trusted(worker, visit->request))
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
    struct tl_prefix prefix;
    const struct tl_puzzle_scope scope = scope_of(visit, &prefix);
    enum tl_puzzle_result result =
        tl_puzzle_check(worker->secrets.keyring, &scope, proof->solution, strlen(proof->solution),
                        tl_queue_env_store_ms(worker->env, now_ms) / 1000, solved);
    if (result == TL_PUZZLE_SOLVED && external && solved->kind != TL_PUZZLE_WORK)
        result = TL_PUZZLE_FORGED; /* a wait is for browsers without scripts */
    if (result != TL_PUZZLE_SOLVED) {
        tl_metrics_add(worker->env->metrics, TL_WORKER_SOLUTIONS_REFUSED, 1);
        return external ? tl_challenge_refuse_token(visit, reasons[result])
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
        return tl_challenge_refuse_token(visit, "This has been used already");
    return refuse(visit, TL_REFUSAL_CHALLENGE_FAILED, "The solution has been used already");
}
