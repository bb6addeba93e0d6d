#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "common/auth/ticket.h"
#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/role/listen.h"
#include "common/role/notify.h"
#include "common/role/start.h"
#include "common/store/store.h"
#include "worker/api/page_http.h"
#include "worker/api/secrets.h"
#include "worker/process/edge.h"
#include "worker/process/parent.h"
#include "worker/report/board.h"

enum {
    TICK_MS = 500,
    RESTART_BASE_MS = 100,
    RESTART_LIMIT_MS = 5000,
    PROVEN_MS = 10000, /* one that lived so long is started again without waiting */
    STOP_LIMIT_MS = 30000,
    STUCK_TICKS = 60, /* of the parent, without a beat of the child's loop: it is killed */
    ROLE_MAX = 24,
};

struct child {
    pid_t pid; /* 0: not running */
    struct tl_backoff backoff;
    int64_t started_ms;
    int64_t start_ms; /* not running: when to start it */
    int64_t beats;    /* seen last */
    unsigned silent_ticks;
};

struct parent {
    const struct tl_config *config;
    const char *config_path;
    pid_t pid;
    unsigned n;
    int *listen_fds;
    struct tl_board board;
    struct child *children; /* the n workers, and the admin process behind them */
    bool stopping, failed;
    int64_t kill_ms; /* stopping: when patience ends */
    struct tl_notify *notify;
    sigset_t signals;
};

/* The name of this process in its log; static, since the log borrows it. */
static char role_name[ROLE_MAX] = "worker";

static bool is_admin(const struct parent *parent, unsigned i)
{
    return i == parent->n;
}

static void name_of(const struct parent *parent, unsigned i, char name[ROLE_MAX])
{
    if (is_admin(parent, i))
        snprintf(name, ROLE_MAX, "worker.admin");
    else
        snprintf(name, ROLE_MAX, "worker.%u", i + 1);
}

/* ---- in the children ---- */

static int run_admin(struct parent *parent)
{
    struct tl_error err = {0};
    struct tl_admin *admin = NULL;
    const struct tl_admin_source source = tl_board_source(&parent->board);
    if (!tl_admin_start(&admin, &parent->config->admin.worker, &source, &err)) {
        tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "no admin listener");
        return 1;
    }
    atomic_store(&parent->board.head->admin_started, true);
    /* The signals are still blocked, in the listener's thread too. */
    int number;
    do {
        number = sigwaitinfo(&parent->signals, NULL);
    } while (number != SIGTERM && number != SIGINT);
    tl_admin_stop(&admin);
    return 0;
}

static int run_worker(struct parent *parent, unsigned i)
{
    for (unsigned other = 0; other < parent->n; other++) {
        if (other != i)
            close(parent->listen_fds[other]);
    }
    return tl_edge_run(&(struct tl_edge_settings){.role = role_name,
                                                  .config_path = parent->config_path,
                                                  .config = parent->config,
                                                  .listen_fd = parent->listen_fds[i],
                                                  .metrics = parent->board.metrics[i],
                                                  .slot = &parent->board.slots[i]});
}

/* A child dies with its parent. */
static int run_child(struct parent *parent, unsigned i)
{
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent->pid)
        return 1;
    name_of(parent, i, role_name);
    tl_start_log(parent->config, role_name);
    return is_admin(parent, i) ? run_admin(parent) : run_worker(parent, i);
}

/* ---- starting and ending ---- */

static void schedule(struct parent *parent, unsigned i)
{
    struct child *child = &parent->children[i];
    int64_t now_ms = tl_clock_ms();
    if (now_ms - child->started_ms >= PROVEN_MS)
        tl_backoff_reset(&child->backoff);
    child->start_ms = now_ms + tl_backoff_next(&child->backoff, randombytes_random());
}

/* Starts what is due. True in a new child, with its number in *number. */
static bool start_due(struct parent *parent, unsigned *number)
{
    int64_t now_ms = tl_clock_ms();
    for (unsigned i = 0; i <= parent->n; i++) {
        struct child *child = &parent->children[i];
        if (child->pid != 0 || child->start_ms > now_ms)
            continue;
        pid_t pid = fork();
        if (pid == 0) {
            *number = i;
            return true;
        }
        child->started_ms = now_ms;
        if (pid > 0) {
            child->pid = pid;
            child->silent_ticks = 0;
        } else {
            tl_warn("cannot start a process: %s", strerror(errno));
            schedule(parent, i);
        }
    }
    return false;
}

