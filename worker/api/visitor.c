#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "worker/api/visitor.h"

/* ---- credentials ---- */

const char *tl_visitor_bearer(const struct tl_request *request)
{
    const char *header = tl_request_header(request, "Authorization");
    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0)
        return NULL;
    header += 7;
    return header + strspn(header, " ");
}

bool tl_visitor_ticket(const struct tl_api *api, const struct tl_request *request,
                       const char *queue, struct tl_ticket *ticket)
{
    char cookie[16 + TL_QUEUE_NAME_MAX];
    snprintf(cookie, sizeof(cookie), "tellerline_%s", queue);
    const char *const texts[] = {tl_visitor_bearer(request), tl_request_cookie(request, cookie),
                                 tl_request_query(request, "ticket")};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i] != NULL &&
            tl_ticket_verify(api->secrets.keyring, queue, texts[i], strlen(texts[i]), ticket))
            return true;
    }
    return false;
}

bool tl_visitor_outdated(const struct tl_local_queue *queue, const struct tl_ticket *ticket)
{
    return tl_place_seq(ticket->place) != 0 &&
           ticket->generation != tl_local_queue_generation(queue);
}

/* ---- queues ---- */

struct tl_local_queue *tl_visitor_queue(const struct tl_api *api, const char *name,
                                        struct tl_refusal *refusal)
{
    struct tl_local_queue *queue = tl_queues_find(api->queues, name);
    if (queue != NULL && tl_local_queue_loaded(queue))
        return queue;
    if (api->env->draining) /* the queues are freed before the last answers are sent */
        tl_refuse(refusal, TL_REFUSAL_STOPPING, "%s", "");
    else if (queue == NULL && api->env->listed)
        tl_refuse(refusal, TL_REFUSAL_NO_QUEUE, "%s", "");
    else
        tl_refuse(refusal, TL_REFUSAL_LOADING, "%s", "");
    return NULL;
}

struct tl_local_queue *tl_visitor_of(const struct tl_api *api, const struct tl_request *request,
                                     const char *name, struct tl_ticket *ticket,
                                     struct tl_refusal *refusal)
{
    struct tl_local_queue *queue = tl_visitor_queue(api, name, refusal);
    if (queue == NULL)
        return NULL;
    if (!tl_visitor_ticket(api, request, name, ticket)) {
        tl_refuse(refusal, TL_REFUSAL_BAD_TICKET,
                  "Send it as Authorization: Bearer, as cookie, or as ?ticket=");
        return NULL;
    }
    if (tl_visitor_outdated(queue, ticket)) {
        tl_refuse(refusal, TL_REFUSAL_OLD_GENERATION, "%s", "");
        return NULL;
    }
    return queue;
}

/* ---- limits ---- */

bool tl_visitor_may_send(const struct tl_api *api, struct tl_refusal *refusal)
{
    const struct tl_queue_env *env = api->env;
    if (env->draining)
        return tl_refuse(refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (!tl_queue_env_store_up(env))
        return tl_refuse(refusal, TL_REFUSAL_STORE, "The store cannot be reached; try again");
    if (!env->can_send(env->context))
        return tl_refuse(refusal, TL_REFUSAL_BUSY,
                         "Too many commands wait to be applied; try again");
    return true;
}

/* The visitor's address: the other end of the connection; or, where that is a trusted proxy, the
 * last address in X-Forwarded-For that is not one. */
static bool visitor_address(const struct tl_api *api, const struct tl_request *request,
                            struct tl_address *address)
{
    const char *header = tl_request_header(request, "X-Forwarded-For");
    char list[512];
    if (!tl_request_peer(request, address))
        return false;
    if (header == NULL || strlen(header) >= sizeof(list))
        return true;
    memcpy(list, header, strlen(header) + 1);
    while (tl_networks_contain(api->proxies, address)) {
        char *comma = strrchr(list, ',');
        const char *last = comma != NULL ? comma + 1 : list;
        struct tl_address named;
        if (!tl_address_parse(last + strspn(last, " "), &named))
            break;
        *address = named;
        if (comma == NULL)
            break;
        *comma = '\0';
    }
    return true;
}

bool tl_visitor_may_join(struct tl_api *api, const struct tl_request *request, int64_t now_ms,
                         struct tl_refusal *refusal)
{
    struct tl_address address;
    if (!visitor_address(api, request, &address))
        return true;
    address = tl_address_site(&address);
    if (tl_limiter_allow(api->limiter, &address, now_ms))
        return true;
    return tl_refuse(refusal, TL_REFUSAL_TOO_MANY, "At most %llu a minute; please wait a little",
                     (unsigned long long)api->config->http.joins_per_minute);
}
