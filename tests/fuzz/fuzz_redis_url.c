/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the store: any text is either refused, with a sentence, or gives parts within
 * their bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/redis_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_redis_url url;
    struct tl_error err = {0};
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (!tl_redis_url_parse(text, &url, &err)) {
        require(err.kind == TL_ERR_INVALID && err.text[0] != '\0');
    } else {
        require((url.unix_path[0] == '/') + (url.host[0] != '\0') + (url.n_sentinels > 0) == 1);
        require((url.master[0] != '\0') == (url.n_sentinels > 0));
        require(memchr(url.master, '\0', sizeof(url.master)) != NULL);
        require(memchr(url.host, '\0', sizeof(url.host)) != NULL);
        require(url.n_sentinels <= TL_SENTINELS_MAX);
        for (size_t i = 0; i < url.n_sentinels; i++) {
            require(url.sentinels[i].host[0] != '\0');
            require(memchr(url.sentinels[i].host, '\0', sizeof(url.sentinels[i].host)) != NULL);
            require(url.sentinels[i].port >= 1 && url.sentinels[i].port <= 65535);
        }
        require(memchr(url.user, '\0', sizeof(url.user)) != NULL);
        require(memchr(url.password, '\0', sizeof(url.password)) != NULL);
        require(url.port >= 1 && url.port <= 65535);
        require(url.db >= 0 && url.db <= 1000000);
        const char *scheme = url.unix_path[0] != '\0' ? "unix://"
                             : url.n_sentinels > 0    ? "+sentinel://"
                                                      : "://";
        const char *after = url.unix_path[0] != '\0' ? text : text + (url.tls ? 6 : 5);
        require(strncmp(after, scheme, strlen(scheme)) == 0);
    }
    free(text);
    return 0;
}
