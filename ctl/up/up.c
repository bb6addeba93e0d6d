/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/role/listen.h"
#include "common/role/program.h"

#include "ctl/up/up.h"

enum {
    PROBE_EVERY_MS = 50,          /* of a program that is starting */
    PROBE_TIMEOUT_MS = 200,       /* for one answer of the worker, which may not accept yet */
    SLOW_MS = 15000,              /* a start that takes longer says what it waits for */
    WORKER_STOP_LIMIT_MS = 40000, /* it finishes the requests under way */
    OTHERS_STOP_LIMIT_MS = 15000,
    DATA_STOP_LIMIT_MS = 60000, /* a server writes its data */
};

/* First the program that takes requests stops, then those that process them, the data last. */
enum { STAGE_WORKER, STAGE_OTHERS, STAGE_DATA };

/* The worker starts last, when the others run. */
static const char *const programs[] = {"dispatcher", "admitter", "expirer",
                                       "notifier",   "archiver", "worker"};
enum { N_PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

struct up {
    const struct tl_ctl_options *options;
    const struct tl_config *config;
    struct tl_programs *programs;
    struct tl_data_folder data;
    struct tl_private_server redis, postgres;
    const char *archive;        /* its address; "": there is none */
    char folder[PATH_MAX];      /* of the programs */
    struct tl_listen listen;    /* where the worker answers; the port is never 0 */
    int sockets[TL_LISTEN_MAX]; /* of its processes */
    unsigned n_sockets;
    char paths[N_PROGRAMS][PATH_MAX + 32];
    char processes[24]; /* as text */
};

/* ---- before anything starts ---- */

static bool find_folder(struct up *up, struct tl_error *err)
{
    ssize_t length = readlink("/proc/self/exe", up->folder, sizeof(up->folder) - 1);
    if (length <= 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "/proc/self/exe: %s", strerror(errno));
    up->folder[length] = '\0';
    *strrchr(up->folder, '/') = '\0';
    return true;
}

/* Prepares the servers that nothing else provides. */
static bool prepare_servers(struct up *up, struct tl_error *err)
{
    const bool own_archive = up->options->archive && up->config->archive.url[0] == '\0';
    up->data.given = up->options->data;
    if (up->config->redis.url[0] == '\0' && !tl_private_redis_prepare(&up->redis, &up->data, err))
        return false;
    if (own_archive && !tl_private_postgres_prepare(&up->postgres, &up->data, err))
        return false;
    up->archive = own_archive ? up->postgres.url : up->config->archive.url;
    return true;
}

/* Sets a setting in the environment of the programs that start from now on, in place of VARIABLE
 * and VARIABLE_FILE. */
static bool tell_programs(const char *variable, const char *value, struct tl_error *err)
{
    char file_variable[64];
    snprintf(file_variable, sizeof(file_variable), "%s_FILE", variable);
    if (unsetenv(file_variable) != 0 || setenv(variable, value, 1) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "setenv: %s", strerror(errno));
    return true;
}

/* Opens the sockets of the worker's processes. They stay open here, so that connections wait while
 * the worker is started again. With port 0, chooses a free one, so that the address can be
 * printed. */
static bool open_sockets(struct up *up, struct tl_error *err)
{
    up->listen = up->config->http.listen;
    up->n_sockets = (unsigned)(up->options->processes > 0 ? up->options->processes
                                                          : up->config->worker.processes);
    if (!tl_listen_share(&up->listen, up->sockets, up->n_sockets, &up->listen.port, err))
        return tl_error_prefix(err, "http.listen");
    if (up->config->http.listen.port != 0)
        return true;
    char value[sizeof(up->listen.host) + 16];
    bool is_ipv6 = strchr(up->listen.host, ':') != NULL;
    snprintf(value, sizeof(value), is_ipv6 ? "[%s]:%d" : "%s:%d", up->listen.host, up->listen.port);
    return tell_programs("TELLERLINE_HTTP_LISTEN", value, err);
}

/* Refuses new connections from now on. */
static void shut_sockets(const struct up *up)
{
    for (unsigned i = 0; i < up->n_sockets && up->sockets[i] >= 0; i++)
        (void)shutdown(up->sockets[i], SHUT_RDWR);
}

static void close_sockets(const struct up *up)
{
    for (unsigned i = 0; i < up->n_sockets && up->sockets[i] >= 0; i++)
        close(up->sockets[i]);
}

/* ---- start ---- */

static bool redis_answers(struct up *up, struct tl_error *err)
{
    return tl_private_redis_answers(&up->redis, err);
}

static bool postgres_answers(struct up *up, struct tl_error *err)
{
    return tl_private_postgres_answers(&up->postgres, err);
}

static bool worker_is_ready(struct up *up, struct tl_error *err)
{
    return tl_http_get(up->listen.host, up->listen.port, "/readyz", PROBE_TIMEOUT_MS, NULL, 0) ==
               200 ||
           tl_error_set(err, TL_ERR_CONNECT, "the worker at %s port %d is not ready",
                        up->listen.host, up->listen.port);
}

/* Turns until `is_up` says yes. False also when asked to stop. */
static bool wait_until(struct up *up, bool (*is_up)(struct up *up, struct tl_error *err),
                       struct tl_error *err)
{
    struct tl_error not_yet = {0};
    int64_t said_ms = tl_clock_ms();
    while (!is_up(up, &not_yet)) {
        if (!tl_programs_turn(up->programs, PROBE_EVERY_MS, err))
            return false;
        if (tl_programs_stop_asked(up->programs) > 0)
            return tl_error_set(err, TL_OK, "stopped before everything was up");
        if (tl_clock_ms() - said_ms >= SLOW_MS) {
            tl_programs_say(up->programs, "still waiting: %s", not_yet.text);
            said_ms = tl_clock_ms();
        }
    }
    return true;
}

/* They hold the lock too: second ones cannot start while they still write. They are quiet: each
 * start of Redis says the same, with a warning about the machine's memory that is no reason to stop
 * here, and PostgreSQL that it is starting. */
static bool start_redis(struct up *up, struct tl_error *err)
{
    const char *argv[TL_PROGRAM_ARGS_MAX];
    const struct tl_program_start start = {.role = "redis",
                                           .argv = argv,
                                           .keep_fd = up->data.lock,
                                           .quiet = true,
                                           .stop_stage = STAGE_DATA,
                                           .stop_limit_ms = DATA_STOP_LIMIT_MS};
    if (up->redis.folder == NULL)
        return true;
    tl_private_redis_argv(&up->redis, argv);
    tl_programs_say(up->programs, "no Redis is configured: starting %s on %s", up->redis.program,
                    up->redis.data);
    return tl_programs_add(up->programs, &start, err) && wait_until(up, redis_answers, err) &&
           tl_private_server_publish(&up->redis, err) &&
           tell_programs("TELLERLINE_REDIS_URL", up->redis.url, err);
}

static bool start_postgres(struct up *up, struct tl_error *err)
{
    const char *argv[TL_PROGRAM_ARGS_MAX];
    const struct tl_program_start start = {.role = "postgres",
                                           .argv = argv,
                                           .keep_fd = up->data.lock,
                                           .quiet = true,
                                           .stop_stage = STAGE_DATA,
                                           .stop_signal = SIGINT, /* it waits for no client */
                                           .stop_limit_ms = DATA_STOP_LIMIT_MS};
    if (up->postgres.folder == NULL)
        return true;
    tl_private_postgres_argv(&up->postgres, argv);
    tl_programs_say(up->programs, "no archive is configured: starting %s/postgres on %s",
                    up->postgres.program, up->postgres.data);
    return tl_programs_add(up->programs, &start, err) && wait_until(up, postgres_answers, err) &&
           tl_private_server_publish(&up->postgres, err) &&
           tell_programs("TELLERLINE_ARCHIVE_URL", up->postgres.url, err);
}

static bool start_program(struct up *up, size_t i, struct tl_error *err)
{
    const char *role = programs[i];
    const bool is_worker = strcmp(role, "worker") == 0;
    const char *argv[8] = {up->paths[i]};
    size_t n = 1;
    snprintf(up->paths[i], sizeof(up->paths[i]), "%s/tellerline-%s", up->folder, role);
    if (access(up->paths[i], X_OK) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s; all programs must be in the same folder",
                            up->paths[i], strerror(errno));
    if (up->options->config != NULL) {
        argv[n++] = "--config";
        argv[n++] = up->options->config;
    }
    if (is_worker && up->options->processes > 0) {
        snprintf(up->processes, sizeof(up->processes), "%llu",
                 (unsigned long long)up->options->processes);
        argv[n++] = "--processes";
        argv[n++] = up->processes;
    }
    const struct tl_program_start start = {.role = role,
                                           .argv = argv,
                                           .keep_fd = -1,
                                           .listen_fds = up->sockets,
                                           .n_listen_fds = is_worker ? up->n_sockets : 0,
                                           .stop_stage = is_worker ? STAGE_WORKER : STAGE_OTHERS,
                                           .stop_limit_ms = is_worker ? WORKER_STOP_LIMIT_MS
                                                                      : OTHERS_STOP_LIMIT_MS};
    return tl_programs_add(up->programs, &start, err);
}

/* Without an address the page can only say that it is the visitor's turn, which looks like a fault
 * to an operator who tries it. */
static void say_where_queues_lead(const struct up *up)
{
    for (size_t i = 0; i < up->config->n_queues; i++) {
        const char *name = up->config->queues[i].name;
        if (up->config->queues[i].settings.target_url[0] == '\0')
            tl_programs_say(up->programs,
                            "queue %s has no target_url in the configuration: admitted visitors "
                            "see \"It is your turn\", and no site opens. tellerline queue set %s "
                            "target_url=ADDRESS",
                            name, name);
    }
}

static bool has_nothing_to_do(const struct up *up, const char *program)
{
    return (strcmp(program, "notifier") == 0 && up->config->n_webhooks == 0) ||
           (strcmp(program, "archiver") == 0 && up->archive[0] == '\0');
}

static bool start_all(struct up *up, struct tl_error *err)
{
    unsigned before;
    if (!start_redis(up, err) || !start_postgres(up, err) ||
        (up->archive[0] != '\0' && !tl_up_migrate(up->archive, &before, err)))
        return false;
    for (size_t i = 0; i < N_PROGRAMS; i++) {
        if (has_nothing_to_do(up, programs[i]))
            continue;
        if (!start_program(up, i, err))
            return false;
    }
    if (!wait_until(up, worker_is_ready, err))
        return false;
    tl_programs_settled(up->programs);
    char url[TL_CTL_LOCAL_MAX];
    tl_ctl_local_url(&up->listen, url);
    tl_programs_say(up->programs, "ready: %s/ (Ctrl-C stops)", url);
    if (up->config->admin.worker.port > 0)
        tl_programs_say(up->programs, "dashboard: `tellerline dashboard%s%s` signs a browser in",
                        up->options->config != NULL ? " --config " : "",
                        up->options->config != NULL ? up->options->config : "");
    if (up->config->n_queues == 0)
        tl_programs_say(up->programs,
                        "no queues are configured: list some under `queues` in a file and "
                        "pass it with --config");
    say_where_queues_lead(up);
    return true;
}

/* ---- run and end ---- */

int tl_command_up(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct up up = {.options = options, .data = {.lock = -1}};
    bool ok = false;
    bool asked = false;
    bool clean = true;
    up.config = tl_config_load(options->config, &err);
    if (up.config != NULL && find_folder(&up, &err) && open_sockets(&up, &err) &&
        prepare_servers(&up, &err))
        up.programs = tl_programs_new(stdout, &err);
    if (up.programs != NULL) {
        ok = start_all(&up, &err);
        while (ok && tl_programs_stop_asked(up.programs) == 0)
            ok = tl_programs_turn(up.programs, 60000, &err);
        asked = tl_programs_stop_asked(up.programs) > 0;
        tl_programs_say(up.programs, "stopping; Ctrl-C again kills");
        shut_sockets(&up);
        clean = tl_programs_stop(up.programs); /* no program had to be killed */
        tl_programs_say(up.programs, clean ? "stopped" : "stopped, not cleanly");
    }
    tl_programs_free(&up.programs);
    close_sockets(&up);
    tl_private_server_release(&up.redis);
    tl_private_server_release(&up.postgres);
    tl_data_folder_close(&up.data);
    tl_config_free(&up.config);
    /* A stop request during the start is not a failure. */
    if (!ok && !asked)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    return clean ? TL_EXIT_OK : TL_EXIT_PROBLEM;
}
