/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/token.h"
#include "common/control/call.h"
#include "common/store/tokens.h"

void tl_handle_token_list(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_token_record *tokens = NULL;
    size_t n = 0;
    if (!tl_tokens_list(call->redis, call->control->config->redis.key_prefix, &tokens, &n, &err)) {
        tl_call_fail(call, &err);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < n; i++) {
        json_t *token = json_pack("{s:s, s:s, s:o, s:s, s:o}", "name", tokens[i].name, "role",
                                  tl_token_role_name(tokens[i].role), "made_at",
                                  tl_call_time(tokens[i].made_at_ms), "made_by", tokens[i].made_by,
                                  "last_used_at", tl_call_time(tokens[i].last_used_ms));
        if (json_array_append_new(list, token) == 0)
            continue;
        json_decref(list);
        list = NULL;
    }
    free(tokens);
    tl_call_answer(call, 200, json_pack("{s:o}", "tokens", list));
}

/* Makes the token's text and keeps its hash in the store. */
static void make(struct tl_control_call *call, const char *name, enum tl_token_role role)
{
    const struct tl_config *config = call->control->config;
    struct tl_token_key key;
    struct tl_token_hash hash;
    char text[TL_TOKEN_TEXT_MAX + 1];
    struct tl_error err = {0};
    if (config->secrets.token_key[0] == '\0') {
        tl_call_refuse(call, 409, "There is no key of tokens: secrets.token_key is empty");
        return;
    }
    if (!tl_token_key_load(config->secrets.token_key, true, &key, &err)) {
        tl_call_refuse(call, 500, "%s", err.text);
        return;
    }
    tl_token_make(name, text);
    tl_token_hash(&key, text, strlen(text), &hash);
    if (tl_tokens_add(call->redis, config->redis.key_prefix, name, role, &hash,
                      call->request->actor, &err))
        tl_call_answer(call, 201,
                       json_pack("{s:s, s:s, s:s}", "name", name, "role", tl_token_role_name(role),
                                 "token", text));
    else if (err.kind == TL_ERR_INVALID)
        tl_call_refuse(call, 409, "%s", err.text);
    else
        tl_call_fail(call, &err);
    sodium_memzero(&key, sizeof(key));
    sodium_memzero(text, sizeof(text));
}

void tl_handle_token_make(struct tl_control_call *call)
{
    const char *name = NULL;
    const char *role_name = NULL;
    enum tl_token_role role;
    if (!tl_call_members(call, "name", "role", NULL) || !tl_call_text(call, "name", true, &name) ||
        !tl_call_text(call, "role", true, &role_name))
        return;
    if (!tl_token_name_valid(name, strlen(name)))
        tl_call_refuse(call, 422,
                       "name: a token's name begins with a-z or 0-9, holds only a-z 0-9 . _ -, has "
                       "at most %d characters and is not \"%s\"",
                       TL_TOKEN_NAME_MAX, TL_ADMIN_NAME);
    else if (!tl_token_role_parse(role_name, &role))
        tl_call_refuse(call, 422, "role: one of viewer, operator, admin");
    else
        make(call, name, role);
}

void tl_handle_token_revoke(struct tl_control_call *call)
{
    struct tl_error err = {0};
    bool found = false;
    if (!tl_call_members(call, NULL, NULL))
        return;
    if (!tl_tokens_revoke(call->redis, call->control->config->redis.key_prefix, call->name,
                          call->request->actor, &found, &err)) {
        tl_call_fail(call, &err);
    } else if (!found) {
        char quoted[80];
        tl_quote(call->name, quoted, sizeof(quoted));
        tl_call_refuse(call, 404, "there is no token %s", quoted);
    } else {
        tl_call_answer(call, 200, json_pack("{s:s, s:b}", "name", call->name, "revoked", 1));
    }
}
