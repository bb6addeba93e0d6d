/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/config/config.h"
#include "common/role/daemon.h"
#include "common/role/notify.h"
#include "common/role/program.h"
#include "common/role/signals.h"

enum {
    BACKOFF_BASE_MS = 50,
    BACKOFF_LIMIT_MS = 2000,
    STUCK_MS = 30000, /* without a turn: one is bounded by a few timeouts of the store */
    LOG_EVERY_MS = 5000,
};

struct tl_daemon {
    const struct tl_role *role;
    const struct tl_config *config;
    const char *config_path;
    char id[TL_PROCESS_ID_SIZE];
    struct tl_signals signals;
    bool stopping;
    struct tl_metrics *metrics;
    struct tl_queue_metrics *queue_metrics;
    struct tl_reload_outcome reload;
    struct tl_admin *admin;
    struct tl_notify *notify;
    struct tl_backoff backoff;       /* after failed turns */
    struct tl_log_limit failure_log; /* of their errors */
    /* Shared with the admin listener's thread. */
    _Atomic int64_t turned_ms;
    pthread_mutex_t reason_lock;
    bool ready;
    char reason[160];
    /* Of the turn: */
    bool able;
    char detail[160];
};

const struct tl_config *tl_daemon_config(const struct tl_daemon *daemon)
{
    return daemon->config;
}

struct tl_metrics *tl_daemon_metrics(const struct tl_daemon *daemon)
{
    return daemon->metrics;
}

struct tl_queue_metrics *tl_daemon_queue_metrics(const struct tl_daemon *daemon)
{
    return daemon->queue_metrics;
}

const char *tl_daemon_id(const struct tl_daemon *daemon)
{
    return daemon->id;
}

/* ---- signals ---- */

bool tl_daemon_stopping(const struct tl_daemon *daemon)
{
    return daemon->stopping || tl_signals_wait(&daemon->signals, 0);
}

bool tl_daemon_pause(const struct tl_daemon *daemon, int64_t ms)
{
    tl_signals_wait(&daemon->signals, ms);
    return true;
}

static void handle_signals(struct tl_daemon *daemon)
{
    enum tl_signal signal;
    while ((signal = tl_signals_next(&daemon->signals)) != TL_SIGNAL_NONE) {
        if (signal == TL_SIGNAL_STOP)
            daemon->stopping = true;
        else if (signal == TL_SIGNAL_RELOAD)
            tl_reload(&(struct tl_reload){.config_path = daemon->config_path,
                                          .role = daemon->role->name,
                                          .outcome = &daemon->reload});
    }
}

/* ---- readiness and the admin listener ---- */

static void set_ready(struct tl_daemon *daemon, bool ready, const char *reason)
{
    pthread_mutex_lock(&daemon->reason_lock);
    daemon->ready = ready;
    snprintf(daemon->reason, sizeof(daemon->reason), "%.150s", reason);
    pthread_mutex_unlock(&daemon->reason_lock);
}

void tl_daemon_report(struct tl_daemon *daemon, bool able, const char *detail)
{
    daemon->able = able;
    snprintf(daemon->detail, sizeof(daemon->detail), "%.150s", detail);
}

int64_t tl_daemon_wait_ms(const struct tl_daemon *daemon, int64_t wait_ms)
{
    return daemon->able && !daemon->ready ? 0 : wait_ms;
}

/* After a turn without failure: publishes what the role reported. */
static void update_ready(struct tl_daemon *daemon)
{
    char reason[160];
    if (daemon->able)
        snprintf(reason, sizeof(reason), "ready%s%.150s", daemon->detail[0] != '\0' ? "; " : "",
                 daemon->detail);
    else
        snprintf(reason, sizeof(reason), "%s", daemon->detail);
    if (daemon->ready == daemon->able && strcmp(reason, daemon->reason) == 0)
        return;
    if (!daemon->ready && daemon->able)
        tl_info("ready");
    set_ready(daemon, daemon->able, reason);
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
    tl_text_append(out, "# HELP tellerline_build_info The running version.\n# TYPE "
                        "tellerline_build_info gauge\n");
    tl_text_append(out, "tellerline_build_info{%s,version=\"%s\"} 1\n", label, TELLERLINE_VERSION);
    tl_text_append(
        out,
        "# HELP tellerline_ready 1 when /readyz answers 200.\n# TYPE tellerline_ready gauge\n");
    tl_text_append(out, "tellerline_ready{%s} %d\n", label, source_ready(daemon, reason) ? 1 : 0);
    tl_reload_write(&daemon->reload, label, out);
    struct tl_metrics *const blocks[] = {daemon->metrics};
    tl_metrics_write(blocks, 1, label, out);
    tl_queue_metrics_write(daemon->queue_metrics, label, out);
}

