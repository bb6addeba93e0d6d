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

/* Takes a line of the environment file: NAME=VALUE, perhaps in quotes. What is set already stays.
 */
static bool take_variable(char *line)
{
    char *name = line + strspn(line, " \t"), *value = strchr(name, '=');
    if (*name == '#' || *name == ';' || value == NULL)
        return true;
    *value++ = '\0';
    size_t length = strcspn(value, "\n");
    while (length > 0 && isspace((unsigned char)value[length - 1]))
        length--;
    if (length > 1 && (value[0] == '"' || value[0] == '\'') && value[length - 1] == value[0]) {
        value++;
        length -= 2;
    }
    value[length] = '\0';
    bool counts = strncmp(name, "TELLERLINE_", strlen("TELLERLINE_")) == 0 && !is_said(name);
    return !counts || setenv(name, value, 0) == 0;
}

bool tl_installed_environment(const char *path, struct tl_error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT ||
               tl_error_set(
                   err, TL_ERR_INVALID,
                   "%s: %s: use sudo, or say where the system is (--config, --redis, --server)",
                   path, strerror(errno));
    char *line = NULL;
    size_t size = 0;
    bool ok = true;
    while (ok && getline(&line, &size, file) >= 0)
        ok = take_variable(line);
    if (!ok || ferror(file))
        ok = tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    free(line);
    fclose(file);
    return ok;
}

bool tl_installed_find(const struct tl_ctl_command *command, const char *path,
                       struct tl_ctl_options *options, struct tl_error *err)
{
    const char *redis = getenv("TELLERLINE_REDIS_URL");
    if (!tl_installed_counts(command) || options->config != NULL || options->redis != NULL ||
        options->server != NULL || options->data != NULL || (redis != NULL && *redis != '\0') ||
        access(path, F_OK) != 0)
        return true;
    if (access(path, R_OK) != 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "%s: not readable: use sudo, or say where the system is "
                            "(--config, --redis, --server)",
                            path);
    options->config = path;
    return true;
}
