#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/role/daemon.h"
#include "common/role/notify.h"

#define BACKOFF_BASE_MS  50
#define BACKOFF_LIMIT_MS 2000
/* A loop that has not turned for so long is stuck: one turn is bounded by a few store time-outs. */
#define STUCK_MS     30000
#define LOG_EVERY_MS 5000

struct tl_daemon {
    const struct tl_role *role;
    const struct tl_config *config;
    const char *config_path;
    char id[33];
    int signal_fd;
    bool stopping;
    void *metrics_memory;
    struct tl_metrics *metrics;
    struct tl_admin *admin;
    struct tl_notify *notify;
    /* Shared with the admin listener's thread. */
    _Atomic int64_t turned_ms;
    pthread_mutex_t reason_lock;
    bool ready;
    char reason[160];
};

const struct tl_config *tl_daemon_config(const struct tl_daemon *daemon)
{
    return daemon->config;
}

struct tl_metrics *tl_daemon_metrics(const struct tl_daemon *daemon)
{
    return daemon->metrics;
}

const char *tl_daemon_id(const struct tl_daemon *daemon)
{
    return daemon->id;
}

void tl_daemon_make_id(const char *role, char id[33])
{
    uint8_t random[8];
    char hex[2 * sizeof(random) + 1];
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(hex, sizeof(hex), random, sizeof(random));
    snprintf(id, 33, "%.14s-%s", role, hex);
}

/* ---- configuration ---- */

static void start_log(const struct tl_role *role, const struct tl_config *config)
{
    struct tl_log_settings settings = {
        .level = config->log.level, .format = config->log.format, .role = role->name};
    tl_log_init(&settings);
}

const struct tl_config *tl_daemon_configure(const struct tl_role *role, int argc, char **argv,
                                            const struct tl_option *options, void *options_context,
                                            const char **config_path, int *status)
{
    char name[48];
    snprintf(name, sizeof(name), "tellerline-%s", role->name);
    const struct tl_program program = {.name = name,
                                       .summary = role->summary,
                                       .options = options,
                                       .context = options_context,
                                       .listeners = {role->admin, role->http}};
    struct tl_options parsed;
    if (tl_options_parse(&program, argc, argv, &parsed, status, stdout, stderr) == TL_OPTIONS_EXIT)
        return NULL;
    *status = 1;
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_load(parsed.config_path, &err);
    if (config == NULL) {
        fprintf(stderr, "%s: %s\n", name, err.text);
        return NULL;
    }
    if (sodium_init() < 0) {
        fprintf(stderr, "%s: libsodium could not be initialised\n", name);
        tl_config_free(&config);
        return NULL;
    }
    start_log(role, config);
    *config_path = parsed.config_path;
    return config;
}

static void reload(struct tl_daemon *daemon, void *state)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_load(daemon->config_path, &err);
    if (config == NULL) {
        const struct tl_log_fields fields = {.error = &err};
        tl_log(TL_LOG_ERROR, &fields, "reload refused, the running configuration stays");
        return;
    }
    start_log(daemon->role, config);
    if (daemon->role->reload != NULL)
        daemon->role->reload(state, config);
    tl_config_free(&config);
    tl_info("configuration read again: log settings are in force, the rest at the next start");
}

/* ---- signals ---- */

