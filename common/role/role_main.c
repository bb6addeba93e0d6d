/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/role/admin.h"
#include "common/role/notify.h"
#include "common/role/role_main.h"

enum {
    BACKOFF_BASE_MS = 50,
    BACKOFF_LIMIT_MS = 2000,
    STUCK_MS = 30000, /* without a turn: one is bounded by a few timeouts of the store */
    LOG_EVERY_MS = 5000,
};

struct program {
    const struct tl_role *role;
    const struct tl_config *config;
    const char *config_path;
    struct tl_signals signals;
    bool stopping;
    struct tl_process *process;
    struct tl_reload_outcome reload;
    struct tl_admin *admin;
    struct tl_notify *notify;
    struct tl_backoff backoff;       /* after failed turns */
    struct tl_log_limit failure_log; /* of their errors */
    /* Shared with the admin listener's thread, as is process->ready. Only the loop's thread writes
     * them, so it reads them without the lock. */
    _Atomic int64_t turned_ms;
    pthread_mutex_t reason_lock;
    char reason[160];
};

/* ---- the admin listener ---- */

static bool source_live(void *context)
{
    struct program *program = context;
    return tl_clock_ms() - atomic_load(&program->turned_ms) < STUCK_MS;
}

static bool source_ready(void *context, char reason[160])
{
    struct program *program = context;
    pthread_mutex_lock(&program->reason_lock);
    bool ready = program->process->ready;
    snprintf(reason, 160, "%s", program->reason);
    pthread_mutex_unlock(&program->reason_lock);
    return ready;
}

static void source_metrics(void *context, struct tl_text *out)
{
    struct program *program = context;
    char reason[160];
    char label[48];
    snprintf(label, sizeof(label), "role=\"%s\"", program->role->name);
    tl_program_metrics(label, source_ready(program, reason), &program->reload, out);
    tl_metrics_write(&program->process->metrics, 1, label, out);
    tl_queue_metrics_write(program->process->queue_metrics, label, out);
}

/* ---- readiness ---- */

static void set_ready(struct program *program, bool ready, const char *reason)
{
    pthread_mutex_lock(&program->reason_lock);
    program->process->ready = ready;
    snprintf(program->reason, sizeof(program->reason), "%.150s", reason);
    pthread_mutex_unlock(&program->reason_lock);
}

/* After a turn without failure. */
static void update_ready(struct program *program)
{
    char detail[160];
    char reason[160];
    bool able = tl_process_able(program->process, detail);
    snprintf(reason, sizeof(reason), "%s%s%.140s", able ? "ready" : "",
             able && detail[0] != '\0' ? "; " : "", detail);
    if (program->process->ready == able && strcmp(reason, program->reason) == 0)
        return;
    if (!program->process->ready && able)
        tl_info("ready");
    set_ready(program, able, reason);
}

/* ---- the loop ---- */

static void handle_signals(struct program *program)
{
    enum tl_signal signal;
    while ((signal = tl_signals_next(&program->signals)) != TL_SIGNAL_NONE) {
        if (signal == TL_SIGNAL_STOP)
            program->stopping = true;
        else if (signal == TL_SIGNAL_RELOAD)
            tl_reload(&(struct tl_reload){.config_path = program->config_path,
                                          .role = program->role->name,
                                          .outcome = &program->reload});
    }
}

/* After a failed turn: marks the program not ready, logs at a limited rate, and waits. */
static void back_off(struct program *program, const struct tl_error *err)
{
    unsigned suppressed;
    set_ready(program, false, err->text);
    if (tl_log_allow(&program->failure_log, tl_clock_ms(), LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = err},
               "the store failed, trying again (%u more since the last line)", suppressed);
    (void)tl_signals_wait(&program->signals,
                          tl_backoff_next(&program->backoff, randombytes_random()));
}

static void loop(struct program *program)
{
    tl_backoff_init(&program->backoff, BACKOFF_BASE_MS, BACKOFF_LIMIT_MS);
    while (!program->stopping) {
        struct tl_error err = {0};
        bool ok = tl_process_turn(program->process, tl_clock_ms(), &err);
        atomic_store(&program->turned_ms, tl_clock_ms());
        if (ok) {
            tl_backoff_reset(&program->backoff);
            update_ready(program);
        } else {
            back_off(program, &err);
        }
        tl_notify_turn(program->notify, program->process->ready, program->reason, tl_clock_ms());
        handle_signals(program);
    }
}

/* ---- start and stop ---- */

static bool open_program(struct program *program, struct tl_error *err)
{
    const struct tl_admin_source source = {
        .context = program, .live = source_live, .ready = source_ready, .metrics = source_metrics};
    atomic_store(&program->turned_ms, tl_clock_ms());
    if (pthread_mutex_init(&program->reason_lock, NULL) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "cannot make a mutex");
    /* The signals first: threads inherit those that are blocked. */
    return tl_signals_open(&program->signals, err) &&
           (program->process =
                tl_process_new(program->role, program->config, &program->signals, err)) != NULL &&
           tl_notify_open(&program->notify, tl_clock_ms(), err) &&
           tl_admin_start(&program->admin, tl_program_listen(program->config, program->role->admin),
                          &source, NULL, err);
}

static void close_program(struct program *program)
{
    tl_admin_stop(&program->admin); /* it reads what the process has */
    tl_process_free(&program->process);
    tl_notify_free(&program->notify);
    tl_signals_close(&program->signals);
    pthread_mutex_destroy(&program->reason_lock);
    tl_config_free(&program->config);
}

int tl_role_main(const struct tl_role *role, int argc, char **argv)
{
    struct program program = {.role = role, .signals = {.fd = -1}, .reason = "starting"};
    struct tl_error err = {0};
    char name[48];
    int status;
    snprintf(name, sizeof(name), "tellerline-%s", role->name);
    const struct tl_program line = {.name = name,
                                    .summary = role->summary,
                                    .listeners = {role->admin},
                                    .out = stdout,
                                    .errors = stderr};
    if (!tl_program_parse(&line, argc, argv, &program.config_path, &status))
        return status;
    program.config = tl_program_start(name, role->name, program.config_path);
    if (program.config == NULL)
        return 1;
    bool ok = open_program(&program, &err);
    if (ok) {
        tl_info("started, version %s, id %s", TELLERLINE_VERSION, program.process->id);
        loop(&program);
        tl_notify_stopping(program.notify);
    } else {
        tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot start");
    }
    close_program(&program);
    if (ok)
        tl_info("stopped");
    return ok ? 0 : 1;
}
