/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "worker/api/cookie.h"
#include "worker/api/shown_place.h"

/* What has the code: the place's number with its visitor. */
static void name_of(const char *visitor, uint64_t seq, char name[TL_REFERENCE_NAME_MAX])
{
    snprintf(name, TL_REFERENCE_NAME_MAX, "%s %" PRIu64, visitor, seq);
}

void tl_shown_place_write(const struct tl_api *api, const char *queue, const char *visitor,
                          tl_place place, char text[TL_REFERENCE_MAX])
{
    char name[TL_REFERENCE_NAME_MAX];
    name_of(visitor, tl_place_seq(place), name);
    tl_reference_write(api->secrets.keyring, queue, name, text);
}

bool tl_shown_place_differs(const struct tl_api *api, const struct tl_request *request,
                            const char *queue)
{
    const char *shown = tl_request_query(request, "place");
    const struct tl_keyring *keyring = api->secrets.keyring;
    struct tl_ticket ticket;
    char place[TL_REFERENCE_NAME_MAX], unnumbered[TL_REFERENCE_NAME_MAX];
    uint64_t number;
    bool sent;
    if (shown == NULL || !tl_cookie_ticket(api, request, queue, &ticket, &sent))
        return false;
    name_of(ticket.visitor, tl_place_seq(ticket.place), place);
    name_of(ticket.visitor, 0, unnumbered); /* the page was made before the place had its number */
    return !tl_reference_read(shown, &number) ||
           (!tl_reference_is_of(keyring, queue, place, number) &&
            !tl_reference_is_of(keyring, queue, unnumbered, number));
}