static bool open_signals(struct tl_daemon *daemon, struct tl_error *err)
{
    /* Blocked in every thread and read from a descriptor: no handler, no race with a wait. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    int problem = pthread_sigmask(SIG_BLOCK, &set, NULL);
    daemon->signal_fd = problem == 0 ? signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC) : -1;
    if (daemon->signal_fd < 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "signals: %s",
                            strerror(problem != 0 ? problem : errno));
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return tl_error_set(err, TL_ERR_SYSTEM, "signals: %s", strerror(errno));
    return true;
}

/* Takes one pending signal: 0 if there is none. */
static uint32_t next_signal(const struct tl_daemon *daemon)
{
    struct signalfd_siginfo info;
    if (read(daemon->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    return info.ssi_signo;
}

bool tl_daemon_stopping(const struct tl_daemon *daemon)
{
    struct pollfd fd = {.fd = daemon->signal_fd, .events = POLLIN};
    return daemon->stopping || poll(&fd, 1, 0) > 0;
}

bool tl_daemon_pause(const struct tl_daemon *daemon, int64_t ms)
{
    struct pollfd fd = {.fd = daemon->signal_fd, .events = POLLIN};
    if (poll(&fd, 1, (int)ms) < 0 && errno != EINTR)
        tl_warn("poll: %s", strerror(errno));
    return true;
}

static void handle_signals(struct tl_daemon *daemon, void *state)
{
    for (uint32_t number = next_signal(daemon); number != 0; number = next_signal(daemon)) {
        if (number == SIGHUP)
            reload(daemon, state);
        else
            daemon->stopping = true;
    }
}

/* ---- readiness, and what the admin listener shows ---- */

static void set_ready(struct tl_daemon *daemon, bool ready, const char *reason)
{
    pthread_mutex_lock(&daemon->reason_lock);
    daemon->ready = ready;
    snprintf(daemon->reason, sizeof(daemon->reason), "%.150s", reason);
    pthread_mutex_unlock(&daemon->reason_lock);
}

static bool source_live(void *context)
{
    struct tl_daemon *daemon = context;
    return tl_clock_ms() - atomic_load(&daemon->turned_ms) < STUCK_MS;
}

static bool source_ready(void *context, char reason[160])
{
    struct tl_daemon *daemon = context;
    pthread_mutex_lock(&daemon->reason_lock);
    bool ready = daemon->ready;
    snprintf(reason, 160, "%s", daemon->reason);
    pthread_mutex_unlock(&daemon->reason_lock);
    return ready;
}

static void source_metrics(void *context, struct tl_text *out)
{
    struct tl_daemon *daemon = context;
    char reason[160];
    char label[48];
    snprintf(label, sizeof(label), "role=\"%s\"", daemon->role->name);
    tl_text_append(out, "# HELP tellerline_build_info The version that runs.\n# TYPE "
                        "tellerline_build_info gauge\n");
    tl_text_append(out, "tellerline_build_info{%s,version=\"%s\"} 1\n", label, TELLERLINE_VERSION);
    tl_text_append(
        out, "# HELP tellerline_ready Whether /readyz says yes.\n# TYPE tellerline_ready gauge\n");
    tl_text_append(out, "tellerline_ready{%s} %d\n", label, source_ready(daemon, reason) ? 1 : 0);
    struct tl_metrics *const blocks[] = {daemon->metrics};
    tl_metrics_write(blocks, 1, label, out);
}

/* ---- the life of a program ---- */

static bool open_daemon(struct tl_daemon *daemon, struct tl_error *err)
{
    const struct tl_role *role = daemon->role;
    tl_daemon_make_id(role->name, daemon->id);
    size_t size = tl_metrics_size(role->metrics, role->n_metrics);
    daemon->metrics_memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (daemon->metrics_memory == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the metrics");
    memset(daemon->metrics_memory, 0, (size + 63) / 64 * 64);
    daemon->metrics = tl_metrics_init(daemon->metrics_memory, role->metrics, role->n_metrics);
    atomic_store(&daemon->turned_ms, tl_clock_ms());
    if (pthread_mutex_init(&daemon->reason_lock, NULL) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "no mutex");
    set_ready(daemon, false, "starting");
    const struct tl_admin_source source = {
        .context = daemon, .live = source_live, .ready = source_ready, .metrics = source_metrics};
    return open_signals(daemon, err) && tl_notify_open(&daemon->notify, tl_clock_ms(), err) &&
           tl_admin_start(&daemon->admin, role->admin(daemon->config), &source, err);
}

static void close_daemon(struct tl_daemon *daemon)
{
    tl_admin_stop(&daemon->admin);
    tl_notify_free(&daemon->notify);
    if (daemon->signal_fd >= 0)
        close(daemon->signal_fd);
    pthread_mutex_destroy(&daemon->reason_lock);
    free(daemon->metrics_memory);
    tl_config_free(&daemon->config);
}

/* After a failed turn: not ready, a log line now and then, and a wait. */
static void back_off(struct tl_daemon *daemon, struct tl_backoff *backoff,
                     struct tl_log_limit *limit, const struct tl_error *err)
{
    unsigned suppressed;
    set_ready(daemon, false, err->text);
    if (tl_log_allow(limit, tl_clock_ms(), LOG_EVERY_MS, &suppressed)) {
        const struct tl_log_fields fields = {.error = err};
        tl_log(TL_LOG_WARN, &fields,
               "trouble with the store, trying again (%u more since the last line)", suppressed);
    }
    tl_daemon_pause(daemon, tl_backoff_next(backoff, randombytes_random()));
}

static void notify_manager(struct tl_daemon *daemon)
{
    char reason[160];
    bool ready = source_ready(daemon, reason);
    tl_notify_turn(daemon->notify, ready, reason, tl_clock_ms());
}

static void run(struct tl_daemon *daemon, void *state)
{
    struct tl_backoff backoff;
    struct tl_log_limit limit = {0};
    bool was_ready = false;
    tl_backoff_init(&backoff, BACKOFF_BASE_MS, BACKOFF_LIMIT_MS);
    while (!daemon->stopping) {
        struct tl_error err = {0};
        bool ok = daemon->role->turn(state, tl_clock_ms(), &err);
        atomic_store(&daemon->turned_ms, tl_clock_ms());
        if (ok) {
            tl_backoff_reset(&backoff);
            if (!was_ready) {
                set_ready(daemon, true, "ready");
                tl_info("ready");
            }
        } else {
            back_off(daemon, &backoff, &limit, &err);
        }
        notify_manager(daemon);
        was_ready = ok;
        handle_signals(daemon, state);
    }
}

int tl_daemon_main(const struct tl_role *role, int argc, char **argv)
{
    struct tl_daemon daemon = {.role = role, .signal_fd = -1};
    int status = 1;
    daemon.config = tl_daemon_configure(role, argc, argv, NULL, NULL, &daemon.config_path, &status);
    if (daemon.config == NULL)
        return status;
    struct tl_error err = {0};
    void *state = NULL;
    if (open_daemon(&daemon, &err) && (state = role->start(&daemon, &err)) != NULL) {
        tl_info("started, version %s, id %s", TELLERLINE_VERSION, daemon.id);
        run(&daemon, state);
        tl_notify_stopping(daemon.notify);
        set_ready(&daemon, false, "stopping");
        role->stop(state);
        tl_info("stopped");
        status = 0;
    } else {
        const struct tl_log_fields fields = {.error = &err};
        tl_log(TL_LOG_FATAL, &fields, "cannot start");
        status = 1;
    }
    close_daemon(&daemon);
    return status;
}
