/* SPDX-License-Identifier: Apache-2.0 */
/* The way into the dashboard, and keys of sites. */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/secret_file.h"

#include "ctl/calls/calls.h"

enum {
    KEY_BYTES = 32,
    NAME_MAX_BYTES = 32,
};

/* ---- the dashboard ---- */

/* The admin listener of this machine, and the token in its file. */
static bool find_here(const struct tl_config *config, struct tl_ctl_options *options,
                      char server[TL_CTL_LOCAL_MAX], struct tl_error *err)
{
    const struct tl_listen *listen = &config->admin.worker;
    if (listen->port <= 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "admin.worker has no fixed port; say where the admin listener is with "
                            "--server");
    tl_ctl_local_url(listen, server);
    options->server = server;
    if (options->token_file == NULL && getenv("TELLERLINE_TOKEN") == NULL)
        options->token_file = config->secrets.admin_token;
    return true;
}

/* The address goes to standard output, alone, so that a shell can take it; the rest is for people.
 */
static void show(const char *server, const json_t *answer)
{
    const char *url = tl_json_text(answer, "url");
    size_t length = url[0] == '/' ? strlen(server) : 0;
    while (length > 0 && server[length - 1] == '/')
        length--;
    printf("%.*s%s\n", (int)length, server, url);
    fflush(stdout);
    fputs("Open it in a browser within ten minutes. It signs in once.\n", stderr);
}

int tl_command_dashboard(const struct tl_ctl_options *options)
{
    char server[TL_CTL_LOCAL_MAX];
    struct tl_error err = {0};
    struct tl_ctl_options there = *options;
    const struct tl_config *config = NULL;
    json_t *answer = NULL;
    bool found = options->server != NULL;
    if (!found) {
        config = tl_config_load(options->config, &err);
        found = config != NULL && find_here(config, &there, server, &err);
    }
    const struct tl_ctl_ask ask = {.operation = "createLink"};
    int status =
        found ? tl_ctl_call_once(&there, &ask, &answer) : tl_ctl_fail(TL_EXIT_FAILED, &err);
    tl_config_free(&config);
    if (status == TL_EXIT_OK && options->output != TL_OUTPUT_TABLE)
        tl_data_write(options->output, json_incref(answer));
    else if (status == TL_EXIT_OK)
        show(there.server, answer);
    json_decref(answer);
    return status;
}

/* ---- keys ---- */

struct kind {
    const char *name;
    const char *format; /* of the line: name and key */
    const char *what;
    const char *setting;
};

static const struct kind kinds[] = {
    {"api", "%s %s", "an API key", "secrets.api_keys"},
    {"invite", "%s HS256 %s", "a key that verifies invites", "secrets.invite_keys"},
};

/* [A-Za-z0-9][A-Za-z0-9._-]{0,31}: as both files take it. */
static bool name_valid(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length <= NAME_MAX_BYTES && name[0] != '.' && name[0] != '_' &&
           name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               length;
}

/* False when the file has a key of this name already, or cannot be read. A missing file has none.
 */
static bool name_free(const char *path, const char *name, struct tl_error *err)
{
    size_t length;
    bool missing = false, used = false;
    char *line, *bytes = tl_secret_read(path, &length, &missing, err);
    if (bytes == NULL)
        return missing;
    for (char *rest = bytes; !used && tl_secret_line(&rest, &line, NULL);) {
        size_t n = strcspn(line, " \t");
        used = n == strlen(name) && memcmp(line, name, n) == 0;
    }
    tl_secret_free(&bytes, length);
    return !used || tl_error_set(err, TL_ERR_INVALID,
                                 "%s has a key named %s already; choose another name", path, name);
}

/* Adds the line to the file; path "-": writes it only. */
static bool make(const struct kind *kind, const char *name, const char *path, struct tl_error *err)
{
    unsigned char key[KEY_BYTES];
    char digits[2 * KEY_BYTES + 1], line[2 * KEY_BYTES + NAME_MAX_BYTES + 16];
    bool only_line = strcmp(path, "-") == 0;
    if (!only_line && !name_free(path, name, err))
        return false;
    randombytes_buf(key, sizeof(key));
    sodium_bin2hex(digits, sizeof(digits), key, sizeof(key));
    snprintf(line, sizeof(line), kind->format, name, digits);
    bool ok = only_line || tl_secret_append(path, line, kind->what, err);
    if (ok)
        printf("%s\n", only_line ? line : digits);
    if (ok && !only_line)
        fprintf(stderr, "Added %s named %s to %s. Send SIGHUP to the workers.\n", kind->what, name,
                path);
    sodium_memzero(key, sizeof(key));
    sodium_memzero(digits, sizeof(digits));
    sodium_memzero(line, sizeof(line));
    return ok;
}

static bool make_key(const struct tl_ctl_options *options, struct tl_error *err)
{
    const struct kind *kind = NULL;
    const char *name = options->words[1];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(options->words[0], kinds[i].name) == 0)
            kind = &kinds[i];
    if (kind == NULL)
        return tl_error_set(err, TL_ERR_INVALID,
                            "there are API keys and invite keys: api or invite");
    if (!name_valid(name))
        return tl_error_set(err, TL_ERR_INVALID,
                            "the name of a key begins with a letter or digit, and holds at most %d "
                            "of A-Z a-z 0-9 . _ -",
                            NAME_MAX_BYTES);
    if (options->n_words == 3)
        return make(kind, name, options->words[2], err);
    const struct tl_config *config = tl_config_load(options->config, err);
    if (config == NULL)
        return false;
    const char *path = kind == &kinds[0] ? config->secrets.api_keys : config->secrets.invite_keys;
    bool ok = path[0] != '\0' ? make(kind, name, path, err)
                              : tl_error_set(err, TL_ERR_INVALID,
                                             "%s names no file; set it, or give a FILE (- only "
                                             "writes the line)",
                                             kind->setting);
    tl_config_free(&config);
    return ok;
}

int tl_command_key_create(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    if (make_key(options, &err))
        return TL_EXIT_OK;
    return tl_ctl_fail(tl_ctl_status_of(&err), &err);
}
