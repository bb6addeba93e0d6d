/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/auth/ticket.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/config/config.h"
#include "common/role/listen.h"
#include "common/role/notify.h"
#include "common/role/program.h"
#include "common/role/supervisor.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/store.h"
#include "worker/page/page_text.h"
#include "worker/process/process.h"

enum {
    TURN_MS = 500,
    RESTART_BASE_MS = 100,
    RESTART_LIMIT_MS = 5000,
    STOP_LIMIT_MS = 30000,
    KEYS_LOG_MS = 5000,
    NAME_SIZE = 24,
};

/* The workers finish the requests they hold before the admin listener stops. */
enum { STAGE_WORKERS, STAGE_ADMIN };

struct parent;

struct process {
    struct parent *parent;
    char name[NAME_SIZE]; /* "worker.2" or "worker.admin", for the log */
    unsigned i;           /* of a worker: its socket and its slot; n: the admin process */
    pid_t pid;            /* of the last start */
    struct tl_hearing hearing;
};

struct parent {
    struct tl_shared shared;
    unsigned n;
    int *listen_fds;
    unsigned sockets;          /* different ones among them: process i has socket i % sockets */
    struct process *processes; /* the n workers, then the admin process */
    struct tl_supervisor *supervisor;
    bool failed; /* the admin listener could not start */
    struct tl_notify *notify;
};

/* ---- in the children ---- */

static int run_child(void *context)
{
    const struct process *process = context;
    struct parent *parent = process->parent;
    tl_program_log(parent->shared.files, process->name);
    if (process->i == parent->n)
        return tl_admin_process_run(&parent->shared, process->name);
    for (unsigned other = 0; other < parent->n; other++) {
        if (other != process->i)
            close(parent->listen_fds[other]);
    }
    return tl_edge_run(&parent->shared, process->name, process->i, parent->listen_fds[process->i]);
}

/* ---- what the supervisor calls ---- */

static void free_files(struct tl_shared *shared)
{
    if (shared->files != shared->config)
        tl_config_free(&shared->files);
    tl_event_looks_free(&shared->events);
    tl_secrets_free(&shared->secrets);
}

/* Keeps what the processes are about to read, for those that are started again. Of a mistake they
 * say what it is, and go on with what they have. */
static void read_again(void *context)
{
    struct parent *parent = context;
    struct tl_shared *shared = &parent->shared;
    struct tl_error err = {0};
    struct tl_event_looks events = {0};
    struct tl_secrets secrets = {0};
    const struct tl_config *config = tl_config_load(shared->config_path, &err);
    if (config == NULL || !tl_page_read(config, shared->languages, NULL, &events, &err) ||
        (parent->n > 0 && !tl_secrets_load(&secrets, config, false, &err))) {
        tl_event_looks_free(&events);
        tl_config_free(&config);
        return;
    }
    free_files(shared);
    shared->files = config;
    shared->events = events;
    shared->secrets = secrets;
}

static pid_t start(void *context)
{
    struct process *process = context;
    process->pid = tl_supervisor_fork(process->parent->supervisor, run_child, process);
    if (process->pid < 0)
        tl_warn("cannot start a process: %s", strerror(errno));
    return process->pid;
}