/* ---- start, loop, stop ---- */

static bool open_daemon(struct tl_daemon *daemon, struct tl_error *err)
{
    const struct tl_role *role = daemon->role;
    tl_program_id(role->name, daemon->id);
    daemon->metrics = tl_metrics_new(role->metrics, role->n_metrics);
    if (daemon->metrics == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the metrics");
    daemon->queue_metrics =
        tl_queue_metrics_new(role->queue_metrics, daemon->config->metrics.queues);
    if (daemon->queue_metrics == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the metrics of queues");
    atomic_store(&daemon->turned_ms, tl_clock_ms());
    if (pthread_mutex_init(&daemon->reason_lock, NULL) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "cannot make a mutex");
    set_ready(daemon, false, "starting");
    const struct tl_admin_source source = {
        .context = daemon, .live = source_live, .ready = source_ready, .metrics = source_metrics};
    return tl_signals_open(&daemon->signals, err) &&
           tl_notify_open(&daemon->notify, tl_clock_ms(), err) &&
           tl_admin_start(&daemon->admin, tl_program_listen(daemon->config, role->admin), &source,
                          NULL, err);
}

static void close_daemon(struct tl_daemon *daemon)
{
    tl_admin_stop(&daemon->admin);
    tl_notify_free(&daemon->notify);
    tl_signals_close(&daemon->signals);
    pthread_mutex_destroy(&daemon->reason_lock);
    tl_queue_metrics_free(&daemon->queue_metrics);
    free(daemon->metrics);
    tl_config_free(&daemon->config);
}

/* After a failed turn: marks the program not ready, logs at a limited rate, and waits. */
static void back_off(struct tl_daemon *daemon, const struct tl_error *err)
{
    unsigned suppressed;
    set_ready(daemon, false, err->text);
    if (tl_log_allow(&daemon->failure_log, tl_clock_ms(), LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = err},
               "the store failed, trying again (%u more since the last line)", suppressed);
    tl_daemon_pause(daemon, tl_backoff_next(&daemon->backoff, randombytes_random()));
}

static void run(struct tl_daemon *daemon, void *state)
{
    tl_backoff_init(&daemon->backoff, BACKOFF_BASE_MS, BACKOFF_LIMIT_MS);
    while (!daemon->stopping) {
        struct tl_error err = {0};
        tl_daemon_report(daemon, true, "");
        bool ok = daemon->role->turn(state, tl_clock_ms(), &err);
        atomic_store(&daemon->turned_ms, tl_clock_ms());
        if (!ok)
            back_off(daemon, &err);
        else
            tl_backoff_reset(&daemon->backoff);
        if (ok)
            update_ready(daemon);
        /* Only this thread writes them, so it reads them without the lock. */
        tl_notify_turn(daemon->notify, daemon->ready, daemon->reason, tl_clock_ms());
        handle_signals(daemon);
    }
}

int tl_daemon_main(const struct tl_role *role, int argc, char **argv)
{
    struct tl_daemon daemon = {.role = role, .signals = {.fd = -1}};
    char name[48];
    int status = 1;
    snprintf(name, sizeof(name), "tellerline-%s", role->name);
    const struct tl_program program = {
        .name = name, .summary = role->summary, .listeners = {role->admin}};
    daemon.config =
        tl_program_start(&program, role->name, argc, argv, &daemon.config_path, &status);
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
