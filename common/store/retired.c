/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/retired.h"
#include "common/base/log.h"
#include "common/store/keys.h"
#include "common/store/reply.h"

bool tl_retired_read(struct tl_redis *redis, const char *key_prefix, const char *queue, bool *away,
                     struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_keys keys;
    struct tl_args args = {0};
    tl_keys_init(&keys, key_prefix, queue);
    tl_args_strs(&args, "HGET", tl_key(&keys, TL_KEY_RETIRED, key), "away", NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    *away = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    return true;
}

void tl_retired_warn(const char *queue)
{
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue},
           "this queue of the configuration was deleted by an operator and stays away; take it out "
           "of the file, or create it again: `tellerline queue create %s`",
           queue);
}
