/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/signs.h"

void tl_sign_networks_add(struct tl_sign_networks *networks, const struct tl_prefix *prefix,
                          uint64_t count)
{
    size_t at = networks->n;
    while (at > 0 && networks->list[at - 1].count < count)
        at--;
    if (at == TL_SIGNS_NETWORKS)
        return;
    if (networks->n < TL_SIGNS_NETWORKS)
        networks->n++;
    memmove(&networks->list[at + 1], &networks->list[at],
            (networks->n - at - 1) * sizeof(networks->list[0]));
    networks->list[at] = (struct tl_sign_network){.prefix = *prefix, .count = count};
}

/* ---- text: "FAILED SHARED FAST", then " joins PREFIX COUNT" and " failed PREFIX COUNT" ---- */

static const char joins_word[] = "joins", failed_word[] = "failed";

static int format_networks(const struct tl_sign_networks *networks, const char *word, char *text,
                           size_t size)
{
    int length = 0;
    char prefix[TL_PREFIX_TEXT_MAX];
    for (size_t i = 0; i < networks->n; i++) {
        tl_prefix_format(&networks->list[i].prefix, prefix);
        length += snprintf(text + length, size - (size_t)length, " %s %s %" PRIu64, word, prefix,
                           networks->list[i].count);
    }
    return length;
}

/* The longest: three numbers of 20 digits, six networks of 6 + 52 + 22 bytes. */
void tl_signs_format(const struct tl_signs *signs, char text[TL_SIGNS_TEXT_MAX])
{
    int length = snprintf(text, TL_SIGNS_TEXT_MAX, "%" PRIu64 " %" PRIu64 " %" PRIu64,
                          signs->failed, signs->shared, signs->fast);
    length += format_networks(&signs->joins, joins_word, text + length,
                              TL_SIGNS_TEXT_MAX - (size_t)length);
    (void)format_networks(&signs->failures, failed_word, text + length,
                          TL_SIGNS_TEXT_MAX - (size_t)length);
}

static bool parse_number(const char *word, uint64_t *number)
{
    char *end;
    if (word == NULL || word[0] < '0' || word[0] > '9' || strlen(word) > 15)
        return false;
    *number = strtoull(word, &end, 10);
    return *end == '\0';
}

bool tl_signs_parse(const char *text, struct tl_signs *signs)
{
    char copy[TL_SIGNS_TEXT_MAX];
    char *rest = NULL;
    *signs = (struct tl_signs){0};
    if (strlen(text) >= sizeof(copy))
        return false;
    memcpy(copy, text, strlen(text) + 1);
    if (!parse_number(strtok_r(copy, " ", &rest), &signs->failed) ||
        !parse_number(strtok_r(NULL, " ", &rest), &signs->shared) ||
        !parse_number(strtok_r(NULL, " ", &rest), &signs->fast))
        return false;
    for (const char *kind; (kind = strtok_r(NULL, " ", &rest)) != NULL;) {
        struct tl_prefix prefix;
        uint64_t count;
        const char *network = strtok_r(NULL, " ", &rest);
        bool joins = strcmp(kind, joins_word) == 0;
        if ((!joins && strcmp(kind, failed_word) != 0) || network == NULL ||
            !tl_prefix_parse(network, &prefix, NULL) ||
            !parse_number(strtok_r(NULL, " ", &rest), &count))
            return false;
        tl_sign_networks_add(joins ? &signs->joins : &signs->failures, &prefix, count);
    }
    return true;
}
