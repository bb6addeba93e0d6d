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
#include "common/config/environment.h"
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

/* The bounds that span process settings. */
static bool validate(const struct tl_config *config, struct tl_error *err)
{
    const struct tl_listen *http = &config->http.listen;
    const struct tl_listen *admin = &config->admin.worker;
    if (http->port > 0 && http->port == admin->port && strcmp(http->host, admin->host) == 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "http.listen and admin.worker are both %s:%d; the worker needs two "
                            "different addresses, and visitors must not reach the second",
                            http->host, http->port);
    if (config->challenge_service.min_score > 0 &&
        config->challenge_service.provider != TL_PROVIDER_RECAPTCHA)
        return tl_error_set(err, TL_ERR_INVALID,
                            "challenge_service.min_score: only recaptcha (version 3) has a score");
    for (size_t i = 0; i < config->n_webhooks; i++)
        if (!tl_url_is_protected(config->webhooks[i].url, config->notifier.http_hosts))
            return tl_error_set(
                err, TL_ERR_INVALID,
                "webhooks[%zu].url must be https://; http:// is for this machine and "
                "the hosts of notifier.http_hosts only",
                i);
    return true;
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

/* The settings of the programs that queues need. They may come from the environment, so they are
 * looked for after everything was read. */
static bool validate_queues(const struct tl_config *config, struct tl_error *err)
{
    for (size_t i = 0; i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        if (queue->settings.challenge != TL_CHALLENGE_EXTERNAL ||
            tl_config_has_service(config, err))
            continue;
        tl_error_prefix(err, "queues.%s", queue->name);
        return tl_yaml_locate(err, config->queues_source,
                              (struct tl_yaml_place){queue->line, queue->column});
    }
    return true;
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

/* The files that an event's page shows. */
static bool complete_page(struct tl_event_page *page, const char *config_path, struct tl_error *err)
{
    struct tl_event_value *values[] = {&page->image, &page->logo, &page->logo_dark};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (!complete_path(values[i]->text, sizeof(values[i]->text), config_path, err))
            return tl_error_prefix(err, "queues");
    return true;
}

static bool complete_paths(struct tl_config *config, const char *config_path, struct tl_error *err)
{
    char *paths[16 + TL_HOOKS_MAX] = {config->secrets.ticket_keys, config->secrets.api_keys,
                                      config->secrets.admin_token, config->secrets.pass_keys,
                                      config->secrets.invite_keys, config->secrets.challenge_secret,
                                      config->secrets.draw_key,    config->secrets.token_key};
    size_t n_paths = 0;
    while (paths[n_paths] != NULL)
        n_paths++;
    for (size_t i = 0; i < config->n_webhooks; i++)
        paths[n_paths++] = config->webhooks[i].secret_file;
    for (size_t i = 0; i < n_paths; i++)
        if (!complete_path(paths[i], sizeof(config->secrets.ticket_keys), config_path, err))
            return tl_error_prefix(err, "secrets");
    for (size_t i = 0; i < config->n_queues; i++)
        if (config->queues[i].page != NULL &&
            !complete_page(config->queues[i].page, config_path, err))
            return false;
    return true;
}

static bool read_bytes(struct tl_config *config, const char *name, const void *bytes, size_t length,
                       struct tl_error *err)
{
    struct tl_yaml *root = tl_yaml_parse(name, bytes, length, err);
    if (root == NULL)
        return false;
    bool good = tl_config_read(config, name, root, err);
    tl_yaml_free(&root);
    return good;
}

static bool load_file(struct tl_config *config, const char *path, struct tl_error *err)
{
    size_t length;
    char *bytes = tl_file_read("the configuration ", path, TL_YAML_BYTES_MAX, &length, err);
    bool good = bytes != NULL && read_bytes(config, path, bytes, length, err);
    free(bytes);
    return good;
}

static const struct tl_config *publish(struct tl_config *config, bool good)
{
    const struct tl_config *published = config;
    if (!good)
        tl_config_free(&published);
    return published;
}

const struct tl_config *tl_config_load(const char *path, struct tl_error *err)
{
    struct tl_config *config = make_defaults(err);
    if (config == NULL)
        return NULL;
    bool good = path == NULL || load_file(config, path, err);
    good = good && tl_config_read_env(config, environ, err);
    if (good && !(validate(config, err) && complete_paths(config, path, err)))
        good = tl_error_prefix(err, "%s", path != NULL ? path : "environment");
    return publish(config, good && validate_queues(config, err));
}

const struct tl_config *tl_config_parse(const char *name, const void *bytes, size_t length,
                                        struct tl_error *err)
{
    struct tl_config *config = make_defaults(err);
    if (config == NULL)
        return NULL;
    bool good = read_bytes(config, name, bytes, length, err);
    if (good && !validate(config, err))
        good = tl_error_prefix(err, "%s", name);
    return publish(config, good && validate_queues(config, err));
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