static void signal_workers(struct parent *parent, int number)
{
    for (unsigned i = 0; i < parent->n; i++) {
        if (parent->children[i].pid > 0)
            kill(parent->children[i].pid, number);
    }
}

static void begin_stop(struct parent *parent)
{
    if (parent->stopping)
        return;
    parent->stopping = true;
    tl_notify_stopping(parent->notify);
    parent->kill_ms = tl_clock_ms() + STOP_LIMIT_MS;
    signal_workers(parent, SIGTERM);
}

static void log_end(const struct parent *parent, unsigned i, pid_t pid, int status)
{
    char name[ROLE_MAX];
    name_of(parent, i, name);
    if (WIFSIGNALED(status))
        tl_log(parent->stopping ? TL_LOG_INFO : TL_LOG_ERROR, NULL,
               "%s (process %d) was ended by signal %d (%s)", name, (int)pid, WTERMSIG(status),
               strsignal(WTERMSIG(status)));
    else
        tl_log(parent->stopping || WEXITSTATUS(status) == 0 ? TL_LOG_INFO : TL_LOG_ERROR, NULL,
               "%s (process %d) ended with status %d", name, (int)pid, WEXITSTATUS(status));
}

static void bury(struct parent *parent, unsigned i, int status)
{
    struct child *child = &parent->children[i];
    log_end(parent, i, child->pid, status);
    child->pid = 0;
    if (!is_admin(parent, i))
        tl_board_clear(&parent->board, i);
    if (parent->stopping)
        return;
    if (is_admin(parent, i) && !atomic_load(&parent->board.head->admin_started)) {
        parent->failed = true; /* the address is taken, say: no reason to try again and again */
        begin_stop(parent);
        return;
    }
    schedule(parent, i);
    atomic_fetch_add(&parent->board.head->restarts, 1);
}

static void reap(struct parent *parent)
{
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (unsigned i = 0; i <= parent->n; i++) {
            if (parent->children[i].pid == pid)
                bury(parent, i, status);
        }
    }
}

/* ---- the parent's loop ---- */

/* Kills workers whose loop stands still. Counts own ticks, not time: when the whole machine was
 * suspended, everybody was. */
static void watch(struct parent *parent)
{
    for (unsigned i = 0; i < parent->n; i++) {
        struct child *child = &parent->children[i];
        int64_t beats = atomic_load(&parent->board.slots[i].beats);
        bool silent = child->pid != 0 && beats == child->beats;
        child->beats = beats;
        child->silent_ticks = silent ? child->silent_ticks + 1 : 0;
        if (child->silent_ticks < STUCK_TICKS)
            continue;
        tl_log(TL_LOG_ERROR, NULL, "worker.%u (process %d) does not turn any more: killing it",
               i + 1, (int)child->pid);
        kill(child->pid, SIGKILL);
        child->silent_ticks = 0;
    }
}

static bool workers_gone(const struct parent *parent)
{
    for (unsigned i = 0; i < parent->n; i++) {
        if (parent->children[i].pid != 0)
            return false;
    }
    return true;
}

/* Once stopping: the workers finish what they hold, then the admin listener goes. True when all are
 * gone. */
static bool stopped(struct parent *parent)
{
    const struct child *admin = &parent->children[parent->n];
    if (tl_clock_ms() >= parent->kill_ms) {
        tl_warn("some processes have not ended in %d s: killing them", STOP_LIMIT_MS / 1000);
        signal_workers(parent, SIGKILL);
        parent->kill_ms = INT64_MAX;
    }
    if (!workers_gone(parent))
        return false;
    if (admin->pid != 0)
        kill(admin->pid, SIGTERM);
    return admin->pid == 0;
}

static void take_signal(struct parent *parent, int number)
{
    if (number == SIGTERM || number == SIGINT)
        begin_stop(parent);
    else if (number == SIGHUP)
        signal_workers(parent, SIGHUP);
}

/* Waits for a signal, at most one tick. True when a whole tick has passed. */
static bool wait_for_signal(struct parent *parent, int64_t tick_ms)
{
    int64_t left_ms = tick_ms - tl_clock_ms();
    if (left_ms <= 0)
        return true;
    const struct timespec timeout = {.tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000};
    take_signal(parent, sigtimedwait(&parent->signals, NULL, &timeout));
    return false;
}

/* As /readyz sees it: one process that serves is enough. While stopping only the watchdog counts.
 */
