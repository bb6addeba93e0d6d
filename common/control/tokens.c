/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/token.h"
#include "common/control/call.h"
#include "common/store/tokens.h"

json_t *tl_handle_token_list(struct tl_control_call *call)
{
    struct tl_token_record *tokens = NULL;
    size_t n = 0;
    struct tl_list_page page;
    if (!tl_list_page_read(call, &page) ||
        !tl_tokens_list(call->redis, call->config->redis.key_prefix, &tokens, &n, &call->err))
        return NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (tl_list_page_takes(&page, tokens[i].name))
            tl_list_add(&list, json_pack("{s:s, s:s, s:o, s:s, s:o}", "name", tokens[i].name,
                                         "role", tl_token_role_name(tokens[i].role), "created_at",
                                         tl_call_time(tokens[i].made_at_ms), "created_by",
                                         tokens[i].made_by, "last_used_at",
                                         tl_call_time(tokens[i].last_used_ms)));
    free(tokens);
    return tl_list_page_to_json(&page, true, "tokens", list);
}

/* Creates the token's text and keeps its hash in the store. */
static json_t *create(struct tl_control_call *call, const char *name, enum tl_token_role role)
{
    const struct tl_config *config = call->config;
    struct tl_token_key key;
    struct tl_token_hash hash;
    char text[TL_TOKEN_TEXT_MAX + 1];
    json_t *body = NULL;
    if (config->secrets.token_key[0] == '\0')
        return tl_call_refuse(call, TL_REFUSAL_CONFLICT,
                              "There is no key of tokens: secrets.token_key is empty");
    if (!tl_token_key_load(config->secrets.token_key, true, &key, &call->err))
        return tl_call_refuse(call, TL_REFUSAL_INTERNAL, "%s", call->err.text);
    tl_token_make(name, text);
    tl_token_hash(&key, text, strlen(text), &hash);
    call->status = 201;
    if (tl_tokens_add(call->redis, config->redis.key_prefix, name, role, &hash,
                      call->request->actor, &call->err))
        body = json_pack("{s:s, s:s, s:s}", "name", name, "role", tl_token_role_name(role), "token",
                         text);
    else if (call->err.kind == TL_ERR_INVALID) /* "there are 100 tokens", "there is a token" */
        tl_call_refuse(call,
                       strncmp(call->err.text, "there are ", 10) == 0 ? TL_REFUSAL_LIMIT
                                                                      : TL_REFUSAL_CONFLICT,
                       "%s", call->err.text);
    sodium_memzero(&key, sizeof(key));
    sodium_memzero(text, sizeof(text));
    return body;
}

json_t *tl_handle_token_create(struct tl_control_call *call)
{
    const char *name = NULL;
    const char *role_name = NULL;
    enum tl_token_role role;
    if (!tl_call_body(call, "name", &name, "role", &role_name, NULL))
        return NULL;
    if (!tl_token_name_valid(name, strlen(name)))
        return tl_call_refuse(
            call, TL_REFUSAL_INVALID,
            "name: a token's name begins with a-z or 0-9, holds only a-z 0-9 . _ -, has "
            "at most %d characters and is not \"%s\"",
            TL_TOKEN_NAME_MAX, TL_ADMIN_NAME);
    if (!tl_token_role_parse(role_name, &role))
        return tl_call_refuse(call, TL_REFUSAL_INVALID, "role: one of viewer, operator, admin");
    return create(call, name, role);
}

json_t *tl_handle_token_revoke(struct tl_control_call *call)
{
    bool found = false;
    char quoted[80];
    if (!tl_call_body(call, NULL) ||
        !tl_tokens_revoke(call->redis, call->config->redis.key_prefix, call->name,
                          call->request->actor, &found, &call->err))
        return NULL;
    tl_quote(call->name, quoted, sizeof(quoted));
    return found ? json_pack("{s:s, s:b}", "name", call->name, "revoked", 1)
                 : tl_call_refuse(call, TL_REFUSAL_NOT_FOUND, "there is no token %s", quoted);
}
