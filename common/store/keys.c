/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/store/keys.h"

static const char *const texts[] = {TL_KEY_TEXTS};
static const char *const common_texts[] = {TL_COMMON_TEXTS};

void tl_keys_init(struct tl_keys *keys, const char *prefix, const char *queue)
{
    char start[TL_KEY_MAX];
    snprintf(start, sizeof(start), "%s{%s}:", prefix, queue);
    const size_t length = strlen(start);
    (void)tl_text_copy(keys->queue, sizeof(keys->queue), queue);
    for (size_t i = 0; i < sizeof(keys->names) / sizeof(keys->names[0]); i++) {
        memcpy(keys->names[i], start, length);
        (void)tl_text_copy(keys->names[i] + length, TL_KEY_MAX - length, texts[i]);
    }
}

bool tl_keys_of(struct tl_keys *keys, const char *prefix, const char *queue, struct tl_error *err)
{
    char quoted[96];
    if (!tl_queue_name_valid(queue, strlen(queue))) {
        tl_quote(queue, quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID,
                            "%s is not a valid queue name; a name begins with a-z or 0-9 and holds "
                            "only a-z 0-9 . _ -",
                            quoted);
    }
    tl_keys_init(keys, prefix, queue);
    return true;
}

uint64_t tl_presence_chunk(uint64_t seq, uint64_t *offset)
{
    if (offset != NULL)
        *offset = seq % TL_PRESENCE_CHUNK;
    return seq / TL_PRESENCE_CHUNK;
}

bool tl_keys_fail_missing(const struct tl_keys *keys, struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOQUEUE, "queue %s does not exist", keys->queue);
}

const char *tl_key(const struct tl_keys *keys, enum tl_key key, char name[TL_KEY_MAX])
{
    const char *state = keys->names[TL_KEY_STATE];
    snprintf(name, TL_KEY_MAX, "%.*s%s", (int)(strlen(state) - strlen(texts[TL_KEY_STATE])), state,
             texts[key]);
    return name;
}

const char *tl_key_common(const char *prefix, enum tl_common_key key, char name[TL_KEY_MAX])
{
    const char *queues = common_texts[TL_COMMON_QUEUES];
    if (key == TL_COMMON_QUEUES)
        snprintf(name, TL_KEY_MAX, "%s%s", prefix, queues);
    else
        snprintf(name, TL_KEY_MAX, "%s%s{%s%s}", prefix, common_texts[key], prefix, queues);
    return name;
}

void tl_keys_seen(const struct tl_keys *keys, int64_t bucket, uint64_t chunk, char name[TL_KEY_MAX])
{
    size_t n = strlen(tl_key(keys, TL_KEY_SEEN, name));
    if (chunk == 0)
        snprintf(name + n, TL_KEY_MAX - n, "%" PRId64, bucket);
    else
        snprintf(name + n, TL_KEY_MAX - n, "%" PRId64 ":%" PRIu64, bucket, chunk);
}

void tl_keys_lease(const char *queue, const char *prefix, const char *role, char name[TL_KEY_MAX])
{
    snprintf(name, TL_KEY_MAX, "%s{%s}:%s", prefix, queue, role);
}
