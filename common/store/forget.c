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
    char next[NEXT_MAX]; /* what follows, as the last step said; "": nothing */
    uint64_t places;
};

/* One call with these words, up to NULL, among which may be `next`. */
static bool take_step(struct forgetting *self, const char *const *words, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_FORGET, self->keys);
    tl_args_str(&args, self->visitor);
    for (; *words != NULL; words++)
        tl_args_str(&args, *words);
    tl_actor_append(self->actor, &args);
    struct tl_reply *reply = tl_call_once(self->redis, &args, err);
    if (reply == NULL)
        return false;
    self->places += tl_reply_number(reply, 0);
    snprintf(self->next, sizeof(self->next), "%s", tl_reply_text(reply, 1));
    tl_reply_free(reply);
    return true;
}

static bool forget_spent(struct forgetting *self, struct tl_error *err)
{
    bool ok = true;
    snprintf(self->next, sizeof(self->next), "0");
    while (ok && self->next[0] != '\0')
        ok = take_step(self, (const char *const[]){"spent", self->next, NULL}, err);
    return ok;
}

/* Copies the stream only when the visitor is in it. */
static bool forget_in_stream(struct forgetting *self, const char *stream, struct tl_error *err)
{
    bool ok;
    self->next[0] = '\0';
    do
        ok = take_step(self, (const char *const[]){"look", stream, self->next, NULL}, err);
    while (ok && self->next[0] != '\0' && strcmp(self->next, "found") != 0);
    if (!ok || self->next[0] == '\0')
        return ok;
    unsigned char bytes[NAME_BYTES];
    char name[2 * NAME_BYTES + 1];
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(name, sizeof(name), bytes, sizeof(bytes));
    self->next[0] = '\0';
    do
        ok = take_step(self, (const char *const[]){"copy", stream, self->next, name, NULL}, err);
    while (ok && self->next[0] != '\0');
    return ok;
}

static bool record(struct forgetting *self, struct tl_error *err)
{
    char places[24];
    snprintf(places, sizeof(places), "%" PRIu64, self->places);
    return take_step(self, (const char *const[]){"record", places, NULL}, err);
}

bool tl_forget(struct tl_redis *redis, const struct tl_keys *keys, const char *visitor,
               const struct tl_actor *actor, uint64_t *places, struct tl_error *err)
{
    struct forgetting self = {.redis = redis, .keys = keys, .visitor = visitor, .actor = actor};
    bool ok = take_step(&self, (const char *const[]){"sets", NULL}, err) &&
              forget_spent(&self, err) && forget_in_stream(&self, "journal", err) &&
              forget_in_stream(&self, "changes", err) && (self.places == 0 || record(&self, err));
    *places = self.places;
    return ok;
}
