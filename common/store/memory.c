/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/memory.h"
#include "common/store/reply.h"

/* A level begins at one share of the limit and ends below another. */
enum { FULL_PERCENT = 95, NOT_FULL_PERCENT = 90, SCARCE_PERCENT = 80, ROOM_PERCENT = 75 };

void tl_store_memory_parse(const char *info, struct tl_store_memory *memory)
{
    const char *policy = tl_info_field(info, "maxmemory_policy");
    *memory =
        (struct tl_store_memory){.used = strtoull(tl_info_field(info, "used_memory"), NULL, 10),
                                 .limit = strtoull(tl_info_field(info, "maxmemory"), NULL, 10)};
    memory->appends = tl_info_field(info, "aof_enabled")[0] == '1';
    memory->not_written =
        strncmp(tl_info_field(info, "aof_last_write_status"), "err", 3) == 0 ||
        strncmp(tl_info_field(info, "aof_last_bgrewrite_status"), "err", 3) == 0 ||
        strncmp(tl_info_field(info, "rdb_last_bgsave_status"), "err", 3) == 0;
    snprintf(memory->policy, sizeof(memory->policy), "%.*s", (int)strcspn(policy, "\r\n"), policy);
}

bool tl_store_memory_read(struct tl_redis *redis, struct tl_store_memory *memory,
                          struct tl_error *err)
{
    struct tl_reply *reply = tl_ask(redis, err, "INFO", "memory", "persistence", NULL);
    if (reply == NULL)
        return false;
    tl_store_memory_parse(tl_reply_string(reply, NULL), memory);
    tl_reply_free(reply);
    return true;
}

unsigned tl_store_memory_percent(const struct tl_store_memory *memory)
{
    return memory->limit > 0 ? (unsigned)((double)memory->used / (double)memory->limit * 100) : 0;
}

enum tl_memory_level tl_store_memory_level(const struct tl_store_memory *memory,
                                           enum tl_memory_level was)
{
    unsigned percent = tl_store_memory_percent(memory);
    if (percent >= (was == TL_MEMORY_FULL ? NOT_FULL_PERCENT : FULL_PERCENT))
        return TL_MEMORY_FULL;
    return percent >= (was == TL_MEMORY_ROOM ? SCARCE_PERCENT : ROOM_PERCENT) ? TL_MEMORY_SCARCE
                                                                              : TL_MEMORY_ROOM;
}

bool tl_store_memory_evicts(const struct tl_store_memory *memory)
{
    return memory->policy[0] != '\0' && strcmp(memory->policy, "noeviction") != 0;
}
