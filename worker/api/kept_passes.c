/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "worker/api/kept_passes.h"

enum { SLOTS = 16384 }; /* a power of two; 600 bytes each when used */

struct kept {
    uint64_t generation;
    int64_t expires;
    char id[TL_PASS_ID_MAX + 1];
    char text[];
};

struct tl_kept_passes {
    struct kept *slots[SLOTS]; /* NULL: empty */
};

struct tl_kept_passes *tl_kept_passes_new(void)
{
    return calloc(1, sizeof(struct tl_kept_passes));
}

void tl_kept_passes_clear(struct tl_kept_passes *passes)
{
    for (size_t i = 0; i < SLOTS; i++) {
        free(passes->slots[i]);
        passes->slots[i] = NULL;
    }
}

void tl_kept_passes_free(struct tl_kept_passes **passes)
{
    if (*passes == NULL)
        return;
    tl_kept_passes_clear(*passes);
    free(*passes);
    *passes = NULL;
}

/* The id is a hash already (tl_pass_id), in base64url. */
static size_t slot_of(const struct tl_pass *pass)
{
    size_t slot = 0;
    for (const char *at = pass->id; *at != '\0'; at++)
        slot = slot * 31 + (unsigned char)*at;
    return slot % SLOTS;
}

const char *tl_kept_passes_find(const struct tl_kept_passes *passes, const struct tl_pass *pass)
{
    const struct kept *kept = passes->slots[slot_of(pass)];
    bool same = kept != NULL && kept->generation == pass->generation &&
                kept->expires == pass->expires && strcmp(kept->id, pass->id) == 0;
    return same ? kept->text : NULL;
}

void tl_kept_passes_keep(struct tl_kept_passes *passes, const struct tl_pass *pass,
                         const char *text)
{
    size_t length = strlen(text);
    struct kept **slot = &passes->slots[slot_of(pass)];
    struct kept *kept = malloc(sizeof(*kept) + length + 1);
    if (kept == NULL)
        return;
    kept->generation = pass->generation;
    kept->expires = pass->expires;
    memcpy(kept->id, pass->id, sizeof(kept->id));
    memcpy(kept->text, text, length + 1);
    free(*slot);
    *slot = kept;
}
