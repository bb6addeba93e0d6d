/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/net.h"
#include "common/line/placemap.h"
#include "worker/http/clients.h"

enum { SITE_SHARE = 4 };

struct tl_clients {
    uint64_t most;
    struct tl_placemap counts;                    /* the hash of a prefix -> how many */
    unsigned char key[crypto_shorthash_KEYBYTES]; /* random, so that no client can choose a prefix
                                                     that has another one's hash */
};

struct tl_clients *tl_clients_new(uint64_t most)
{
    struct tl_clients *clients = calloc(1, sizeof(*clients));
    if (clients == NULL)
        return NULL;
    clients->most = most;
    crypto_shorthash_keygen(clients->key);
    return clients;
}

void tl_clients_free(struct tl_clients **clients)
{
    if (*clients == NULL)
        return;
    tl_placemap_clear(&(*clients)->counts);
    free(*clients);
    *clients = NULL;
}

/* Never 0. */
static uint64_t hash_of(const struct tl_clients *clients, const struct tl_prefix *prefix)
{
    unsigned char bytes[crypto_shorthash_BYTES];
    uint64_t hash;
    crypto_shorthash(bytes, (const unsigned char *)prefix, sizeof(*prefix), clients->key);
    memcpy(&hash, bytes, sizeof(hash));
    return hash | 1;
}

static struct tl_client client_of(const struct tl_clients *clients,
                                  const struct tl_address *address)
{
    const struct tl_prefix customer = tl_prefix_of(address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    const struct tl_prefix site = tl_prefix_of(address, TL_PREFIX_IPV4, TL_PREFIX_IPV6_SITE);
    struct tl_client client = {.customer = hash_of(clients, &customer)};
    if (!tl_prefix_equal(&customer, &site)) /* IPv4 has one level */
        client.site = hash_of(clients, &site);
    return client;
}

static uint64_t count_of(const struct tl_clients *clients, uint64_t hash)
{
    uint64_t count = 0;
    (void)tl_placemap_get(&clients->counts, hash, &count);
    return count;
}

bool tl_clients_may(const struct tl_clients *clients, const struct tl_address *address)
{
    if (clients->most == 0)
        return true;
    const struct tl_client client = client_of(clients, address);
    return count_of(clients, client.customer) < clients->most &&
           (client.site == 0 || count_of(clients, client.site) / SITE_SHARE < clients->most);
}

/* Sets hash to 0 when out of memory. */
static void count_up(struct tl_clients *clients, uint64_t *hash)
{
    if (*hash != 0 && !tl_placemap_put(&clients->counts, *hash, count_of(clients, *hash) + 1))
        *hash = 0;
}

static void count_down(struct tl_clients *clients, uint64_t hash)
{
    uint64_t count = count_of(clients, hash);
    if (count > 1)
        (void)tl_placemap_put(&clients->counts, hash, count - 1); /* overwriting needs no memory */
    else if (count == 1)
        (void)tl_placemap_remove(&clients->counts, hash, NULL);
}

struct tl_client tl_clients_enter(struct tl_clients *clients, const struct tl_address *address)
{
    if (clients->most == 0)
        return (struct tl_client){0};
    struct tl_client client = client_of(clients, address);
    count_up(clients, &client.customer);
    count_up(clients, &client.site);
    return client;
}

void tl_clients_leave(struct tl_clients *clients, struct tl_client client)
{
    count_down(clients, client.customer);
    count_down(clients, client.site);
}

/* ---- X-Forwarded-For ---- */

enum { WORD_MAX = 64 };

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes the last word off the list of *length characters. "" for an empty one, NULL for one that is
 * too long for an address. */
static const char *take_last(const char *list, size_t *length, char word[WORD_MAX])
{
    size_t end = *length, begin = end;
    while (begin > 0 && list[begin - 1] != ',')
        begin--;
    *length = begin > 0 ? begin - 1 : 0;
    while (end > begin && is_space(list[end - 1]))
        end--;
    while (begin < end && is_space(list[begin]))
        begin++;
    if (end - begin >= WORD_MAX)
        return NULL;
    memcpy(word, list + begin, end - begin);
    word[end - begin] = '\0';
    return word;
}

void tl_forwarded_walk(const struct tl_networks *proxies, const char *const *lines, size_t n,
                       struct tl_address *address)
{
    while (n-- > 0) {
        size_t length = strlen(lines[n]);
        while (length > 0) {
            char memory[WORD_MAX];
            const char *word;
            struct tl_address named;
            if (!tl_networks_contain(proxies, address))
                return;
            word = take_last(lines[n], &length, memory);
            if (word != NULL && word[0] == '\0')
                continue;
            if (word == NULL || !tl_address_parse(word, &named))
                return;
            *address = named;
        }
    }
}
