/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/config/queue_settings.h"
#include "worker/visit/cookie.h"
#include "worker/visit/cross_site.h"

enum {
    LIFE_MIN_S = 86400,
    LIFE_MAX_S = 400 * 86400, /* browsers keep none for longer */
};

#define STEM "tellerline_"
/* No queue has a name with capitals. */
#define PROBE STEM "COOKIES"

static const char *const prefixes[] = {"__Host-", ""};
enum { NAMES = sizeof(prefixes) / sizeof(prefixes[0]) };

struct cookie_name {
    char text[24 + TL_QUEUE_NAME_MAX];
};

static struct cookie_name name_of(const char *prefix, const char *queue)
{
    struct cookie_name name;
    size_t length = tl_text_copy(name.text, sizeof(name.text), prefix);
    length += tl_text_copy(name.text + length, sizeof(name.text) - length, STEM);
    (void)tl_text_copy(name.text + length, sizeof(name.text) - length, queue);
    return name;
}

void tl_cookie_write(const struct tl_worker *worker, const struct tl_request *request,
                     const char *queue, const char *ticket, int64_t life_s,
                     char text[TL_COOKIE_TEXT_MAX])
{
    bool https = tl_cross_site_https(worker, request);
    snprintf(text, TL_COOKIE_TEXT_MAX,
             "%s" STEM "%s=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Lax%s",
             https ? prefixes[0] : "", queue, ticket, (long long)life_s, https ? "; Secure" : "");
}

int64_t tl_cookie_life_s(const struct tl_queue_settings *settings, int64_t store_ms)
{
    int64_t session_ms = tl_queue_session_longest_ms(settings);
    int64_t opens_in_ms = settings->opens_at_ms > store_ms ? settings->opens_at_ms - store_ms : 0;
    int64_t life_s =
        (opens_in_ms + settings->waiting_ttl_ms + settings->claim_ttl_ms + session_ms) / 1000;
    if (life_s < LIFE_MIN_S)
        return LIFE_MIN_S;
    return life_s < LIFE_MAX_S ? life_s : LIFE_MAX_S;
}

struct search {
    const struct tl_worker *worker;
    const char *queue;
    struct tl_ticket *ticket;
    bool sent;
};

static bool is_valid(void *context, const char *value)
{
    struct search *search = context;
    search->sent = true;
    return tl_secrets_ticket(&search->worker->secrets, search->queue, value,
                             tl_queue_env_store_ms(search->worker->env, tl_clock_ms()),
                             search->ticket);
}

bool tl_cookie_ticket(const struct tl_worker *worker, const struct tl_request *request,
                      const char *queue, struct tl_ticket *ticket, bool *sent)
{
    struct search search = {.worker = worker, .queue = queue, .ticket = ticket};
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

void tl_cookie_write_probe(const struct tl_worker *worker, const struct tl_request *request,
                           char text[TL_COOKIE_TEXT_MAX])
{
    snprintf(text, TL_COOKIE_TEXT_MAX, PROBE "=1; Path=/q/; HttpOnly; SameSite=Lax%s",
             tl_cross_site_https(worker, request) ? "; Secure" : "");
}

bool tl_cookie_works(const struct tl_request *request, const char *queue)
{
    const char *probe = tl_request_cookie(request, PROBE);
    return tl_cookie_sent(request, queue) || (probe != NULL && strcmp(probe, "1") == 0);
}

/* ---- the place of a page ---- */

/* What has the code: the place's number with its visitor. */
static void place_name(const char *visitor, uint64_t seq, char name[TL_REFERENCE_NAME_MAX])
{
    snprintf(name, TL_REFERENCE_NAME_MAX, "%s %" PRIu64, visitor, seq);
}

void tl_shown_place_write(const struct tl_worker *worker, const char *queue, const char *visitor,
                          tl_place place, char text[TL_REFERENCE_MAX])
{
    char name[TL_REFERENCE_NAME_MAX];
    place_name(visitor, tl_place_seq(place), name);
    tl_reference_write(worker->secrets.keyring, queue, name, text);
}

bool tl_shown_place_differs(const struct tl_worker *worker, const struct tl_request *request,
                            const char *queue)
{
    const char *shown = tl_request_query(request, "place");
    const struct tl_keyring *keyring = worker->secrets.keyring;
    struct tl_ticket ticket;
    char place[TL_REFERENCE_NAME_MAX], unnumbered[TL_REFERENCE_NAME_MAX];
    uint64_t number;
    bool sent;
    if (shown == NULL || !tl_cookie_ticket(worker, request, queue, &ticket, &sent))
        return false;
    place_name(ticket.visitor, tl_place_seq(ticket.place), place);
    place_name(ticket.visitor, 0,
               unnumbered); /* the page was made before the place had its number */
    return !tl_reference_read(shown, &number) ||
           (!tl_reference_is_of(keyring, queue, place, number) &&
            !tl_reference_is_of(keyring, queue, unnumbered, number));
}
