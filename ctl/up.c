#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/config/config.h"
#include "common/role/listen.h"
#include "common/role/probe.h"

#include "ctl/command.h"
#include "ctl/private_redis.h"
#include "ctl/supervisor.h"

enum {
    LOOK_MS = 50,               /* between two looks at something that is starting */
    PROBE_TIMEOUT_MS = 1000,    /* for one answer of the worker */
    SLOW_MS = 15000,            /* when a start takes so long, say what is waited for */
    WORKER_PATIENCE_MS = 40000, /* it finishes the requests under way */
    OTHERS_PATIENCE_MS = 15000,
    REDIS_PATIENCE_MS = 60000, /* it writes its data */
};

#define ROLE_REDIS "redis"

/* The four programs; the worker last, so that it finds the others at work, and ended first. */
static const char *const programs[] = {"dispatcher", "admitter", "expirer", "worker"};

struct up {
    const struct tl_ctl_options *options;
    const struct tl_config *config;
    struct tl_supervisor *supervisor;
    struct tl_private_redis redis;
    char folder[PATH_MAX];   /* of the programs */
    struct tl_listen listen; /* where the worker answers; the port is never 0 */
};

/* ---- what is found out before anything starts ---- */

static bool find_folder(struct up *up, struct tl_error *err)
{
    ssize_t length = readlink("/proc/self/exe", up->folder, sizeof(up->folder) - 1);
    if (length <= 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "/proc/self/exe: %s", strerror(errno));
    up->folder[length] = '\0';
    *strrchr(up->folder, '/') = '\0';
    return true;
}

static bool is_private(const struct up *up)
{
    return up->config->redis.url[0] == '\0';
}

/* Sets a setting for the programs that are started from here on, instead of what the environment
 * said about it in either way. */
static bool tell_programs(const char *variable, const char *value, struct tl_error *err)
{
    char file_variable[64];
    snprintf(file_variable, sizeof(file_variable), "%s_FILE", variable);
    if (unsetenv(file_variable) != 0 || setenv(variable, value, 1) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "setenv: %s", strerror(errno));
    return true;
}

/* Finds out whether the worker can have its port. The worker's processes share it among themselves,
 * so that the system would not notice another one that shares it too, and visitors would land in
 * either. With port 0, chooses a free one here, so that the address can be told. */
static bool choose_port(struct up *up, struct tl_error *err)
{
    up->listen = up->config->http.listen;
    int fd = tl_listen_open(&up->listen, false, &up->listen.port, err);
    if (fd < 0)
        return tl_error_prefix(err, "http.listen");
    close(fd);
    if (up->config->http.listen.port != 0)
        return true;
    char value[sizeof(up->listen.host) + 16];
    bool is_ipv6 = strchr(up->listen.host, ':') != NULL;
    snprintf(value, sizeof(value), is_ipv6 ? "[%s]:%d" : "%s:%d", up->listen.host, up->listen.port);
    return tell_programs("TELLERLINE_HTTP_LISTEN", value, err);
}

/* The address under which this machine itself reaches the worker. */
static const char *local_host(const struct up *up)
{
    if (strcmp(up->listen.host, "0.0.0.0") == 0 || strcmp(up->listen.host, "localhost") == 0)
        return "127.0.0.1";
    if (strcmp(up->listen.host, "::") == 0)
        return "::1";
    return up->listen.host;
}

/* ---- start ---- */

/* Turns until the private Redis answers. False also when asked to stop. */
static bool wait_for_redis(struct up *up, struct tl_error *err)
{
    struct tl_error not_yet = {0};
    int64_t told_ms = tl_clock_ms();
    while (!tl_private_redis_answers(&up->redis, &not_yet)) {
        if (!tl_supervisor_turn(up->supervisor, LOOK_MS, err))
            return false;
        if (tl_supervisor_stop_asked(up->supervisor) > 0)
            return tl_error_set(err, TL_OK, "stopped before Redis was up");
        if (tl_clock_ms() - told_ms >= SLOW_MS) {
            tl_supervisor_say(up->supervisor, "still waiting for Redis: %s", not_yet.text);
            told_ms = tl_clock_ms();
        }
    }
    return true;
}

static bool start_redis(struct up *up, struct tl_error *err)
{
    const char *argv[TL_PRIVATE_REDIS_ARGS];
    tl_private_redis_argv(&up->redis, argv);
    tl_supervisor_say(up->supervisor, "no Redis is configured: starting %s on %s",
                      up->redis.program, up->redis.folder);
    /* The server holds the lock too, so that nobody starts a second one while it still writes. */
    if (!tl_supervisor_start(up->supervisor, ROLE_REDIS, argv, up->redis.lock, err) ||
        !wait_for_redis(up, err) || !tl_private_redis_publish(&up->redis, err))
        return false;
    return tell_programs("TELLERLINE_REDIS_URL", up->redis.url, err);
}

