/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/api/challenge.h"
#include "worker/api/visitor.h"
#include "worker/report/worker_metrics.h"
#include "worker/verify/provider.h"

enum { LOG_EVERY_MS = 10000 };

/* The client of a request, and the prefix to which its puzzles are bound: empty for an unknown
 * address. */
struct client {
    bool known;
    struct tl_address address;
    struct tl_prefix prefix;
};

static struct client client_of(const struct tl_api *api, const struct tl_request *request)
{
    struct client client = {0};
    client.known = tl_visitor_address(api, request, &client.address);
    if (client.known)
        client.prefix = tl_prefix_of(&client.address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    return client;
}

static struct tl_puzzle_scope scope_of(const struct tl_queue *queue, const struct client *client)
{
    return (struct tl_puzzle_scope){.queue = queue->name, .prefix = &client->prefix};
}

static int64_t store_s(const struct tl_api *api, int64_t now_ms)
{
    return tl_queue_env_store_ms(api->env, now_ms) / 1000;
}

/* Refuses with a fresh puzzle. Returns false. */
static bool refuse(const struct tl_api *api, const struct tl_puzzle_scope *scope,
                   enum tl_refusal_kind kind, const char *detail, struct tl_refusal *refusal)
{
    static_assert(sizeof(refusal->puzzle.text) == TL_PUZZLE_MAX, "a puzzle fits");
    int64_t now_ms = tl_clock_ms();
    unsigned bits = tl_effort_bits(&api->effort, now_ms);
    tl_refuse(refusal, kind, "%s", detail);
    tl_puzzle_make(api->secrets.keyring, scope, TL_PUZZLE_WORK, bits, store_s(api, now_ms),
                   refusal->puzzle.text);
    refusal->puzzle.parts = TL_PUZZLE_PARTS;
    refusal->puzzle.bits = bits;
    tl_metrics_add(api->env->metrics, TL_WORKER_PUZZLES, 1);
    return false;
}

/* Has the address a signed wait left in this minute? Counts one. */
static bool may_wait(struct tl_api *api, const struct client *client, int64_t now_ms)
{
    return !client->known || tl_limiter_allow(api->limiter, TL_LIMITER_WAITS, &client->address,
                                              TL_CHALLENGE_WAITS_A_MINUTE, now_ms);
}

static const char *const reasons[] = {
    [TL_PUZZLE_FORGED] = "This is no solution of a puzzle of this queue for your address",
    [TL_PUZZLE_EXPIRED] = "The puzzle has expired",
    [TL_PUZZLE_EARLY] = "The time to wait is not over yet",
    [TL_PUZZLE_WRONG] = "The solution is wrong",
};

static enum tl_challenge_mode mode_of(const struct tl_queue *queue)
{
    return queue->settings.challenge;
}

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* ---- tokens of a service ---- */

bool tl_challenge_takes_token(const struct tl_api *api, const struct tl_queue *queue,
                              const struct tl_request *request, const struct tl_proof *proof)
{
    return mode_of(queue) == TL_CHALLENGE_EXTERNAL && is_given(proof->token) &&
           tl_config_has_service(api->config, NULL) && !tl_visitor_trusted(api, request);
}

/* Refuses, and says whose token is asked for. Returns false. */
static bool ask_for_token(const struct tl_api *api, enum tl_refusal_kind kind, const char *why,
                          struct tl_refusal *refusal)
{
    tl_refuse(refusal, kind, "%s", why);
    refusal->service.provider = tl_provider_of(api->config->challenge_service.provider)->name;
    refusal->service.site_key = api->config->challenge_service.site_key;
    return false;
}

bool tl_challenge_refuse_token(const struct tl_api *api, const char *why,
                               struct tl_refusal *refusal)
{
    return ask_for_token(api, TL_REFUSAL_CHALLENGE_FAILED, why, refusal);
}

bool tl_challenge_refuse_unverified(const struct tl_api *api, const struct tl_queue *queue,
                                    const struct tl_request *request, struct tl_refusal *refusal)
{
    const struct client client = client_of(api, request);
    const struct tl_puzzle_scope scope = scope_of(queue, &client);
    if (api->config->challenge_service.on_unreachable == TL_UNREACHABLE_WORK)
        return refuse(api, &scope, TL_REFUSAL_CHALLENGE,
                      "The service that checks visitors cannot be reached; solve this puzzle",
                      refusal);
    tl_metrics_add(api->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
    return tl_refuse(refusal, TL_REFUSAL_UNVERIFIED,
                     "The service that checks visitors cannot be reached; try again");
}

/* The queue asks for tokens, and the configuration of this worker has no service. */
static bool refuse_without_service(struct tl_api *api, const struct tl_queue *queue,
                                   struct tl_refusal *refusal)
{
    unsigned suppressed;
    struct tl_error err = {0};
    (void)tl_config_has_service(api->config, &err);
    if (tl_log_allow(&api->no_service_log, tl_clock_ms(), LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = queue->name, .error = &err},
               "newcomers are refused: add it to the configuration of every worker and restart "
               "them, or set the queue to another challenge");
    tl_metrics_add(api->env->metrics, TL_WORKER_JOINS_REFUSED, 1);
    return tl_refuse(refusal, TL_REFUSAL_UNVERIFIED, "%s", "");
}

/* ---- both ---- */

bool tl_challenge_passed(struct tl_api *api, const struct tl_queue *queue,
                         const struct tl_request *request, const struct tl_proof *proof,
                         struct tl_puzzle_solved *solved, struct tl_refusal *refusal)
{
    int64_t now_ms = tl_clock_ms();
    bool external = mode_of(queue) == TL_CHALLENGE_EXTERNAL;
    solved->id[0] = '\0';
    if (mode_of(queue) == TL_CHALLENGE_NONE || tl_visitor_trusted(api, request))
        return true;
    if (external && !tl_config_has_service(api->config, NULL))
        return refuse_without_service(api, queue, refusal);
    /* With `external` there are puzzles only while the service cannot be reached. */
    bool work = !external || api->config->challenge_service.on_unreachable == TL_UNREACHABLE_WORK;
    if (external && !(work && is_given(proof->solution)))
        return ask_for_token(api, TL_REFUSAL_CHALLENGE, "", refusal);
    const struct client client = client_of(api, request);
    const struct tl_puzzle_scope scope = scope_of(queue, &client);
    if (!is_given(proof->solution))
        return refuse(api, &scope, TL_REFUSAL_CHALLENGE, "", refusal);
    enum tl_puzzle_result result =
        tl_puzzle_check(api->secrets.keyring, &scope, proof->solution, strlen(proof->solution),
                        store_s(api, now_ms), solved);
    if (result == TL_PUZZLE_SOLVED && external && solved->kind != TL_PUZZLE_WORK)
        result = TL_PUZZLE_FORGED; /* a wait is for browsers without scripts */
    if (result != TL_PUZZLE_SOLVED) {
        tl_metrics_add(api->env->metrics, TL_WORKER_SOLUTIONS_REFUSED, 1);
        return external
                   ? tl_challenge_refuse_token(api, reasons[result], refusal)
                   : refuse(api, &scope, TL_REFUSAL_CHALLENGE_FAILED, reasons[result], refusal);
    }
    if (solved->kind == TL_PUZZLE_WAIT && !may_wait(api, &client, now_ms))
        return tl_refuse(refusal, TL_REFUSAL_TOO_MANY,
                         "At most %d a minute without a script; please wait a little",
                         TL_CHALLENGE_WAITS_A_MINUTE);
    if (solved->kind == TL_PUZZLE_WORK)
        tl_effort_count(&api->effort, now_ms);
    tl_metrics_add(api->env->metrics, TL_WORKER_SOLUTIONS, 1);
    return true;
}

void tl_challenge_refuse_spent(struct tl_api *api, const struct tl_queue *queue,
                               const struct tl_request *request, const char *id,
                               struct tl_refusal *refusal)
{
    if (id[0] != '~' || strlen(id) != TL_PUZZLE_ID_LENGTH) {
        tl_refuse(refusal, TL_REFUSAL_INVITE_SPENT, "%s", "");
        return;
    }
    if (mode_of(queue) == TL_CHALLENGE_EXTERNAL) {
        (void)tl_challenge_refuse_token(api, "This has been used already", refusal);
        return;
    }
    const struct client client = client_of(api, request);
    const struct tl_puzzle_scope scope = scope_of(queue, &client);
    (void)refuse(api, &scope, TL_REFUSAL_CHALLENGE_FAILED, "The solution has been used already",
                 refusal);
}

void tl_challenge_wait(const struct tl_api *api, const struct tl_queue *queue,
                       const struct tl_request *request, char text[TL_PUZZLE_MAX])
{
    const struct client client = client_of(api, request);
    const struct tl_puzzle_scope scope = scope_of(queue, &client);
    tl_puzzle_make(api->secrets.keyring, &scope, TL_PUZZLE_WAIT, TL_CHALLENGE_WAIT_S,
                   store_s(api, tl_clock_ms()), text);
}
