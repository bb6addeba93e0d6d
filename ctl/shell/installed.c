/* SPDX-License-Identifier: Apache-2.0 */
/* The system that a package installed. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/shell/shell.h"

bool tl_installed_counts(const struct tl_ctl_command *command)
{
    return (command->options & TL_OPTION_CONFIG) != 0 &&
           (command->options & (TL_OPTION_PROCESSES | TL_OPTION_PLAN)) == 0;
}

/* Is the setting of this variable in the environment: by itself, or as VARIABLE_FILE? */
static bool is_said(const char *variable)
{
    char other[128];
    size_t length = strlen(variable);
    bool is_file = length > 5 && strcmp(variable + length - 5, "_FILE") == 0;
    snprintf(other, sizeof(other), "%.*s%s", (int)(is_file ? length - 5 : length), variable,
             is_file ? "" : "_FILE");
    return getenv(variable) != NULL || getenv(other) != NULL;
}

/* Takes away quotes and backslashes, as systemd.exec(5) reads an EnvironmentFile=. */
static void unquote(char *value)
{
    const char *from = value;
    char *to = value, quote = *from == '"' || *from == '\'' ? *from++ : '\0';
    for (; *from != quote && *from != '\0'; from++) {
        bool escapes = quote == '\0' || (quote == '"' && strchr("\"\\`$", from[1]) != NULL);
        if (*from == '\\' && from[1] != '\0' && escapes)
            from++;
        *to++ = *from;
    }
    *to = '\0';
}

/* Cuts a line into name and value. Returns the value; NULL: it sets no setting. */
static char *cut_line(char *line, char **name)
{
    *name = line + strspn(line, " \t");
    char *value = strchr(*name, '=');
    if (value == NULL || strncmp(*name, "TELLERLINE_", strlen("TELLERLINE_")) != 0)
        return NULL;
    *value++ = '\0';
    value += strspn(value, " \t");
    size_t length = strcspn(value, "\n");
    while (length > 0 && isspace((unsigned char)value[length - 1]))
        length--;
    value[length] = '\0';
    unquote(value);
    return value;
}

/* Reads the names of a file that nothing has set before, in lines of NAME=VALUE. */
static bool read_new(FILE *file, struct tl_text *lines)
{
    char *line = NULL, *name;
    size_t size = 0;
    while (getline(&line, &size, file) >= 0) {
        const char *value = cut_line(line, &name);
        if (value != NULL && !is_said(name))
            tl_text_append(lines, "%s=%s\n", name, value);
    }
    free(line);
    return !ferror(file) && !lines->failed;
}

bool tl_installed_environment(const char *path, struct tl_error *err)
{
    struct tl_text lines = {0};
    char *rest = NULL;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT || tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    bool ok = read_new(file, &lines);
    /* Only now, so that a later line replaces an earlier one, but nothing that was set before. */
    char *name = lines.data != NULL ? strtok_r(lines.data, "\n", &rest) : NULL;
    for (; ok && name != NULL; name = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(name, '=');
        *value++ = '\0';
        ok = setenv(name, value, 1) == 0;
    }
    if (!ok)
        tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    tl_text_free(&lines);
    fclose(file);
    return ok;
}

static bool has_value(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && *value != '\0';
}

bool tl_installed_find(const struct tl_ctl_command *command, const char *path,
                       struct tl_ctl_options *options, struct tl_error *err)
{
    if (!tl_installed_counts(command) || options->config != NULL || options->redis != NULL ||
        options->server != NULL || options->data != NULL || has_value("TELLERLINE_REDIS_URL") ||
        has_value("TELLERLINE_REDIS_URL_FILE") || access(path, F_OK) != 0)
        return true;
    if (access(path, R_OK) != 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "%s: not readable: use sudo, or say where the system is "
                            "(--config, --redis, --server)",
                            path);
    options->config = path;
    return true;
}
