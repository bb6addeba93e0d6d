/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/control/store_stats.h"
#include "common/store/args.h"
#include "common/store/memory.h"
#include "common/store/reply.h"

bool tl_store_stats_ask(struct tl_redis *redis, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_str(&args, "INFO");
    bool ok = tl_redis_append(redis, &args, err);
    tl_args_free(&args);
    return ok;
}

static json_t *number_of(const char *info, const char *name)
{
    const char *value = tl_info_field(info, name);
    return *value != '\0' ? json_integer(strtoll(value, NULL, 10)) : json_null();
}

static json_t *text_of(const char *info, const char *name)
{
    const char *value = tl_info_field(info, name);
    return json_stringn(value, strcspn(value, "\r\n"));
}

/* Did the last write to the disk succeed, in each of the ways that are on? */
static bool is_kept(const char *info)
{
    bool aof = strncmp(tl_info_field(info, "aof_enabled"), "1", 1) == 0;
    return strncmp(tl_info_field(info, "rdb_last_bgsave_status"), "ok", 2) == 0 &&
           (!aof || strncmp(tl_info_field(info, "aof_last_write_status"), "ok", 2) == 0);
}

json_t *tl_store_stats_receive(struct tl_redis *redis, int64_t took_us, struct tl_error *err)
{
    struct tl_reply *reply = tl_redis_next(redis, err);
    if (reply == NULL)
        return NULL;
    const char *info = tl_reply_string(reply, NULL);
    json_t *stats =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:I}", "version",
                  text_of(info, "redis_version"), "role", text_of(info, "role"), "uptime_s",
                  number_of(info, "uptime_in_seconds"), "memory_used",
                  number_of(info, "used_memory"), "memory_limit", number_of(info, "maxmemory"),
                  "aof", strncmp(tl_info_field(info, "aof_enabled"), "1", 1) == 0, "persists",
                  is_kept(info), "clients", number_of(info, "connected_clients"), "replicas",
                  number_of(info, "connected_slaves"), "latency_us", (json_int_t)took_us);
    tl_reply_free(reply);
    if (stats == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the numbers of the store");
    return stats;
}