static void log_end(const struct process *process, int status, bool stopping)
{
    bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    enum tl_log_level level = stopping || ended_well ? TL_LOG_INFO : TL_LOG_ERROR;
    if (WIFSIGNALED(status))
        tl_log(level, NULL, "%s (process %d) was ended by signal %d (%s)", process->name,
               (int)process->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        tl_log(level, NULL, "%s (process %d) ended with status %d", process->name,
               (int)process->pid, WEXITSTATUS(status));
}

static bool worker_ended(void *context, int status, int64_t delay_ms)
{
    struct process *process = context;
    struct tl_board *board = &process->parent->shared.board;
    log_end(process, status, delay_ms < 0);
    process->hearing = (struct tl_hearing){0};
    tl_board_clear(board, process->i);
    if (delay_ms >= 0)
        atomic_fetch_add(&board->head->restarts, 1);
    return true;
}

static bool admin_ended(void *context, int status, int64_t delay_ms)
{
    const struct process *process = context;
    struct tl_board_head *head = process->parent->shared.board.head;
    log_end(process, status, delay_ms < 0);
    atomic_store(&head->admin_readiness, TL_NOT_STARTED);
    if (delay_ms < 0)
        return false;
    if (!atomic_load(&head->admin_started) && WIFEXITED(status)) {
        /* For example, its address is in use: a retry does not help. */
        process->parent->failed = true;
        return false;
    }
    atomic_fetch_add(&head->restarts, 1);
    return true;
}

static void log_kill(void *context, enum tl_kill_reason reason)
{
    const struct process *process = context;
    if (reason == TL_KILL_DEAF) {
        atomic_fetch_add(&process->parent->shared.board.head->deaf, 1);
        tl_log(TL_LOG_ERROR, NULL,
               "%s (process %d) is deaf, it leaves connections waiting for %d s: killing it",
               process->name, (int)process->pid, TL_HEARING_LOST_MS / 1000);
    } else if (reason == TL_KILL_STUCK)
        tl_log(TL_LOG_ERROR, NULL, "%s (process %d) is stuck, its loop has stopped: killing it",
               process->name, (int)process->pid);
    else
        tl_warn("%s (process %d) has not ended in %d s: killing it", process->name,
                (int)process->pid, STOP_LIMIT_MS / 1000);
}

/* Do connections wait at its socket that nobody takes? Processes with the same passed socket take
 * them for each other. */
static bool worker_deaf(void *context)
{
    struct process *process = context;
    struct parent *parent = process->parent;
    const struct tl_slot *slot = &parent->shared.board.slots[process->i];
    int64_t accepted = 0;
    for (unsigned i = process->i % parent->sockets; i < parent->n; i += parent->sockets)
        accepted += atomic_load(&parent->shared.board.slots[i].accepted);
    bool waiting = atomic_load(&slot->accepts) && tl_hearing_waits(parent->listen_fds[process->i]);
    return tl_hearing_lost(&process->hearing, waiting, accepted, atomic_load(&slot->beats));
}

static int64_t worker_beats(void *context)
{
    const struct process *process = context;
    return atomic_load(&process->parent->shared.board.slots[process->i].beats);
}

static bool add_processes(struct parent *parent, struct tl_error *err)
{
    for (unsigned i = 0; i < parent->n; i++) {
        struct process *process = &parent->processes[i];
        *process = (struct process){.parent = parent, .i = i};
        snprintf(process->name, sizeof(process->name), "worker.%u", i + 1);
        const struct tl_child worker = {.context = process,
                                        .start = start,
                                        .ended = worker_ended,
                                        .killing = log_kill,
                                        .beats = worker_beats,
                                        .deaf = worker_deaf,
                                        .stop_stage = STAGE_WORKERS,
                                        .stop_limit_ms = STOP_LIMIT_MS};
        if (!tl_supervisor_add(parent->supervisor, &worker, err))
            return false;
    }
    struct process *process = &parent->processes[parent->n];
    *process = (struct process){.parent = parent, .i = parent->n, .name = "worker.admin"};
    const struct tl_child admin = {.context = process,
                                   .start = start,
                                   .ended = admin_ended,
                                   .killing = log_kill,
                                   .stop_stage = STAGE_ADMIN,
                                   .stop_limit_ms = INT64_MAX};
    return parent->shared.config->admin.worker.port < 0 ||
           tl_supervisor_add(parent->supervisor, &admin, err);
}

/* ---- the parent's loop ---- */

static void turn(struct parent *parent)
{
    struct tl_error err = {0};
    char reason[160];
    if (!tl_supervisor_wait(parent->supervisor, NULL, 0, TURN_MS, &err))
        tl_warn("%s", err.text);
    int64_t now_ms = tl_clock_ms();
    atomic_store(&parent->shared.board.head->parent_ms, now_ms);
    tl_supervisor_turn(parent->supervisor, now_ms);
    /* As /readyz sees it: one process that serves is enough. */
    const struct tl_admin_source source = tl_board_source(&parent->shared.board);
    bool ready = source.ready(source.context, reason);
    tl_notify_turn(parent->notify, ready,
                   tl_supervisor_stopping(parent->supervisor) ? "stopping" : reason, now_ms);
}

static int run(struct parent *parent)
{
    atomic_store(&parent->shared.board.head->parent_ms, tl_clock_ms());
    while (tl_supervisor_stop_asked(parent->supervisor) == 0 && !parent->failed)
        turn(parent);
    tl_notify_stopping(parent->notify);
    tl_supervisor_stop(parent->supervisor, tl_clock_ms());
    while (!tl_supervisor_stopped(parent->supervisor))
        turn(parent);
    tl_info("stopped");
    return parent->failed ? 1 : 0;
}

/* ---- before the first fork ---- */

/* May missing key files be made at a start? Visitors lose their tickets and passes with the keys,
 * so keys are made only while no visitor is in a queue. */
enum key_files {
    KEYS_FINE,    /* they exist, or may be made */
    KEYS_LOST,    /* one is missing, and a queue has visitors */
    KEYS_UNKNOWN, /* one is missing, and the store does not answer */
};

/* The file with the keys of tickets or passes that does not exist; NULL when both do. */
static const char *missing_file(const struct tl_config *config)
{
    const char *const paths[] = {config->secrets.ticket_keys, config->secrets.pass_keys};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (access(paths[i], F_OK) != 0 && errno == ENOENT)
            return paths[i];
    }
    return NULL;
}

