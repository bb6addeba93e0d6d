/* SPDX-License-Identifier: Apache-2.0 */
/* Values from visitors' headers and addresses: languages, return addresses, IP addresses,
 * durations. The first byte selects the kind. Nothing may crash, and accepted values must be valid.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/net.h"
#include "common/base/units.h"
#include "worker/page/languages.h"
#include "worker/page/page_address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_return_address(const char *text)
{
    static const char allowed[] = "https://other.example http://127.0.0.1:8090/";
    if (!tl_return_address_allowed(text, "https://shop.example/checkout", allowed))
        return;
    /* The open redirect that this function must prevent. */
    if (strncmp(text, "https://shop.example", 20) != 0 &&
        strncmp(text, "https://other.example", 21) != 0 &&
        strncmp(text, "http://127.0.0.1:8090", 21) != 0 && strncasecmp(text, "http", 4) != 0)
        abort();
    if (strchr(text, '\\') != NULL || strchr(text, '\n') != NULL ||
        tl_address_or_null(text) == NULL)
        abort();
}

static void try_networks(const char *text)
{
    struct tl_error err;
    struct tl_address address = {{0}};
    struct tl_networks *networks = tl_networks_parse(text, &err);
    (void)tl_address_parse(text, &address);
    if (networks != NULL)
        (void)tl_networks_contain(networks, &address);
    tl_networks_free(&networks);
}

static void try_languages(const char *text)
{
    static struct tl_languages *languages;
    if (languages == NULL)
        languages = tl_languages_new(NULL, NULL);
    if (languages == NULL || tl_languages_choose(languages, NULL, NULL, text) == NULL ||
        tl_languages_choose(languages, text, text, NULL) == NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    int64_t ms;
    if (text == NULL)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 4) {
    case 0:
        try_languages(text);
        break;
    case 1:
        try_return_address(text);
        break;
    case 2:
        try_networks(text);
        break;
    default:
        if (tl_duration_parse(text, &ms, NULL) && ms < 0)
            abort();
        break;
    }
    free(text);
    return 0;
}
