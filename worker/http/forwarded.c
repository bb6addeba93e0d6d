/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "worker/http/forwarded.h"

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