static void notify_manager(struct parent *parent)
{
    const struct tl_admin_source source = tl_board_source(&parent->board);
    char reason[160];
    bool ready = source.ready(source.context, reason);
    tl_notify_turn(parent->notify, ready, parent->stopping ? "stopping" : reason, tl_clock_ms());
}

static int run(struct parent *parent)
{
    int64_t tick_ms = tl_clock_ms() + TICK_MS;
    unsigned number;
    while (!parent->stopping || !stopped(parent)) {
        atomic_store(&parent->board.head->parent_ms, tl_clock_ms());
        if (!parent->stopping && start_due(parent, &number))
            return run_child(parent, number);
        if (wait_for_signal(parent, tick_ms)) {
            watch(parent);
            tick_ms = tl_clock_ms() + TICK_MS;
        }
        reap(parent);
        notify_manager(parent);
    }
    tl_info("stopped");
    return parent->failed ? 1 : 0;
}

/* ---- before the first fork ---- */

/* What would make every child fail is found here. */
static bool check_settings(const struct tl_config *config, struct tl_error *err)
{
    const struct tl_redis_settings redis = {.url = config->redis.url,
                                            .ca_file = config->redis.ca_file,
                                            .timeout_ms = config->redis.timeout_ms};
    struct tl_secrets secrets = {0};
    struct tl_brand *brand = NULL;
    struct tl_store *store = NULL;
    bool ok = tl_secrets_load(&secrets, config, err) &&
              (brand = tl_page_load_brand(config, err)) != NULL &&
              (store = tl_store_new(&redis, err)) != NULL;
    tl_store_free(&store);
    tl_brand_free(&brand);
    tl_secrets_free(&secrets);
    return ok;
}

/* Sockets that share a port would silently share it with those of any other program of this user,
 * too: so the port is first taken alone. */
static bool choose_port(struct tl_listen *listen, struct tl_error *err)
{
    int fd = tl_listen_open(listen, false, &listen->port, err);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool open_sockets(struct parent *parent, struct tl_error *err)
{
    struct tl_listen listen = parent->config->http.listen;
    if (!choose_port(&listen, err))
        return false;
    for (unsigned i = 0; i < parent->n; i++) {
        int port = 0;
        parent->listen_fds[i] = tl_listen_open(&listen, true, &port, err);
        if (parent->listen_fds[i] < 0)
            return false;
        listen.port = port;
    }
    tl_info("listening on %s:%d with %u processes", listen.host, listen.port, parent->n);
    return true;
}

static void block_signals(struct parent *parent)
{
    sigemptyset(&parent->signals);
    sigaddset(&parent->signals, SIGTERM);
    sigaddset(&parent->signals, SIGINT);
    sigaddset(&parent->signals, SIGHUP);
    sigaddset(&parent->signals, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &parent->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static bool prepare(struct parent *parent, struct tl_error *err)
{
    unsigned n = parent->n;
    parent->listen_fds = calloc(n, sizeof(int));
    parent->children = calloc(n + 1, sizeof(struct child));
    if (parent->listen_fds == NULL || parent->children == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %u processes", n);
    for (unsigned i = 0; i < n; i++)
        parent->listen_fds[i] = -1;
    for (unsigned i = 0; i <= n; i++)
        tl_backoff_init(&parent->children[i].backoff, RESTART_BASE_MS, RESTART_LIMIT_MS);
    /* Without an admin listener its process is one that is never started. */
    if (parent->config->admin.worker.port < 0)
        parent->children[n].start_ms = INT64_MAX;
    block_signals(parent);
    return tl_notify_open(&parent->notify, tl_clock_ms(), err) &&
           check_settings(parent->config, err) && open_sockets(parent, err) &&
           tl_board_init(&parent->board, n, err);
}

static void release(struct parent *parent)
{
    for (unsigned i = 0; parent->listen_fds != NULL && i < parent->n; i++) {
        if (parent->listen_fds[i] >= 0)
            close(parent->listen_fds[i]);
    }
    if (parent->board.memory != NULL)
        tl_board_deinit(&parent->board);
    tl_notify_free(&parent->notify);
    free(parent->listen_fds);
    free(parent->children);
}

int tl_parent_run(const struct tl_config *config, const char *config_path, unsigned processes)
{
    struct tl_error err = {0};
    struct parent parent = {
        .config = config, .config_path = config_path, .pid = getpid(), .n = processes};
    int status = 1;
    if (prepare(&parent, &err))
        status = run(&parent);
    else
        tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot start");
    release(&parent);
    return status;
}
