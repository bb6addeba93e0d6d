#include <stdlib.h>

#include "worker/api/answer.h"
#include "worker/api/api.h"
#include "worker/api/context.h"
#include "worker/api/join.h"
#include "worker/api/outcome.h"
#include "worker/api/routes.h"
#include "worker/http/router.h"

#include "common/base/clock.h"

/* For holds: hands a lookup to the process. */
static bool ask_store(void *context, const char *queue, const char *visitor, tl_place place,
                      uint64_t number)
{
    const struct tl_api *api = context;
    return api->ask(api->process, queue, visitor, place, number);
}

/* For event streams: asks the store about a place that the line does not know. */
static void ask_place(void *context, struct tl_local_queue *queue, const struct tl_ticket *ticket)
{
    struct tl_api *api = context;
    if (tl_queue_env_store_up(api->env)) /* else the stream asks again */
        (void)tl_holds_lookup(api->holds, queue, NULL, ticket, tl_clock_us());
}

static struct tl_brand *load_brand(const struct tl_config *config, struct tl_error *err)
{
    const struct tl_brand_settings settings = {
        .name = config->page.name,
        .accent_light = config->page.accent_light,
        .accent_dark = config->page.accent_dark,
        .style_file = config->page.style,
        .logo_file = config->page.logo,
        .text = {[TL_LANGUAGE_EN] = config->page.text_en, [TL_LANGUAGE_KO] = config->page.text_ko}};
    return tl_brand_load(&settings, err);
}

static bool load(struct tl_api *api, const struct tl_api_settings *settings, struct tl_error *err)
{
    const struct tl_config *config = settings->config;
    if (!tl_secrets_load(&api->secrets, config, err) ||
        (api->brand = load_brand(config, err)) == NULL ||
        (api->proxies = tl_networks_parse(config->http.trusted_proxies, err)) == NULL)
        return false;
    const struct tl_holds_settings holds = {.wait_ms = config->http.join_wait_ms,
                                            .metrics = settings->env->metrics,
                                            .context = api,
                                            .ask = ask_store,
                                            .settled = tl_outcome_settled,
                                            .looked_up = tl_outcome_looked_up};
    api->limiter = tl_limiter_new(config->http.joins_per_minute);
    api->holds = tl_holds_new(&holds);
    const struct tl_queues_settings queues = {.env = settings->env,
                                              .holds = api->holds,
                                              .subscribers = {.loop = settings->loop,
                                                              .metrics = settings->env->metrics,
                                                              .context = api,
                                                              .write_view = tl_answer_write_view,
                                                              .answer = tl_outcome_changed,
                                                              .refuse = tl_outcome_refused,
                                                              .ask_number = tl_join_ask_number,
                                                              .ask_place = ask_place}};
    api->queues = tl_queues_new(&queues);
    if (api->limiter == NULL || api->holds == NULL || api->queues == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the API");
    return true;
}

bool tl_api_check(const struct tl_config *config, struct tl_error *err)
{
    struct tl_secrets secrets;
    struct tl_brand *brand = NULL;
    bool ok = tl_secrets_load(&secrets, config, err) && (brand = load_brand(config, err)) != NULL;
    tl_brand_free(&brand);
    tl_secrets_free(&secrets);
    return ok;
}

struct tl_api *tl_api_new(const struct tl_api_settings *settings, struct tl_error *err)
{
    struct tl_api *api = calloc(1, sizeof(*api));
    if (api == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the API");
        return NULL;
    }
    api->config = settings->config;
    api->env = settings->env;
    api->process = settings->process;
    api->ask = settings->ask;
    api->stream_fits = settings->stream_fits;
    if (!load(api, settings, err))
        tl_api_free(&api);
    return api;
}

void tl_api_stop(struct tl_api *api)
{
    tl_holds_drop_lookups(api->holds, NULL);
    tl_queues_clear(api->queues);
}

void tl_api_free(struct tl_api **api)
{
    if (*api == NULL)
        return;
    tl_queues_free(&(*api)->queues);
    tl_holds_free(&(*api)->holds);
    tl_limiter_free(&(*api)->limiter);
    tl_networks_free(&(*api)->proxies);
    tl_brand_free(&(*api)->brand);
    tl_secrets_free(&(*api)->secrets);
    free(*api);
    *api = NULL;
}

bool tl_api_reload(struct tl_api *api, const struct tl_config *config, struct tl_error *err)
{
    struct tl_secrets fresh;
    if (!tl_secrets_load(&fresh, config, err))
        return false;
    tl_secrets_free(&api->secrets);
    api->secrets = fresh;
    return true;
}

void tl_api_handle(void *context, struct tl_request *request)
{
    tl_router_handle(tl_routes, context, request);
}

void tl_api_too_large(void *context, struct tl_request *request)
{
    const struct tl_api *api = context;
    struct tl_refusal refusal;
    tl_refuse(&refusal, TL_REFUSAL_TOO_LARGE, "A body may have at most %llu bytes",
              (unsigned long long)api->config->http.max_body);
    tl_router_refuse(tl_routes, request, &refusal);
}

void tl_api_settled(struct tl_api *api, struct tl_local_queue *queue,
                    struct tl_pending_command *pending, const struct tl_pending_result *result)
{
    struct tl_subscribers *subscribers = tl_local_queue_subscribers(queue);
    tl_holds_settle(api->holds, pending, result);
    if (pending->kind == TL_COMMAND_JOIN && result->end == TL_PENDING_APPLIED &&
        tl_place_seq(result->place) != 0 && subscribers != NULL)
        tl_subscribers_numbered(subscribers, pending->visitor, result->place, tl_clock_ms());
}

struct tl_queues *tl_api_queues(const struct tl_api *api)
{
    return api->queues;
}

struct tl_holds *tl_api_holds(const struct tl_api *api)
{
    return api->holds;
}
