/* SPDX-License-Identifier: Apache-2.0 */
/* X-Forwarded-For, a line of input for each line of the header: several lines are the same list as
 * one line with commas, and nobody but a trusted proxy is believed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/http/clients.h"

enum { LINES_MAX = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static struct tl_address walk(const char *trusted, const char *const *lines, size_t n)
{
    struct tl_error err = {0};
    struct tl_networks *proxies = tl_networks_parse(trusted, &err);
    struct tl_address address;
    require(proxies != NULL && tl_address_parse("10.0.0.1", &address));
    tl_forwarded_walk(proxies, lines, n, &address);
    tl_networks_free(&proxies);
    return address;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *lines[LINES_MAX];
    char *text = malloc(size + 1), *joined = malloc(size + 1);
    char *rest = text;
    size_t n = 0;
    struct tl_address peer;
    require(text != NULL && joined != NULL && tl_address_parse("10.0.0.1", &peer));
    memcpy(text, data, size);
    text[size] = '\0';
    while (n < LINES_MAX && rest != NULL) {
        lines[n] = strsep(&rest, "\n");
        size_t at = (size_t)(lines[n++] - text);
        snprintf(joined + at, size + 1 - at, "%s%s", lines[n - 1],
                 rest != NULL && n < LINES_MAX ? "," : "");
    }
    const char *const one_line = joined;
    struct tl_address distrusted = walk("192.0.2.0/24", lines, n);
    struct tl_address client = walk("10.0.0.0/8 fd00::/8", lines, n);
    struct tl_address again = walk("10.0.0.0/8 fd00::/8", &one_line, 1);
    require(memcmp(&distrusted, &peer, sizeof(peer)) == 0);
    require(memcmp(&client, &again, sizeof(client)) == 0);
    free(text);
    free(joined);
    return 0;
}