/* Writes the name of a queue with visitors; "" when there is none. */
static bool find_visitors(struct tl_store *store, const struct tl_config *config,
                          char queue[TL_QUEUE_NAME_MAX + 1], struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    queue[0] = '\0';
    bool ok = tl_store_connect(store, err) &&
              tl_queue_list(tl_store_common(store), config->redis.key_prefix, &names, &n, err);
    for (size_t i = 0; ok && queue[0] == '\0' && i < n + config->n_queues; i++) {
        const char *name = i < n ? names[i] : config->queues[i - n].name;
        struct tl_keys keys;
        tl_keys_init(&keys, config->redis.key_prefix, name);
        struct tl_reply *reply =
            tl_ask(tl_store_of(store, name), err, "EXISTS", keys.names[TL_KEY_WAITING],
                   keys.names[TL_KEY_ACTIVE], NULL);
        ok = reply != NULL;
        if (ok && tl_reply_integer(reply) > 0)
            snprintf(queue, TL_QUEUE_NAME_MAX + 1, "%s", name);
        tl_reply_free(reply);
    }
    free(names);
    return ok;
}

/* Looks for the files with the keys of tickets and passes, and asks the store when one is missing.
 * err says what to do, unless they are fine. */
static enum key_files look_for_keys(const struct tl_config *config, struct tl_error *err)
{
    const struct tl_redis_settings redis = tl_redis_settings_of(config, NULL);
    char queue[TL_QUEUE_NAME_MAX + 1] = "";
    if (missing_file(config) == NULL)
        return KEYS_FINE;
    struct tl_store *store = tl_store_new(&redis, err);
    bool answered = store != NULL && find_visitors(store, config, queue, err);
    tl_store_free(&store);
    /* Another worker may have made it meanwhile: the visitors may be that one's. */
    const char *path = missing_file(config);
    if (path == NULL || (answered && queue[0] == '\0'))
        return KEYS_FINE;
    if (!answered) {
        tl_error_prefix(err,
                        "%s does not exist; it is made only while no visitor is in a queue, "
                        "and the store does not answer",
                        path);
        return KEYS_UNKNOWN;
    }
    tl_error_set(err, TL_ERR_INVALID,
                 "%s does not exist, and visitors in queue %s hold what its keys signed: restore "
                 "it from a backup or from another worker, or correct the path (a relative one "
                 "starts at the folder of the configuration file)",
                 path, queue);
    return KEYS_LOST;
}

/* While a key file is missing: waits until the store says whether the file may be made, or until
 * the operator stops the program. */
static bool wait_for_keys(struct parent *parent, struct tl_error *err)
{
    struct tl_log_limit limit = {0};
    while (tl_supervisor_stop_asked(parent->supervisor) == 0) {
        struct tl_error problem = {0};
        unsigned suppressed;
        enum key_files files = look_for_keys(parent->shared.config, &problem);
        if (files != KEYS_UNKNOWN) {
            *err = problem;
            return files == KEYS_FINE;
        }
        int64_t now_ms = tl_clock_ms();
        if (tl_log_allow(&limit, now_ms, KEYS_LOG_MS, &suppressed))
            tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &problem},
                   "waiting for the store");
        tl_notify_turn(parent->notify, false, "waiting for the store", now_ms);
        if (!tl_supervisor_wait(parent->supervisor, NULL, 0, TURN_MS, err))
            return false;
        tl_supervisor_turn(parent->supervisor, tl_clock_ms());
    }
    return false;
}

/* Opens the listening sockets, one for each process; or takes those that another program keeps open
 * for it, which the processes share. */
