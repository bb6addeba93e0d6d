#include "worker/page/return_address.h"
#include "common/base/origin.h"

bool tl_address_valid(const char *address)
{
    struct tl_origin origin;
    return tl_origin_parse(address, &origin);
}

bool tl_return_address_allowed(const char *address, const char *target_url,
                               const char *const *allowed, size_t n_allowed)
{
    struct tl_origin wanted;
    struct tl_origin known;
    if (address == NULL || !tl_origin_parse(address, &wanted))
        return false;
    if (target_url != NULL && tl_origin_parse(target_url, &known) &&
        tl_origin_same(&wanted, &known))
        return true;
    for (size_t i = 0; i < n_allowed; i++) {
        if (tl_origin_parse(allowed[i], &known) && tl_origin_same(&wanted, &known))
            return true;
    }
    return false;
}
