/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/store/forget.h"
#include "common/store/library.h"
#include "common/store/reply.h"

enum { NEXT_MAX = 64, NAME_BYTES = 8 };

/* The steps of one visitor. */
struct forgetting {
    struct tl_redis *redis;
    const struct tl_keys *keys;
    const char *visitor;
    const struct tl_actor *actor;
    struct tl_args args;
    uint64_t places;
};

/* One call. `next` gets what follows. */
static bool take_step(struct forgetting *self, const char *const arguments[], size_t n,
                      char next[NEXT_MAX], struct tl_error *err)
{
    tl_call_begin(&self->args, TL_FN_FORGET, self->keys);
    tl_args_str(&self->args, self->visitor);
    for (size_t i = 0; i < n; i++)
        tl_args_str(&self->args, arguments[i]);
    tl_actor_append(self->actor, &self->args);
    struct tl_reply *reply = tl_call(self->redis, &self->args, err);
    if (reply == NULL)
        return false;
    self->places += tl_reply_number(reply, 0);
    snprintf(next, NEXT_MAX, "%s", tl_reply_text(reply, 1));
    tl_reply_free(reply);
    return true;
}

static bool forget_spent(struct forgetting *self, struct tl_error *err)
{
    char cursor[NEXT_MAX] = "0";
    do {
        char next[NEXT_MAX];
        if (!take_step(self, (const char *const[]){"spent", cursor}, 2, next, err))
            return false;
        memcpy(cursor, next, sizeof(cursor));
    } while (cursor[0] != '\0');
    return true;
}

/* Copies the stream only when the visitor is in it. */
static bool forget_in_stream(struct forgetting *self, const char *stream, struct tl_error *err)
{
    char at[NEXT_MAX] = "";
    char next[NEXT_MAX];
    do {
        if (!take_step(self, (const char *const[]){"look", stream, at}, 3, next, err))
            return false;
        memcpy(at, next, sizeof(at));
    } while (at[0] != '\0' && strcmp(at, "found") != 0);
    if (at[0] == '\0')
        return true;
    unsigned char bytes[NAME_BYTES];
    char name[2 * NAME_BYTES + 1];
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(name, sizeof(name), bytes, sizeof(bytes));
    at[0] = '\0';
    do {
        if (!take_step(self, (const char *const[]){"copy", stream, at, name}, 4, next, err))
            return false;
        memcpy(at, next, sizeof(at));
    } while (at[0] != '\0');
    return true;
}

static bool record(struct forgetting *self, struct tl_error *err)
{
    char next[NEXT_MAX], places[24];
    snprintf(places, sizeof(places), "%" PRIu64, self->places);
    return take_step(self, (const char *const[]){"record", places}, 2, next, err);
}

bool tl_forget(struct tl_redis *redis, const struct tl_keys *keys, const char *visitor,
               const struct tl_actor *actor, uint64_t *places, struct tl_error *err)
{
    char next[NEXT_MAX];
    struct forgetting self = {.redis = redis, .keys = keys, .visitor = visitor, .actor = actor};
    bool ok = take_step(&self, (const char *const[]){"sets"}, 1, next, err) &&
              forget_spent(&self, err) && forget_in_stream(&self, "journal", err) &&
              forget_in_stream(&self, "changes", err) && (self.places == 0 || record(&self, err));
    tl_args_free(&self.args);
    *places = self.places;
    return ok;
}