static bool start_program(struct up *up, const char *role, struct tl_error *err)
{
    char path[PATH_MAX + 32];
    char processes[24];
    const char *argv[8] = {path};
    size_t n = 1;
    snprintf(path, sizeof(path), "%s/tellerline-%s", up->folder, role);
    if (access(path, X_OK) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s; the programs belong into one folder", path,
                            strerror(errno));
    if (up->options->config != NULL) {
        argv[n++] = "--config";
        argv[n++] = up->options->config;
    }
    if (strcmp(role, "worker") == 0 && up->options->processes > 0) {
        snprintf(processes, sizeof(processes), "%llu", (unsigned long long)up->options->processes);
        argv[n++] = "--processes";
        argv[n++] = processes;
    }
    return tl_supervisor_start(up->supervisor, role, argv, -1, err);
}

/* Turns until the worker says that joins can be served. False also when asked to stop. */
static bool wait_until_ready(struct up *up, struct tl_error *err)
{
    int64_t told_ms = tl_clock_ms();
    while (tl_http_probe(local_host(up), up->listen.port, "/readyz", PROBE_TIMEOUT_MS) != 200) {
        if (!tl_supervisor_turn(up->supervisor, LOOK_MS, err))
            return false;
        if (tl_supervisor_stop_asked(up->supervisor) > 0)
            return tl_error_set(err, TL_OK, "stopped before everything was up");
        if (tl_clock_ms() - told_ms >= SLOW_MS) {
            tl_supervisor_say(up->supervisor,
                              "still waiting for the worker at %s port %d to be ready",
                              local_host(up), up->listen.port);
            told_ms = tl_clock_ms();
        }
    }
    return true;
}

static void say_ready(struct up *up)
{
    const char *host = local_host(up);
    bool is_ipv6 = strchr(host, ':') != NULL;
    tl_supervisor_say(up->supervisor, "ready: http://%s%s%s:%d/ (Ctrl-C stops)", is_ipv6 ? "[" : "",
                      host, is_ipv6 ? "]" : "", up->listen.port);
    if (up->config->n_queues == 0)
        tl_supervisor_say(up->supervisor,
                          "no queues are configured: list some under `queues` in a file, and "
                          "give it with --config");
}

static bool start_all(struct up *up, struct tl_error *err)
{
    if (is_private(up) && !start_redis(up, err))
        return false;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (!start_program(up, programs[i], err))
            return false;
    }
    if (!wait_until_ready(up, err))
        return false;
    tl_supervisor_settled(up->supervisor);
    say_ready(up);
    return true;
}

/* ---- run and end ---- */

static bool run(struct up *up, struct tl_error *err)
{
    while (tl_supervisor_stop_asked(up->supervisor) == 0) {
        if (!tl_supervisor_turn(up->supervisor, 60000, err))
            return false;
    }
    return true;
}

/* First whoever takes requests, then whoever works on them, last the data. False when something had
 * to be killed. */
static bool stop_all(struct up *up)
{
    static const char *const worker[] = {"worker", NULL};
    static const char *const others[] = {"dispatcher", "admitter", "expirer", NULL};
    static const char *const redis[] = {ROLE_REDIS, NULL};
    tl_supervisor_say(up->supervisor, "stopping; Ctrl-C again kills");
    bool clean = tl_supervisor_stop(up->supervisor, worker, WORKER_PATIENCE_MS);
    clean = tl_supervisor_stop(up->supervisor, others, OTHERS_PATIENCE_MS) && clean;
    clean = tl_supervisor_stop(up->supervisor, redis, REDIS_PATIENCE_MS) && clean;
    tl_supervisor_say(up->supervisor, clean ? "stopped" : "stopped, not cleanly");
    return clean;
}

static int run_up(struct up *up)
{
    struct tl_error err = {0};
    if (!find_folder(up, &err) || !choose_port(up, &err) ||
        (is_private(up) && !tl_private_redis_prepare(&up->redis, up->options->data, &err)))
        return tl_ctl_fail(TL_EXIT_COULD, &err);
    bool ok = false;
    bool asked = false;
    bool clean = true;
    up->supervisor = tl_supervisor_new(stdout, &err);
    if (up->supervisor != NULL) {
        ok = start_all(up, &err) && run(up, &err);
        asked = tl_supervisor_stop_asked(up->supervisor) > 0;
        clean = stop_all(up);
    }
    tl_supervisor_free(&up->supervisor);
    tl_private_redis_release(&up->redis);
    /* Being asked to stop while still starting is no failure. */
    if (!ok && !asked)
        return tl_ctl_fail(TL_EXIT_COULD, &err);
    return clean ? TL_EXIT_OK : TL_EXIT_NO;
}

int tl_command_up(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct up up = {.options = options, .redis = {.lock = -1}};
    up.config = tl_config_load(options->config, &err);
    if (up.config == NULL)
        return tl_ctl_fail(TL_EXIT_COULD, &err);
    int status = run_up(&up);
    tl_config_free(&up.config);
    return status;
}
