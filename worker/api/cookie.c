#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/api/cookie.h"
#include "worker/api/cross_site.h"

/* The cookie outlives a closed browser, not the event. */
enum { MAX_AGE_S = 86400 };

static const char *const prefixes[] = {"__Host-", ""};
enum { NAMES = sizeof(prefixes) / sizeof(prefixes[0]) };

struct cookie_name {
    char text[24 + TL_QUEUE_NAME_MAX];
};

static struct cookie_name name_of(const char *prefix, const char *queue)
{
    struct cookie_name name;
    snprintf(name.text, sizeof(name.text), "%stellerline_%s", prefix, queue);
    return name;
}

void tl_cookie_write(const struct tl_api *api, const struct tl_request *request, const char *queue,
                     const char *ticket, char text[TL_COOKIE_TEXT_MAX])
{
    bool https = tl_cross_site_https(api, request);
    snprintf(text, TL_COOKIE_TEXT_MAX, "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%s",
             name_of(https ? prefixes[0] : "", queue).text, ticket, MAX_AGE_S,
             https ? "; Secure" : "");
}

struct search {
    const struct tl_api *api;
    const char *queue;
    struct tl_ticket *ticket;
    bool sent;
};

static bool is_valid(void *context, const char *value)
{
    struct search *search = context;
    search->sent = true;
    return tl_secrets_ticket(&search->api->secrets, search->queue, value,
                             tl_queue_env_store_ms(search->api->env, tl_clock_ms()),
                             search->ticket);
}

bool tl_cookie_ticket(const struct tl_api *api, const struct tl_request *request, const char *queue,
                      struct tl_ticket *ticket, bool *sent)
{
    struct search search = {.api = api, .queue = queue, .ticket = ticket};
    bool found = false;
    for (size_t i = 0; i < NAMES && !found; i++)
        found =
            tl_request_accept_cookie(request, name_of(prefixes[i], queue).text, is_valid, &search);
    *sent = search.sent;
    return found;
}

bool tl_cookie_sent(const struct tl_request *request, const char *queue)
{
    for (size_t i = 0; i < NAMES; i++) {
        if (tl_request_cookie(request, name_of(prefixes[i], queue).text) != NULL)
            return true;
    }
    return false;
}
