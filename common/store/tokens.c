/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/auth/hex.h"
#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/store/tokens.h"

#define USED_AGAIN_MS "60000" /* a use is noted once in this time */

/* Calls the function with these words, as many as are not NULL. */
static bool call(struct tl_redis *redis, const char *key_prefix, const char *const words[4],
                 const struct tl_actor *actor, int64_t *answer, struct tl_error *err)
{
    char tokens[TL_KEY_MAX], changes[TL_KEY_MAX];
    struct tl_args args = {0};
    tl_call_begin_on(&args, TL_FN_TOKENS, 2);
    tl_args_strs(&args, tl_key_common(key_prefix, TL_COMMON_TOKENS, tokens),
                 tl_key_common(key_prefix, TL_COMMON_CHANGES, changes), NULL);
    for (size_t i = 0; i < 4 && words[i] != NULL; i++)
        tl_args_str(&args, words[i]);
    tl_actor_append(actor, &args);
    struct tl_reply *reply = tl_call_once(redis, &args, err);
    if (reply == NULL)
        return false;
    *answer = tl_reply_integer(reply);
    tl_reply_free(reply);
    return true;
}

bool tl_tokens_add(struct tl_redis *redis, const char *key_prefix, const char *name,
                   enum tl_token_role role, const struct tl_token_hash *hash,
                   const struct tl_actor *actor, struct tl_error *err)
{
    char digits[TL_TOKEN_HASH_DIGITS + 1];
    int64_t answer;
    if (!tl_token_name_valid(name, strlen(name)))
        return tl_error_set(err, TL_ERR_INVALID,
                            "the name of a token begins with a-z or 0-9, holds only a-z 0-9 . _ - "
                            "and at most %d of them, and is not \"%s\"",
                            TL_TOKEN_NAME_MAX, TL_ADMIN_NAME);
    tl_hex_format(hash->bytes, sizeof(hash->bytes), digits);
    const char *const words[4] = {"add", name, tl_token_role_name(role), digits};
    if (!call(redis, key_prefix, words, actor, &answer, err))
        return false;
    if (answer == TL_TOKEN_EXISTS)
        return tl_error_set(err, TL_ERR_INVALID,
                            "there is a token named %s already; revoke it, or choose another name",
                            name);
    if (answer == TL_TOKEN_FULL)
        return tl_error_set(err, TL_ERR_INVALID, "there are %d tokens already; revoke some",
                            TL_TOKENS_MAX);
    return true;
}

bool tl_tokens_revoke(struct tl_redis *redis, const char *key_prefix, const char *name,
                      const struct tl_actor *actor, bool *found, struct tl_error *err)
{
    int64_t answer;
    const char *const words[4] = {"revoke", name};
    if (!call(redis, key_prefix, words, actor, &answer, err))
        return false;
    *found = answer == TL_TOKEN_DONE;
    return true;
}

bool tl_tokens_used(struct tl_redis *redis, const char *key_prefix, const char *name,
                    struct tl_error *err)
{
    int64_t answer;
    const char *const words[4] = {"used", name, USED_AGAIN_MS};
    return call(redis, key_prefix, words, &(struct tl_actor){0}, &answer, err);
}

/* ---- reading ---- */

/* False when the record is damaged; *memory is false when there was none to read it. */
static bool read_record(const char *name, const struct tl_reply *value,
                        struct tl_token_record *token, bool *memory)
{
    size_t length;
    json_error_t problem;
    const char *text = tl_reply_string(value, &length), *role = "", *hash = "", *made_by = "";
    json_int_t made_at = 0, last_used = 0;
    json_t *object = json_loadb(text, length, 0, &problem);
    enum json_error_code code = object == NULL ? json_error_code(&problem) : json_error_unknown;
    /* Without memory, jansson names no other reason. */
    *memory = object != NULL || (code != json_error_unknown && code != json_error_out_of_memory);
    if (object == NULL)
        return false;
    *token = (struct tl_token_record){0};
    bool ok = json_unpack(object, "{s:s, s:s, s:I, s:s, s?I}", "role", &role, "hash", &hash,
                          "made_at", &made_at, "made_by", &made_by, "last_used", &last_used) == 0 &&
              tl_token_role_parse(role, &token->role) &&
              tl_hex_parse(hash, strlen(hash), token->hash.bytes, sizeof(token->hash.bytes)) &&
              tl_token_name_valid(name, strlen(name));
    snprintf(token->name, sizeof(token->name), "%s", name);
    snprintf(token->made_by, sizeof(token->made_by), "%s", made_by);
    token->made_at_ms = made_at;
    token->last_used_ms = last_used;
    json_decref(object);
    return ok;
}

static bool no_memory(struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOMEM, "no memory to read the tokens");
}

bool tl_tokens_find(struct tl_redis *redis, const char *key_prefix, const char *name,
                    struct tl_token_record *token, bool *found, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    bool memory = true;
    struct tl_reply *reply =
        tl_ask(redis, err, "HGET", tl_key_common(key_prefix, TL_COMMON_TOKENS, key), name, NULL);
    if (reply == NULL)
        return false;
    *found = tl_reply_type(reply) == TL_REPLY_STRING && read_record(name, reply, token, &memory);
    tl_reply_free(reply);
    return memory || no_memory(err);
}

static int compare(const void *a, const void *b)
{
    const struct tl_token_record *one = a, *other = b;
    return strcmp(one->name, other->name);
}

bool tl_tokens_list(struct tl_redis *redis, const char *key_prefix, struct tl_token_record **list,
                    size_t *n, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    bool memory = true;
    struct tl_reply *reply =
        tl_ask(redis, err, "HGETALL", tl_key_common(key_prefix, TL_COMMON_TOKENS, key), NULL);
    if (reply == NULL)
        return false;
    size_t most = tl_reply_count(reply) / 2;
    *n = 0;
    *list = calloc(most > 0 ? most : 1, sizeof(**list));
    for (size_t i = 0; *list != NULL && memory && i < most; i++) {
        const char *name = tl_reply_text(reply, 2 * i);
        if (read_record(name, tl_reply_at(reply, 2 * i + 1), &(*list)[*n], &memory))
            (*n)++;
    }
    tl_reply_free(reply);
    if (*list == NULL || !memory) {
        free(*list);
        *list = NULL;
        return no_memory(err);
    }
    qsort(*list, *n, sizeof(**list), compare);
    return true;
}

bool tl_tokens_check(struct tl_redis *redis, const char *key_prefix, const struct tl_token_key *key,
                     const char *text, size_t length, enum tl_token_role *role,
                     struct tl_token_record *token, struct tl_error *err)
{
    char name[TL_TOKEN_NAME_MAX + 1];
    struct tl_token_record record = {0};
    struct tl_token_hash hash;
    bool found = false;
    *role = TL_TOKEN_NOTHING;
    if (!tl_token_parse(text, length, name))
        return true;
    if (!tl_tokens_find(redis, key_prefix, name, &record, &found, err))
        return false;
    tl_token_hash(key, text, length, &hash);
    if (!tl_token_hash_equal(&hash, &record.hash) || !found)
        return true;
    *role = record.role;
    if (token != NULL)
        *token = record;
    return true;
}
