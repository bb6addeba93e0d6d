/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/clock.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "dispatcher/claim.h"

#define CLAIM_MAX    "1000"
#define LOG_EVERY_MS 60000

bool tl_claim_entries(struct tl_claim *claim, struct tl_redis *redis, const struct tl_keys *keys,
                      uint64_t *claimed, uint64_t *lost, struct tl_error *err)
{
    tl_call_begin(&claim->args, TL_FN_CLAIM, keys);
    tl_args_strs(&claim->args, CLAIM_MAX, TL_INGEST_CONSUMER, NULL);
    struct tl_reply *reply = tl_call(redis, &claim->args, err);
    if (reply == NULL)
        return false;
    const struct tl_log_fields fields = {.queue = keys->queue};
    const char *other = tl_reply_string(tl_reply_at(reply, 0), NULL);
    unsigned suppressed;
    if (other[0] != '\0' && tl_log_allow(&claim->log, tl_clock_ms(), LOG_EVERY_MS, &suppressed))
        tl_log(
            TL_LOG_ERROR, &fields,
            "the consumer %.64s, which is no dispatcher, read entries of the ingest stream; they "
            "are applied now, but stop that program",
            other);
    for (size_t i = 2; i < tl_reply_count(reply); i++) {
        tl_log(TL_LOG_ERROR, &fields,
               "ingest entry %s was trimmed away before it was applied: its commands are lost",
               tl_reply_string(tl_reply_at(reply, i), NULL));
        (*lost)++;
    }
    *claimed += (uint64_t)tl_reply_integer(tl_reply_at(reply, 1));
    tl_reply_free(reply);
    return true;
}

bool tl_claim_ask(struct tl_claim *claim, struct tl_redis *redis, const struct tl_keys *keys,
                  struct tl_error *err)
{
    tl_args_reset(&claim->args);
    tl_args_strs(&claim->args, "XPENDING", keys->names[TL_KEY_INGEST], TL_INGEST_GROUP, NULL);
    return tl_redis_append(redis, &claim->args, err);
}

bool tl_claim_answer(struct tl_redis *redis, bool *others, struct tl_error *err)
{
    struct tl_reply *reply = tl_redis_next(redis, err); /* [n, first, last, [[consumer, n]...]] */
    if (reply == NULL)
        return false;
    const struct tl_reply *consumers = tl_reply_at(reply, 3);
    *others = false;
    for (size_t i = 0; i < tl_reply_count(consumers); i++) {
        const char *name = tl_reply_string(tl_reply_at(tl_reply_at(consumers, i), 0), NULL);
        *others = *others || strcmp(name, TL_INGEST_CONSUMER) != 0;
    }
    tl_reply_free(reply);
    return true;
}
