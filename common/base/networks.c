#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/networks.h"
#include "common/base/units.h"

enum { TEXT_MAX = 80, IPV4_OFFSET_BITS = 96 };

struct network {
    struct tl_address address;
    unsigned bits;
};

struct tl_networks {
    size_t n;
    struct network list[];
};

static const unsigned char ipv4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_ipv4(const struct tl_address *address)
{
    return memcmp(address->bytes, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

static bool parse_bare(const char *text, struct tl_address *address)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, text, &v4) == 1) {
        memcpy(address->bytes, ipv4_prefix, sizeof(ipv4_prefix));
        memcpy(address->bytes + sizeof(ipv4_prefix), &v4, sizeof(v4));
        return true;
    }
    return inet_pton(AF_INET6, text, address->bytes) == 1;
}

bool tl_address_parse(const char *text, struct tl_address *address)
{
    char bare[TEXT_MAX];
    size_t length = strlen(text);
    if (length >= sizeof(bare))
        return false;
    memcpy(bare, text, length + 1);
    if (parse_bare(bare, address))
        return true;
    char *colon = strrchr(bare, ':');
    if (bare[0] == '[') {
        char *end = strchr(bare, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
        *end = '\0';
        return parse_bare(bare + 1, address);
    }
    if (colon == NULL || strchr(bare, '.') == NULL)
        return false;
    *colon = '\0';
    return parse_bare(bare, address);
}

bool tl_address_from(const struct sockaddr *socket, struct tl_address *address)
{
    if (socket->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)socket;
        memcpy(address->bytes, ipv4_prefix, sizeof(ipv4_prefix));
        memcpy(address->bytes + sizeof(ipv4_prefix), &v4->sin_addr, sizeof(v4->sin_addr));
        return true;
    }
    if (socket->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)socket;
    memcpy(address->bytes, &v6->sin6_addr, sizeof(address->bytes));
    return true;
}

static bool parse_network(char *word, struct network *network, struct tl_error *err)
{
    char *slash = strchr(word, '/');
    uint64_t bits = 0;
    if (slash != NULL)
        *slash = '\0';
    bool ok = parse_bare(word, &network->address);
    unsigned offset = ok && is_ipv4(&network->address) ? IPV4_OFFSET_BITS : 0;
    network->bits = 128;
    if (ok && slash != NULL) {
        ok = tl_number_parse(slash + 1, &bits, NULL) && bits + offset <= 128;
        network->bits = (unsigned)bits + offset;
    }
    return ok || tl_error_set(err, TL_ERR_INVALID,
                              "\"%.60s\" is not an IP address or network such as 10.0.0.0/8", word);
}

struct tl_networks *tl_networks_parse(const char *text, struct tl_error *err)
{
    char *copy = strdup(text);
    size_t most = strlen(text) / 2 + 1; /* a word and a space each */
    struct tl_networks *networks = calloc(1, sizeof(*networks) + most * sizeof(networks->list[0]));
    bool ok = copy != NULL && networks != NULL;
    if (!ok)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a list of networks");
    char *rest = NULL;
    for (char *word = ok ? strtok_r(copy, " ", &rest) : NULL; ok && word != NULL;
         word = strtok_r(NULL, " ", &rest))
        ok = parse_network(word, &networks->list[networks->n++], err);
    free(copy);
    if (!ok)
        tl_networks_free(&networks);
    return networks;
}

void tl_networks_free(struct tl_networks **networks)
{
    free(*networks);
    *networks = NULL;
}

bool tl_networks_contain(const struct tl_networks *networks, const struct tl_address *address)
{
    for (size_t i = 0; i < networks->n; i++) {
        const struct network *network = &networks->list[i];
        size_t bytes = network->bits / 8;
        unsigned rest = network->bits % 8;
        if (memcmp(network->address.bytes, address->bytes, bytes) != 0)
            continue;
        if (rest == 0 || (network->address.bytes[bytes] ^ address->bytes[bytes]) >> (8 - rest) == 0)
            return true;
    }
    return false;
}

struct tl_address tl_address_site(const struct tl_address *address)
{
    struct tl_address site = *address;
    if (!is_ipv4(address))
        memset(site.bytes + 8, 0, 8);
    return site;
}
