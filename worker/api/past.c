/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/net.h"
#include "worker/api/misuse.h"
#include "worker/api/page_renderer.h"
#include "worker/api/past.h"
#include "worker/http/json_text.h"
#include "worker/queue/passthrough.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/browser.h"

enum { ANSWER_MAX = 4096, LOG_EVERY_MS = 10000, INVITE_MAX = TL_BYPASS_COOKIE_MAX - 256 };

/* ---- everyone ---- */

bool tl_through_applies(const struct tl_worker *worker, const char *queue)
{
    const struct tl_queue *local = tl_queues_find(worker->queues, queue);
    return tl_passthrough_names(worker->env->passthrough, queue) ||
           (local != NULL && local->settings.mode == TL_MODE_PASSTHROUGH);
}

void tl_through_count(const struct tl_worker *worker, const char *queue)
{
    tl_metrics_add(worker->env->metrics, TL_WORKER_PASSED_THROUGH, 1);
    tl_misuse_count(worker, queue, TL_QUEUE_PASSED_THROUGH);
}

static const char *target_of(const struct tl_worker *worker, const char *queue)
{
    const struct tl_queue *local = tl_queues_find(worker->queues, queue);
    const struct tl_queue_settings *settings =
        local != NULL && local->line != NULL
            ? &local->settings
            : tl_config_queue(worker->config->queues, worker->config->n_queues, queue);
    return settings != NULL ? settings->target_url : "";
}

bool tl_through_answer(const struct tl_visit *visit, const char *cookie)
{
    char text[ANSWER_MAX];
    struct tl_json json;
    const char *target = target_of(visit->worker, visit->name);
    if (strncmp(tl_request_path(visit->request), "/q/", 3) == 0)
        return tl_page_send_through(visit, target, cookie);
    tl_json_begin(&json, text, sizeof(text));
    tl_json_string(&json, "queue", visit->name);
    tl_json_string(&json, "status", "passthrough");
    if (target[0] != '\0')
        tl_json_string(&json, "target_url", target);
    struct tl_answer answer = {
        .status = 200, .type = "application/json", .body = text, .length = tl_json_end(&json)};
    tl_answer_header(&answer, "Set-Cookie", cookie);
    tl_request_answer(visit->request, &answer);
    return true;
}

bool tl_through_passes_all(const struct tl_visit *visit)
{
    if (!tl_through_applies(visit->worker, visit->name))
        return false;
    tl_through_count(visit->worker, visit->name);
    return tl_through_answer(visit, NULL);
}

/* ---- who has a bypass ---- */

struct tl_bypass {
    struct tl_networks *networks;
    const char *header; /* borrowed; "": none */
    struct tl_log_limit limit;
};

struct tl_bypass *tl_bypass_new(const struct tl_config *config, struct tl_error *err)
{
    struct tl_bypass *bypass = calloc(1, sizeof(*bypass));
    if (bypass == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the bypass");
        return NULL;
    }
    bypass->header = config->bypass.header;
    bypass->networks = tl_networks_parse(config->bypass.networks, err);
    if (bypass->networks == NULL)
        tl_bypass_free(&bypass);
    return bypass;
}

void tl_bypass_free(struct tl_bypass **bypass)
{
    if (*bypass == NULL)
        return;
    tl_networks_free(&(*bypass)->networks);
    free(*bypass);
    *bypass = NULL;
}

/* No ticket's cookie has this name: names of queues have no capital letters. */
static void cookie_name(const char *queue, char name[TL_QUEUE_NAME_MAX + 32])
{
    snprintf(name, TL_QUEUE_NAME_MAX + 32, "tellerline_BYPASS_%s", queue);
}

static bool by_header(const struct tl_worker *worker, const struct tl_request *request)
{
    struct tl_address peer;
    const char *name = worker->bypass->header;
    const char *value = name[0] != '\0' ? tl_request_header(request, name) : NULL;
    return value != NULL && value[0] != '\0' && tl_request_peer(request, &peer) &&
           tl_networks_contain(worker->proxies, &peer);
}

static bool by_invite(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    char name[TL_QUEUE_NAME_MAX + 32];
    struct tl_invite invite;
    const struct tl_jwt_keys *keys = worker->secrets.invite_keys;
    int64_t store_s = tl_queue_env_store_ms(worker->env, visit->now_ms) / 1000;
    cookie_name(visit->name, name);
    const char *text = tl_request_header(visit->request, "X-Tellerline-Invite");
    if (text == NULL)
        text = tl_request_cookie(visit->request, name);
    if (text == NULL || !tl_visit_may_verify(visit, TL_LIMITER_INVITES, keys, text))
        return false;
    if (tl_invite_verify(keys, visit->name, text, strlen(text), store_s, &invite, NULL))
        return invite.bypass;
    tl_visit_unverified(visit, TL_LIMITER_INVITES, keys, text);
    return false;
}

void tl_bypass_note(const struct tl_visit *visit, const char *by)
{
    const struct tl_worker *worker = visit->worker;
    char text[TL_PREFIX_TEXT_MAX] = "an unknown address";
    struct tl_address address;
    unsigned suppressed;
    tl_metrics_add(worker->env->metrics, TL_WORKER_BYPASSED, 1);
    tl_misuse_count(worker, visit->name, TL_QUEUE_BYPASSED);
    if (!tl_log_allow(&worker->bypass->limit, visit->now_ms, LOG_EVERY_MS, &suppressed))
        return;
    if (tl_visitor_address(worker, visit->request, &address)) {
        const struct tl_prefix prefix = tl_prefix_of(&address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
        tl_prefix_format(&prefix, text);
    }
    tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = visit->name},
           "%s got in past the line by %s; %u more since the last such line", text, by, suppressed);
}

const char *tl_bypass_of(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_address address;
    const char *by = NULL;
    if (tl_visitor_address(worker, visit->request, &address) &&
        tl_networks_contain(worker->bypass->networks, &address))
        by = "network";
    else if (by_header(worker, visit->request))
        by = "header";
    else if (by_invite(visit))
        by = "invite";
    if (by != NULL)
        tl_bypass_note(visit, by);
    return by;
}

bool tl_bypass_cookie(const struct tl_visit *visit, const char *text,
                      const struct tl_invite *invite, char cookie[TL_BYPASS_COOKIE_MAX])
{
    const struct tl_worker *worker = visit->worker;
    char name[TL_QUEUE_NAME_MAX + 32];
    int64_t left_s = invite->expires - tl_queue_env_store_ms(worker->env, visit->now_ms) / 1000;
    cookie_name(visit->name, name);
    if (strlen(text) > INVITE_MAX || left_s <= 0)
        return false;
    snprintf(cookie, TL_BYPASS_COOKIE_MAX, "%s=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Lax%s",
             name, text, (long long)left_s,
             tl_cross_site_https(worker, visit->request) ? "; Secure" : "");
    return true;
}