static bool open_sockets(struct parent *parent, struct tl_error *err)
{
    const struct tl_listen *listen = &parent->shared.config->http.listen;
    unsigned taken;
    int port;
    if (!tl_listen_take(parent->listen_fds, parent->n, &taken, err))
        return false;
    parent->shared.keeps_listening = taken > 0;
    parent->sockets = taken > 0 ? taken : parent->n;
    if (taken == 0) {
        if (!tl_listen_share(listen, parent->listen_fds, parent->n, &port, err))
            return false;
        tl_info("listening on %s:%d with %u processes", listen->host, port, parent->n);
        return true;
    }
    for (unsigned i = taken; i < parent->n; i++) {
        parent->listen_fds[i] = fcntl(parent->listen_fds[i % taken], F_DUPFD_CLOEXEC, 0);
        if (parent->listen_fds[i] < 0)
            return tl_error_set(err, TL_ERR_SYSTEM, "a listening socket: %s", strerror(errno));
    }
    tl_info("listening on %u sockets that were passed, with %u processes", taken, parent->n);
    return true;
}

static bool prepare_visitors(struct parent *parent, struct tl_error *err)
{
    return wait_for_keys(parent, err) &&
           tl_secrets_load(&parent->shared.secrets, parent->shared.config, true, err) &&
           open_sockets(parent, err);
}

/* No process for visitors: no keys of theirs are made, and their port stays closed. */
static bool prepare_operators(const struct parent *parent, struct tl_error *err)
{
    if (parent->shared.config->admin.worker.port < 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "nothing to serve: worker.processes is 0, and admin.worker is empty");
    tl_info("no visitors are served (worker.processes: 0): this is the admin listener alone");
    return true;
}

static bool prepare(struct parent *parent, struct tl_error *err)
{
    const struct tl_supervisor_settings restarts = {.restart_base_ms = RESTART_BASE_MS,
                                                    .restart_limit_ms = RESTART_LIMIT_MS,
                                                    .reload = read_again,
                                                    .context = parent};
    const struct tl_config *config = parent->shared.config;
    const struct tl_redis_settings redis = tl_redis_settings_of(config, NULL);
    unsigned n = parent->n;
    parent->listen_fds = calloc(n + 1, sizeof(int));
    parent->processes = calloc(n + 1, sizeof(struct process));
    if (parent->listen_fds == NULL || parent->processes == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %u processes", n);
    for (unsigned i = 0; i < n; i++)
        parent->listen_fds[i] = -1;
    parent->supervisor = tl_supervisor_new(&restarts, err);
    /* Settings that would make every child fail are found before anything waits for the store. */
    struct tl_store *store = tl_store_new(&redis, err);
    parent->shared.languages = tl_languages_new(config->brand.languages, err);
    bool ok = store != NULL && parent->shared.languages != NULL &&
              tl_page_read(config, parent->shared.languages, &parent->shared.brand,
                           &parent->shared.events, err) &&
              tl_zone_set(config->brand.timezone, err);
    tl_store_free(&store);
    return ok && parent->supervisor != NULL &&
           tl_notify_open(&parent->notify, tl_clock_ms(), err) &&
           (n > 0 ? prepare_visitors(parent, err) : prepare_operators(parent, err)) &&
           add_processes(parent, err) &&
           tl_board_init(&parent->shared.board, n, parent->shared.config->metrics.max_queues,
                         err) &&
           (parent->shared.limiter = tl_limiter_new(err)) != NULL &&
           (parent->shared.sharing = tl_sharing_new(err)) != NULL;
}

static void release(struct parent *parent)
{
    tl_supervisor_free(&parent->supervisor);
    for (unsigned i = 0; parent->listen_fds != NULL && i < parent->n; i++) {
        if (parent->listen_fds[i] >= 0)
            close(parent->listen_fds[i]);
    }
    if (parent->shared.board.memory != NULL)
        tl_board_deinit(&parent->shared.board);
    tl_limiter_free(&parent->shared.limiter);
    tl_sharing_free(&parent->shared.sharing);
    tl_notify_free(&parent->notify);
    free_files(&parent->shared);
    tl_brand_free(&parent->shared.brand);
    tl_languages_free(&parent->shared.languages);
    free(parent->listen_fds);
    free(parent->processes);
}

int tl_parent_run(const struct tl_config *config, const char *config_path, unsigned processes)
{
    struct tl_error err = {0};
    struct parent parent = {
        .shared = {.config = config, .files = config, .config_path = config_path}, .n = processes};
    int status = 1;
    if (prepare(&parent, &err))
        status = run(&parent);
    else if (parent.supervisor != NULL && tl_supervisor_stop_asked(parent.supervisor) > 0)
        status = 0;
    else
        tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot start");
    release(&parent);
    return status;
}
