/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/config/spelling.h"
#include "common/store/queue.h"

#include "ctl/shell/shell.h"

enum { URL_MAX = 512 };

void tl_ctl_pause(int64_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Reads the address of the private Redis that runs on a data folder. */
static bool read_private_url(const char *data, char url[URL_MAX], struct tl_error *err)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s", data, TL_REDIS_URL_FILE);
    if (length < 0 || (size_t)length >= sizeof(path))
        return tl_error_set(err, TL_ERR_INVALID, "--data: the path is too long");
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        if (errno != ENOENT && errno != ENOTDIR)
            return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
        return tl_error_set(
            err, TL_ERR_INVALID,
            "no Redis is configured, and no `tellerline up` runs on the data folder \"%s\"; "
            "use --redis URL, --config FILE or --data DIR",
            data);
    }
    bool read = fgets(url, URL_MAX, file) != NULL;
    fclose(file);
    if (!read)
        return tl_error_set(err, TL_ERR_SYSTEM,
                            "%s: empty or unreadable; `tellerline up` may still be starting", path);
    url[strcspn(url, "\n")] = '\0';
    return true;
}

/* The address of the Redis that the options name: --redis, else the configured one, else the
 * private one of a `tellerline up` that runs on the data folder. */
static bool find_url(const struct tl_config *config, const struct tl_ctl_options *options,
                     char url[URL_MAX], struct tl_error *err)
{
    const char *known = options->redis != NULL ? options->redis : config->redis.url;
    if (known[0] == '\0')
        return read_private_url(options->data, url, err);
    int length = snprintf(url, URL_MAX, "%s", known);
    return (size_t)length < URL_MAX ||
           tl_error_set(err, TL_ERR_INVALID, "the address of Redis is too long");
}

void tl_ctl_local_url(const struct tl_listen *listen, char url[TL_CTL_LOCAL_MAX])
{
    const char *host = listen->host;
    if (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    else if (strcmp(host, "::") == 0)
        host = "::1";
    bool bare = strchr(host, ':') != NULL && host[0] != '[';
    snprintf(url, TL_CTL_LOCAL_MAX, "http://%s%s%s:%d", bare ? "[" : "", host, bare ? "]" : "",
             listen->port);
}

bool tl_ctl_session_prepare(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                            struct tl_error *err)
{
    char url[URL_MAX];
    *session = (struct tl_ctl_session){.config = tl_config_load(options->config, err)};
    if (session->config == NULL)
        return false;
    tl_actor_of_user(&session->actor, session->config->retention.changes_entries);
    if (find_url(session->config, options, url, err))
        session->control = tl_control_new(session->config, url, err);
    if (session->control != NULL)
        session->store = tl_control_store(session->control);
    else
        tl_ctl_session_close(session);
    return session->control != NULL;
}

bool tl_ctl_session_open(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                         struct tl_error *err)
{
    if (!tl_ctl_session_prepare(session, options, err))
        return false;
    bool connected = tl_store_connect(session->store, err);
    if (!connected)
        tl_ctl_session_close(session);
    return connected;
}

void tl_ctl_session_close(struct tl_ctl_session *session)
{
    tl_control_free(&session->control);
    tl_config_free(&session->config);
}

/* ---- what may have been meant ---- */

void tl_ctl_propose_queue(const char *name, json_t *names)
{
    const char *best = "";
    size_t i, steps = SIZE_MAX;
    bool is_there = false;
    json_t *other;
    json_array_foreach(names, i, other)
    {
        is_there = is_there || strcmp(json_string_value(other), name) == 0;
        if (tl_spelling_closer(name, json_string_value(other), &steps))
            best = json_string_value(other);
    }
    if (!is_there && *best != '\0')
        fprintf(stderr, "tellerline: did you mean queue \"%s\"?\n", best);
    json_decref(names);
}

void tl_ctl_session_propose(struct tl_ctl_session *session, const char *name)
{
    json_t *names = json_array();
    char(*listed)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    struct tl_error unused;
    struct tl_redis *redis = tl_store_reach(session->store, NULL, &unused);
    if (redis != NULL)
        (void)tl_queue_list(redis, session->config->redis.key_prefix, &listed, &n, &unused);
    for (size_t i = 0; i < n; i++)
        tl_json_add(names, json_string(listed[i]));
    for (size_t i = 0; i < session->config->n_queues; i++)
        tl_json_add(names, json_string(session->config->queues[i].name));
    free(listed);
    tl_ctl_propose_queue(name, names);
}
