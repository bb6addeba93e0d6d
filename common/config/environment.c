/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/text.h"
#include "common/config/read.h"
#include "common/config/spelling.h"
#include "common/config/value.h"
#include "common/config/yaml.h"

#define ENV_PREFIX   "TELLERLINE_"
#define ENV_QUEUES   "TELLERLINE_QUEUES"
#define ENV_WEBHOOKS "TELLERLINE_WEBHOOKS"
#define ENV_CONFIG   "TELLERLINE_CONFIG"
#define ENV_TOKEN    "TELLERLINE_TOKEN"
#define FILE_SUFFIX  "_FILE"

enum { VARIABLE_FILE_MAX = TL_YAML_BYTES_MAX };

void tl_setting_env_name(const struct tl_setting *row, char name[TL_SETTING_PATH_MAX])
{
    snprintf(name, TL_SETTING_PATH_MAX, ENV_PREFIX "%s", row->path);
    for (char *at = name; *at != '\0'; at++)
        *at = *at == '.' || *at == '-' ? '_' : (char)toupper((unsigned char)*at);
}

/* The row of the process settings with this environment name, or NULL. */
static const struct tl_setting *find_row(const char *name)
{
    char row_name[TL_SETTING_PATH_MAX];
    size_t n;
    const struct tl_setting *rows = tl_config_table(&n);
    for (size_t i = 0; i < n; i++) {
        tl_setting_env_name(&rows[i], row_name);
        if (strcmp(row_name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

/* The length of the name without _FILE at its end; 0 when it does not end so. */
static size_t length_before_suffix(const char *name)
{
    size_t length = strlen(name);
    const size_t suffix = strlen(FILE_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, FILE_SUFFIX) == 0 ? length - suffix
                                                                               : 0;
}

/* Writes the variable that is spelt most like the name, and still closer than *steps, into best. */
static void propose(const char *name, char best[TL_SETTING_PATH_MAX], size_t *steps)
{
    char row_name[TL_SETTING_PATH_MAX];
    size_t n;
    const struct tl_setting *rows = tl_config_table(&n);
    const size_t skip = strlen(ENV_PREFIX);
    for (size_t i = 0; i < n + 2; i++) {
        if (i < n)
            tl_setting_env_name(&rows[i], row_name);
        else
            snprintf(row_name, sizeof(row_name), "%s", i == n ? ENV_QUEUES : ENV_WEBHOOKS);
        if (tl_spelling_closer(name + skip, row_name + skip, steps))
            memcpy(best, row_name, sizeof(row_name));
    }
}

static bool fail_unknown(const char *name, struct tl_error *err)
{
    char best[TL_SETTING_PATH_MAX] = "";
    char quoted[64];
    size_t steps = SIZE_MAX;
    const char *suffix = "";
    propose(name, best, &steps);
    if (length_before_suffix(name) > strlen(ENV_PREFIX)) {
        char *bare = strndup(name, length_before_suffix(name));
        size_t before = steps;
        if (bare != NULL)
            propose(bare, best, &steps);
        free(bare);
        suffix = steps < before ? FILE_SUFFIX : "";
    }
    tl_quote(name, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID,
                        "environment: unknown variable %s%s%s%s%s; names with " ENV_PREFIX
                        " are settings, see the configuration's documentation",
                        quoted, *best != '\0' ? " (did you mean " : "", best, suffix,
                        *best != '\0' ? "?)" : "");
}

/* Does the variable hold a part of the file, in YAML? */
static bool is_yaml(const char *name)
{
    return strcmp(name, ENV_QUEUES) == 0 || strcmp(name, ENV_WEBHOOKS) == 0;
}

/* An environment on its way into a configuration. */
struct reader {
    char *const *environment;
    struct tl_config *config;
    struct tl_mistakes *mistakes;
};

static void note(const struct reader *reader, struct tl_error *err)
{
    tl_mistakes_add(reader->mistakes, "", err);
}

/* Gives the value to its setting: YAML for the queues and the webhooks (row NULL), and where it
 * begins with a brace; else its text. `name` is the variable that messages are about. */
static void apply(const struct reader *reader, const struct tl_setting *row, const char *name,
                  const char *value)
{
    struct tl_error err = {0};
    bool is_text = row != NULL && !(row->type == TL_SETTING_TEXTS && *value == '{');
    if (is_text) {
        if (!tl_setting_set(row, reader->config, value, TL_FORM_FILE, &err)) {
            tl_error_prefix(&err, "environment: %s", name);
            note(reader, &err);
        }
        return;
    }
    struct tl_yaml *root = tl_yaml_parse(name, value, strlen(value), &err);
    if (root == NULL)
        note(reader, &err);
    else if (row != NULL)
        tl_setting_read(
            &(struct tl_section){
                .source = name, .owner = "", .base = reader->config, .mistakes = reader->mistakes},
            row, root);
    else if (strncmp(name, ENV_WEBHOOKS, strlen(ENV_WEBHOOKS)) == 0)
        tl_config_read_webhooks(reader->config, name, root, reader->mistakes);
    else
        tl_config_read_queues(reader->config, name, root, reader->mistakes);
    tl_yaml_free(&root);
}

/* The file's text without the line end, to be wiped and freed; NULL on failure. */
static char *read_value(const char *path, struct tl_error *err)
{
    size_t length;
    char *text = tl_file_read("", path, VARIABLE_FILE_MAX, &length, err);
    if (text == NULL)
        return NULL;
    bool good = length <= VARIABLE_FILE_MAX
                    ? strlen(text) == length ||
                          tl_error_set(err, TL_ERR_INVALID, "%s holds a zero byte", path)
                    : tl_error_set(err, TL_ERR_INVALID, "%s is larger than %d bytes", path,
                                   VARIABLE_FILE_MAX);
    if (!good) {
        free(text);
        return NULL;
    }
    /* One line end is cut off, as editors and `echo` leave one. */
    if (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    if (length > 0 && text[length - 1] == '\r')
        text[length - 1] = '\0';
    return text;
}

/* NAME_FILE, where NAME is a setting, the queues or the webhooks: the file at `path` holds the
 * value. Another name that ends so is unknown. */
static void read_file_variable(const struct reader *reader, const char *name, const char *path)
{
    struct tl_error err = {0};
    size_t length = length_before_suffix(name);
    char *bare = strndup(name, length);
    if (bare == NULL) {
        tl_error_set(&err, TL_ERR_NOMEM, "out of memory while reading the environment");
        note(reader, &err);
        return;
    }
    const struct tl_setting *row = find_row(bare);
    char *const *twin = reader->environment; /* the variable without _FILE */
    while (*twin != NULL && (strncmp(*twin, bare, length) != 0 || (*twin)[length] != '='))
        twin++;
    char *value = NULL;
    if (row == NULL && !is_yaml(bare))
        fail_unknown(name, &err);
    else if (*twin != NULL)
        tl_error_set(&err, TL_ERR_INVALID,
                     "environment: both %s and %s are given; only one of them may be", bare, name);
    else if ((value = read_value(path, &err)) == NULL)
        tl_error_prefix(&err, "environment: %s", name);
    if (value != NULL) {
        apply(reader, row, name, value);
        explicit_bzero(value, strlen(value)); /* it may be a password */
    } else {
        note(reader, &err);
    }
    free(value);
    free(bare);
}

void tl_config_read_env(struct tl_config *config, char *const *environment,
                        struct tl_mistakes *mistakes)
{
    const struct reader reader = {environment, config, mistakes};
    for (char *const *at = environment; *at != NULL; at++) {
        const char *equals = strchr(*at, '=');
        if (equals == NULL || strncmp(*at, ENV_PREFIX, strlen(ENV_PREFIX)) != 0)
            continue;
        char *name = strndup(*at, (size_t)(equals - *at));
        if (name == NULL) {
            struct tl_error err = {0};
            tl_error_set(&err, TL_ERR_NOMEM, "out of memory while reading the environment");
            note(&reader, &err);
            return;
        }
        const struct tl_setting *row = find_row(name);
        /* Not settings: the path of the configuration, which the options read, the token of the
         * command line, and the variables of the tests, which the programs inherit. */
        bool ignored = strcmp(name, ENV_CONFIG) == 0 || strcmp(name, ENV_TOKEN) == 0 ||
                       strcmp(name, "TELLERLINE_SEED") == 0 ||
                       strncmp(name, "TELLERLINE_TEST_", 16) == 0;
        if (!ignored && (row != NULL || is_yaml(name)))
            apply(&reader, row, name, equals + 1);
        else if (!ignored)
            read_file_variable(&reader, name, equals + 1);
        free(name);
    }
}
