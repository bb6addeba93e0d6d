/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
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
    length +=
        format_networks(&signs->joins, "joins", text + length, TL_SIGNS_TEXT_MAX - (size_t)length);
    (void)format_networks(&signs->failures, "failed", text + length,
                          TL_SIGNS_TEXT_MAX - (size_t)length);
}
