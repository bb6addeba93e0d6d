/* SPDX-License-Identifier: Apache-2.0 */
/* A struct tl_reply is a redisReply under a name of our own. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "common/store/reply.h"

static const redisReply *inner(const struct tl_reply *reply)
{
    return (const redisReply *)(const void *)reply;
}

void tl_reply_free(struct tl_reply *reply)
{
    if (reply != NULL)
        freeReplyObject(reply);
}

enum tl_reply_type tl_reply_type(const struct tl_reply *reply)
{
    if (reply == NULL)
        return TL_REPLY_NIL;
    switch (inner(reply)->type) {
    case REDIS_REPLY_NIL:
        return TL_REPLY_NIL;
    case REDIS_REPLY_INTEGER:
        return TL_REPLY_INTEGER;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
        return TL_REPLY_STRING;
    case REDIS_REPLY_ARRAY:
        return TL_REPLY_ARRAY;
    default:
        return TL_REPLY_OTHER;
    }
}

int64_t tl_reply_integer(const struct tl_reply *reply)
{
    enum tl_reply_type type = tl_reply_type(reply);
    if (type == TL_REPLY_INTEGER)
        return inner(reply)->integer;
    if (type == TL_REPLY_STRING)
        return strtoll(inner(reply)->str, NULL, 10);
    return 0;
}

const char *tl_reply_string(const struct tl_reply *reply, size_t *length)
{
    bool is_string = tl_reply_type(reply) == TL_REPLY_STRING;
    if (length != NULL)
        *length = is_string ? (size_t)inner(reply)->len : 0;
    return is_string ? inner(reply)->str : "";
}

size_t tl_reply_count(const struct tl_reply *reply)
{
    return tl_reply_type(reply) == TL_REPLY_ARRAY ? (size_t)inner(reply)->elements : 0;
}

const struct tl_reply *tl_reply_at(const struct tl_reply *reply, size_t i)
{
    if (i >= tl_reply_count(reply))
        return NULL;
    return (const struct tl_reply *)(const void *)inner(reply)->element[i];
}

const struct tl_reply *tl_reply_of(const struct tl_reply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < tl_reply_count(reply); i += 2)
        if (strcmp(tl_reply_text(reply, i), name) == 0)
            return tl_reply_at(reply, i + 1);
    return NULL;
}

uint64_t tl_reply_number(const struct tl_reply *reply, size_t i)
{
    return (uint64_t)tl_reply_signed(reply, i);
}

int64_t tl_reply_signed(const struct tl_reply *reply, size_t i)
{
    return tl_reply_integer(tl_reply_at(reply, i));
}

const char *tl_reply_text(const struct tl_reply *reply, size_t i)
{
    return tl_reply_string(tl_reply_at(reply, i), NULL);
}

const char *tl_info_field(const char *info, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = info; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1;
    }
    return "";
}
