/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/net.h"
#include "worker/api/bypass.h"
#include "worker/api/cross_site.h"
#include "worker/api/misuse.h"
#include "worker/api/visitor.h"
#include "worker/report/worker_metrics.h"

enum { LOG_EVERY_MS = 10000, INVITE_MAX = TL_BYPASS_COOKIE_MAX - 256 };

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

static bool by_header(const struct tl_api *api, const struct tl_request *request)
{
    struct tl_address peer;
    const char *name = api->bypass->header;
    const char *value = name[0] != '\0' ? tl_request_header(request, name) : NULL;
    return value != NULL && value[0] != '\0' && tl_request_peer(request, &peer) &&
           tl_networks_contain(api->proxies, &peer);
}

static bool by_invite(const struct tl_api *api, const struct tl_request *request, const char *queue,
                      int64_t now_ms)
{
    char name[TL_QUEUE_NAME_MAX + 32];
    struct tl_invite invite;
    struct tl_refusal unused;
    const struct tl_jwt_keys *keys = api->secrets.invite_keys;
    int64_t store_s = tl_queue_env_store_ms(api->env, now_ms) / 1000;
    cookie_name(queue, name);
    const char *text = tl_request_header(request, "X-Tellerline-Invite");
    if (text == NULL)
        text = tl_request_cookie(request, name);
    const struct tl_visitor_tokens tokens = {
        .kind = TL_LIMITER_INVITES, .queue = queue, .request = request, .now_ms = now_ms};
    if (text == NULL || !tl_visitor_may_verify(api, &tokens, keys, text, &unused))
        return false;
    if (tl_invite_verify(keys, queue, text, strlen(text), store_s, &invite, NULL))
        return invite.bypass;
    tl_visitor_refused(api, &tokens, keys, text);
    return false;
}

void tl_bypass_note(const struct tl_api *api, const struct tl_request *request, const char *queue,
                    const char *by, int64_t now_ms)
{
    char text[TL_PREFIX_TEXT_MAX] = "an unknown address";
    struct tl_address address;
    unsigned suppressed;
    tl_metrics_add(api->env->metrics, TL_WORKER_BYPASSED, 1);
    tl_misuse_count(api, queue, TL_QUEUE_BYPASSED);
    if (!tl_log_allow(&api->bypass->limit, now_ms, LOG_EVERY_MS, &suppressed))
        return;
    if (tl_visitor_address(api, request, &address)) {
        const struct tl_prefix prefix = tl_prefix_of(&address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
        tl_prefix_format(&prefix, text);
    }
    tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = queue},
           "%s got in past the line by %s; %u more since the last such line", text, by, suppressed);
}

const char *tl_bypass_of(const struct tl_api *api, const struct tl_request *request,
                         const char *queue, int64_t now_ms)
{
    struct tl_address address;
    const char *by = NULL;
    if (tl_visitor_address(api, request, &address) &&
        tl_networks_contain(api->bypass->networks, &address))
        by = "network";
    else if (by_header(api, request))
        by = "header";
    else if (by_invite(api, request, queue, now_ms))
        by = "invite";
    if (by != NULL)
        tl_bypass_note(api, request, queue, by, now_ms);
    return by;
}

bool tl_bypass_cookie(const struct tl_api *api, const struct tl_request *request, const char *queue,
                      const char *text, const struct tl_invite *invite,
                      char cookie[TL_BYPASS_COOKIE_MAX])
{
    char name[TL_QUEUE_NAME_MAX + 32];
    int64_t left_s = invite->expires - tl_queue_env_store_ms(api->env, tl_clock_ms()) / 1000;
    cookie_name(queue, name);
    if (strlen(text) > INVITE_MAX || left_s <= 0)
        return false;
    snprintf(cookie, TL_BYPASS_COOKIE_MAX, "%s=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Lax%s",
             name, text, (long long)left_s, tl_cross_site_https(api, request) ? "; Secure" : "");
    return true;
}
