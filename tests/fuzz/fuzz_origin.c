/* SPDX-License-Identifier: Apache-2.0 */
/* Origins of requests, as browsers and others send them, against a list of allowed ones. Nothing
 * may crash, and only an origin of the list is in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/origin.h"

#define ALLOWED "https://shop.example http://localhost:3000"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool is_host(const struct tl_origin *origin, const char *host)
{
    return origin->host_length == strlen(host) &&
           strncasecmp(origin->host, host, origin->host_length) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct tl_origin origin;
    struct tl_error err = {0};
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (tl_origin_parse(text, &origin)) {
        require(origin.host_length > 0 && origin.port > 0 && origin.port <= 65535);
        require(origin.host > text && origin.host + origin.host_length <= text + strlen(text));
        require(tl_origin_same(&origin, &origin));
        bool shop = origin.secure && origin.port == 443 && is_host(&origin, "shop.example");
        bool local = !origin.secure && origin.port == 3000 && is_host(&origin, "localhost");
        require(tl_origins_contain(ALLOWED, &origin) == (shop || local));
    }
    require(tl_origins_valid(text, &err) || err.text[0] != '\0');
    free(text);
    return 0;
}
