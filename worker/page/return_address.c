/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/page/return_address.h"

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

bool tl_address_append(char address[TL_ADDRESS_MAX], const char *text, bool part)
{
    static const char hex[] = "0123456789ABCDEF";
    const char *encoded = part ? " \"<>^`{|}&=+%#?" : " \"<>^`{|}";
    size_t n = strlen(address);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ' || c == 127 || c == '\\' || n + 3 >= TL_ADDRESS_MAX)
            return false;
        if (c < 128 && strchr(encoded, c) == NULL) {
            address[n++] = (char)c;
        } else {
            address[n++] = '%';
            address[n++] = hex[c >> 4];
            address[n++] = hex[c & 15];
        }
        address[n] = '\0';
    }
    return true;
}
