/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/networks.h"

struct tl_networks {
    size_t n;
    struct tl_prefix list[];
};

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
        ok = tl_prefix_parse(word, &networks->list[networks->n++], err);
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

bool tl_networks_overlap(const struct tl_networks *networks, const struct tl_prefix *prefix)
{
    for (size_t i = 0; i < networks->n; i++) {
        if (tl_prefix_contains(&networks->list[i], &prefix->address) ||
            tl_prefix_contains(prefix, &networks->list[i].address))
            return true;
    }
    return false;
}

bool tl_networks_contain(const struct tl_networks *networks, const struct tl_address *address)
{
    for (size_t i = 0; i < networks->n; i++) {
        if (tl_prefix_contains(&networks->list[i], address))
            return true;
    }
    return false;
}
