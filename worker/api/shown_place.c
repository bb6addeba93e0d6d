#include <string.h>

#include <sodium.h>

#include "worker/api/cookie.h"
#include "worker/api/shown_place.h"

static const uint64_t code_mask = (UINT64_C(1) << TL_REFERENCE_BITS) - 1;

/* What a code stands for: the place's number, or a digest of the visitor. */
static uint64_t number_of(const char *visitor, uint64_t seq)
{
    unsigned char hash[crypto_generichash_BYTES_MIN];
    uint64_t digest = 0;
    if (seq != 0)
        return seq;
    (void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)visitor, strlen(visitor),
                             NULL, 0);
    for (size_t i = 0; i < sizeof(digest); i++)
        digest = digest << 8 | hash[i];
    return digest;
}

void tl_shown_place_write(const struct tl_api *api, const char *queue, const char *visitor,
                          tl_place place, char text[TL_REFERENCE_MAX])
{
    tl_reference_write(api->secrets.keyring, queue, number_of(visitor, tl_place_seq(place)), text);
}

bool tl_shown_place_differs(const struct tl_api *api, const struct tl_request *request,
                            const char *queue)
{
    const char *shown = tl_request_query(request, "place");
    struct tl_ticket ticket;
    uint64_t numbers[TL_KEYRING_MAX];
    bool sent;
    if (shown == NULL || !tl_cookie_ticket(api, request, queue, &ticket, &sent))
        return false;
    const uint64_t of_place = number_of(ticket.visitor, tl_place_seq(ticket.place)) & code_mask;
    /* The page was made before the place had its number. */
    const uint64_t of_visitor = number_of(ticket.visitor, 0) & code_mask;
    const size_t n = tl_reference_read(api->secrets.keyring, queue, shown, numbers);
    for (size_t i = 0; i < n; i++) {
        if (numbers[i] == of_place || numbers[i] == of_visitor)
            return false;
    }
    return true;
}
