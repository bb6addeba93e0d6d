/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/config/checks.h"
#include "common/config/config.h"
#include "common/config/queue_table.h"
#include "common/config/read.h"
#include "common/config/table.h"
#include "common/config/value.h"
#include "common/config/yaml.h"

static struct tl_config *make_defaults(struct tl_error *err)
{
    struct tl_config *config = calloc(1, sizeof(*config));
    if (config == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "out of memory for the configuration");
        return NULL;
    }
    size_t n;
    const struct tl_setting *rows = tl_config_table(&n);
    tl_settings_default(rows, n, config);
    return config;
}

static void note(struct tl_mistakes *mistakes, const char *name, struct tl_error *err)
{
    tl_error_prefix(err, "%s", name);
    tl_mistakes_add(mistakes, "", err);
}

/* The bounds that span settings of the programs. They may come from the environment, so they are
 * looked for after everything was read. */
static void validate(const struct tl_config *config, const char *name, struct tl_mistakes *mistakes)
{
    const struct tl_listen *http = &config->http.listen;
    const struct tl_listen *admin = &config->admin.worker;
    struct tl_error err = {0};
    if (http->port > 0 && http->port == admin->port && strcmp(http->host, admin->host) == 0) {
        tl_error_set(&err, TL_ERR_INVALID,
                     "http.listen and admin.worker are both %s:%d; the worker needs two different "
                     "addresses, and visitors must not reach the second",
                     http->host, http->port);
        note(mistakes, name, &err);
    }
    if (config->challenge_service.min_score > 0 &&
        config->challenge_service.provider != TL_PROVIDER_RECAPTCHA) {
        tl_error_set(&err, TL_ERR_INVALID,
                     "challenge_service.min_score: only recaptcha (version 3) has a score");
        note(mistakes, name, &err);
    }
    for (size_t i = 0; i < config->n_webhooks; i++) {
        if (tl_url_is_protected(config->webhooks[i].url, config->notifier.http_hosts))
            continue;
        tl_error_set(&err, TL_ERR_INVALID,
                     "webhooks[%zu].url must be https://; http:// is for this machine and the "
                     "hosts of notifier.http_hosts only",
                     i);
        note(mistakes, name, &err);
    }
}

bool tl_config_has_service(const struct tl_config *config, struct tl_error *err)
{
    if (config->challenge_service.site_key[0] == '\0')
        return tl_error_set(err, TL_ERR_INVALID,
                            "challenge: external needs challenge_service.site_key");
    if (config->secrets.challenge_secret[0] == '\0')
        return tl_error_set(err, TL_ERR_INVALID,
                            "challenge: external needs secrets.challenge_secret, a file with the "
                            "provider's secret");
    return true;
}

/* The settings of the programs that queues need. */
static void validate_queues(const struct tl_config *config, struct tl_mistakes *mistakes)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    size_t challenge = (size_t)(tl_setting_find(rows, n, "challenge", NULL) - rows);
    for (size_t i = 0; i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        struct tl_yaml_place place = queue->places[challenge];
        struct tl_error err = {0};
        if (queue->settings.challenge != TL_CHALLENGE_EXTERNAL ||
            tl_config_has_service(config, &err))
            continue;
        tl_error_prefix(&err, "queues.%s", queue->name);
        tl_yaml_locate(&err, config->queues_source, place.line > 0 ? place : queue->place);
        tl_mistakes_add(mistakes, "", &err);
    }
}

/* Puts the folder of the configuration file before a relative path; without a file, the current
 * directory. size: of the path's field. */
static bool complete_path(char *path, size_t size, const char *config_path, struct tl_error *err)
{
    char current[PATH_MAX] = "";
    char completed[2 * PATH_MAX];
    const char *slash = config_path != NULL ? strrchr(config_path, '/') : NULL;
    bool relative = config_path == NULL || config_path[0] != '/';
    if (path[0] == '/' || path[0] == '\0')
        return true;
    if (relative && getcwd(current, sizeof(current)) == NULL)
        return tl_error_set(err, TL_ERR_SYSTEM, "the current directory: %s", strerror(errno));
    int length = snprintf(completed, sizeof(completed), "%s%s%.*s%s%s", current,
                          relative ? "/" : "", slash != NULL ? (int)(slash - config_path) : 0,
                          config_path != NULL ? config_path : "", slash != NULL ? "/" : "", path);
    if (length < 0 || (size_t)length >= size)
        return tl_error_set(err, TL_ERR_INVALID, "a path is longer than %zu bytes: %s", size - 1,
                            completed);
    memcpy(path, completed, (size_t)length + 1);
    return true;
}

