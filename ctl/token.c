#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "common/auth/token.h"
#include "common/base/quote.h"
#include "common/base/units.h"
#include "common/store/tokens.h"

#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/session.h"
#include "ctl/table.h"

/* ---- make ---- */

/* Writes the token to standard output, alone, so that a shell can take it; the rest is for people.
 */
static void show(const char *name, enum tl_token_role role, const char *text)
{
    printf("%s\n", text);
    fprintf(stderr, "This is the token of %s, role %s. It is not kept and cannot be shown again.\n",
            name, tl_token_role_name(role));
}

static bool make(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                 struct tl_error *err)
{
    char text[TL_TOKEN_TEXT_MAX + 1], quoted[80];
    struct tl_token_key key = {0};
    struct tl_token_hash hash;
    enum tl_token_role role;
    const char *name = options->words[0];
    struct tl_redis *redis = tl_ctl_session_redis(session, NULL, err);
    if (redis == NULL)
        return false;
    if (!tl_token_role_parse(options->words[1], &role)) {
        tl_quote(options->words[1], quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID, "%s is no role: viewer, operator or admin",
                            quoted);
    }
    if (!tl_token_name_valid(name, strlen(name)))
        name = ""; /* refused below, with a sentence; a long one would not fit into the text */
    else if (!tl_token_key_load(session->config->secrets.token_key, true, &key, err))
        return false;
    tl_token_make(name, text);
    tl_token_hash(&key, text, strlen(text), &hash);
    bool ok = tl_tokens_add(redis, session->config->redis.key_prefix, name, role, &hash,
                            &session->actor, err);
    if (ok)
        show(name, role, text);
    sodium_memzero(text, sizeof(text));
    sodium_memzero(&key, sizeof(key));
    return ok;
}

/* ---- list ---- */

static bool write_json(const struct tl_token_record *list, size_t n)
{
    json_t *tokens = json_array();
    bool ok = tokens != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        char made[TL_UNITS_TEXT_MAX], used[TL_UNITS_TEXT_MAX];
        tl_time_format(list[i].made_at_ms, made, sizeof(made));
        tl_time_format(list[i].last_used_ms, used, sizeof(used));
        json_t *object =
            json_pack("{s:s, s:s, s:s, s:s, s:s*}", "name", list[i].name, "role",
                      tl_token_role_name(list[i].role), "made_at", made, "made_by", list[i].made_by,
                      "last_used", list[i].last_used_ms != 0 ? used : NULL);
        ok = json_array_append_new(tokens, object) == 0;
    }
    if (!ok) {
        json_decref(tokens);
        return false;
    }
    return tl_json_write(json_pack("{s:o}", "tokens", tokens));
}

static bool write_table(const struct tl_token_record *list, size_t n)
{
    static const struct tl_column columns[] = {
        {"NAME", false}, {"ROLE", false}, {"MADE", false}, {"BY", false}, {"LAST USED", false}};
    struct tl_text out = {0};
    if (n == 0) {
        printf("there are no tokens\n");
        return true;
    }
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    if (table == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        char made[TL_UNITS_TEXT_MAX], used[TL_UNITS_TEXT_MAX] = "never";
        tl_time_format(list[i].made_at_ms, made, sizeof(made));
        if (list[i].last_used_ms != 0)
            tl_time_format(list[i].last_used_ms, used, sizeof(used));
        tl_table_text(table, list[i].name);
        tl_table_text(table, tl_token_role_name(list[i].role));
        tl_table_text(table, made);
        tl_table_text(table, list[i].made_by);
        tl_table_text(table, used);
    }
    tl_table_write(table, &out);
    bool ok = !out.failed;
    if (ok)
        fputs(out.data, stdout);
    tl_text_free(&out);
    tl_table_free(&table);
    return ok;
}

static bool list(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                 struct tl_error *err)
{
    size_t n;
    struct tl_token_record *tokens;
    struct tl_redis *redis = tl_ctl_session_redis(session, NULL, err);
    if (redis == NULL ||
        !tl_tokens_list(redis, session->config->redis.key_prefix, &tokens, &n, err))
        return false;
    bool ok = options->json ? write_json(tokens, n) : write_table(tokens, n);
    free(tokens);
    return ok || tl_error_set(err, TL_ERR_NOMEM, "no memory to show %zu tokens", n);
}

/* ---- revoke ---- */

static bool revoke(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                   struct tl_error *err)
{
    bool found;
    char quoted[80];
    const char *name = options->words[0];
    struct tl_redis *redis = tl_ctl_session_redis(session, NULL, err);
    if (redis == NULL || !tl_tokens_revoke(redis, session->config->redis.key_prefix, name,
                                           &session->actor, &found, err))
        return false;
    if (!found) {
        tl_quote(name, quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID, "there is no token %s", quoted);
    }
    printf("the token %s is revoked\n", name);
    return true;
}

static int run(const struct tl_ctl_options *options,
               bool (*action)(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                              struct tl_error *err))
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool ok = action(&session, options, &err);
    tl_ctl_session_close(&session);
    return ok ? TL_EXIT_OK : tl_ctl_fail(tl_ctl_status_of(&err), &err);
}

int tl_command_token_make(const struct tl_ctl_options *options)
{
    return run(options, make);
}

int tl_command_token_list(const struct tl_ctl_options *options)
{
    return run(options, list);
}

int tl_command_token_revoke(const struct tl_ctl_options *options)
{
    return run(options, revoke);
}