static bool complete_paths(struct tl_config *config, const char *config_path, struct tl_error *err)
{
    char *secrets[] = {
        config->secrets.ticket_keys, config->secrets.api_keys,    config->secrets.admin_token,
        config->secrets.pass_keys,   config->secrets.invite_keys, config->secrets.challenge_secret,
        config->secrets.draw_key,    config->secrets.token_key,   config->secrets.archive_key};
    const size_t size = sizeof(config->secrets.ticket_keys);
    bool good = true;
    for (size_t i = 0; good && i < sizeof(secrets) / sizeof(secrets[0]); i++)
        good = complete_path(secrets[i], size, config_path, err);
    for (size_t i = 0; good && i < config->n_webhooks; i++)
        good = complete_path(config->webhooks[i].secret_file, size, config_path, err);
    for (size_t i = 0; good && i < config->n_queues; i++) {
        struct tl_event_page *page = config->queues[i].page;
        good = page == NULL ||
               (complete_path(page->image, sizeof(page->image), config_path, err) &&
                complete_path(page->logo, sizeof(page->logo), config_path, err) &&
                complete_path(page->logo_dark, sizeof(page->logo_dark), config_path, err));
    }
    return good;
}

static void read_bytes(struct tl_config *config, const char *name, const void *bytes, size_t length,
                       struct tl_mistakes *mistakes)
{
    struct tl_error err = {0};
    struct tl_yaml *root = tl_yaml_parse(name, bytes, length, &err);
    if (root == NULL)
        tl_mistakes_add(mistakes, "", &err);
    else
        tl_config_read(config, name, root, mistakes);
    tl_yaml_free(&root);
}

static void load_file(struct tl_config *config, const char *path, struct tl_mistakes *mistakes)
{
    size_t length;
    struct tl_error err = {0};
    char *bytes = tl_file_read("the configuration ", path, TL_YAML_BYTES_MAX, &length, &err);
    if (bytes == NULL)
        tl_mistakes_add(mistakes, "", &err);
    else
        read_bytes(config, path, bytes, length, mistakes);
    free(bytes);
}

/* Validates what was read, and frees it after a mistake. */
static const struct tl_config *publish(struct tl_config *config, const char *name,
                                       struct tl_mistakes *mistakes)
{
    const struct tl_config *published = config;
    if (mistakes->n == 0) {
        validate(config, name, mistakes);
        validate_queues(config, mistakes);
    }
    if (mistakes->n > 0)
        tl_config_free(&published);
    return published;
}

const struct tl_config *tl_config_load_all(const char *path, struct tl_mistakes *mistakes)
{
    const char *name = path != NULL ? path : "environment";
    struct tl_error err = {0};
    struct tl_config *config = make_defaults(&err);
    if (config == NULL) {
        tl_mistakes_add(mistakes, "", &err);
        return NULL;
    }
    if (path != NULL)
        load_file(config, path, mistakes);
    tl_config_read_env(config, environ, mistakes);
    if (mistakes->n == 0 && !complete_paths(config, path, &err))
        note(mistakes, name, &err);
    return publish(config, name, mistakes);
}

const struct tl_config *tl_config_load(const char *path, struct tl_error *err)
{
    struct tl_mistakes mistakes = {0};
    const struct tl_config *config = tl_config_load_all(path, &mistakes);
    if (config == NULL && err != NULL)
        *err = mistakes.list[0].err;
    return config;
}

const struct tl_config *tl_config_parse(const char *name, const void *bytes, size_t length,
                                        struct tl_error *err)
{
    struct tl_mistakes mistakes = {0};
    struct tl_config *config = make_defaults(err);
    if (config == NULL)
        return NULL;
    read_bytes(config, name, bytes, length, &mistakes);
    const struct tl_config *published = publish(config, name, &mistakes);
    if (published == NULL && err != NULL)
        *err = mistakes.list[0].err;
    return published;
}

const struct tl_queue_settings *tl_config_queue(const struct tl_queue_config *queues, size_t n,
                                                const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(queues[i].name, name) == 0)
            return &queues[i].settings;
    return NULL;
}

void tl_config_free(const struct tl_config **config)
{
    /* Published as const; the memory is ours. */
    struct tl_config *ours = (struct tl_config *)(uintptr_t)*config;
    *config = NULL;
    if (ours == NULL)
        return;
    free(ours->webhooks);
    tl_config_free_queues(ours);
    free(ours);
}
