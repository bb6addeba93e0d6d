/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/role/signals.h"
#include "common/role/supervisor.h"

enum {
    FDS_MAX = 64,
    PROVEN_MS = 10000, /* a child that lived this long starts the back-off from its base */
    TICK_MS = 500,
    STUCK_TICKS = 60,
    SAME_STOP_MS = 500,
};

enum state { WAITING, RUNNING, ENDED };

struct entry {
    struct tl_child child;
    enum state state;
    pid_t pid; /* while RUNNING */
    struct tl_backoff backoff;
    int64_t started_ms;
    int64_t due_ms; /* WAITING: when to start it */
    int64_t beats;  /* at the last tick */
    unsigned silent_ticks;
    bool stop_sent, kill_sent;
    int64_t kill_ms; /* once stop_sent: when it is killed */
};

struct tl_supervisor {
    struct tl_supervisor_settings settings;
    struct tl_signals signals;
    struct entry *entries;
    size_t n;
    int64_t tick_ms; /* the next look at the heartbeats */
    unsigned stop_asked;
    int64_t stop_asked_ms; /* the last time */
    bool stopping, killing;
};

struct tl_supervisor *tl_supervisor_new(const struct tl_supervisor_settings *settings,
                                        struct tl_error *err)
{
    struct tl_supervisor *supervisor = calloc(1, sizeof(*supervisor));
    if (supervisor == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the supervisor");
        return NULL;
    }
    supervisor->settings = *settings;
    if (!tl_signals_open(&supervisor->signals, err)) {
        free(supervisor);
        return NULL;
    }
    return supervisor;
}

static void kill_entry(const struct entry *entry)
{
    kill(entry->child.own_group ? -entry->pid : entry->pid, SIGKILL);
}

void tl_supervisor_free(struct tl_supervisor **supervisor)
{
    if (*supervisor == NULL)
        return;
    for (size_t i = 0; i < (*supervisor)->n; i++) {
        const struct entry *entry = &(*supervisor)->entries[i];
        if (entry->state != RUNNING)
            continue;
        kill_entry(entry);
        while (waitpid(entry->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    tl_signals_close(&(*supervisor)->signals);
    free((*supervisor)->entries);
    free(*supervisor);
    *supervisor = NULL;
}

bool tl_supervisor_add(struct tl_supervisor *supervisor, const struct tl_child *child,
                       struct tl_error *err)
{
    struct entry *entries =
        reallocarray(supervisor->entries, supervisor->n + 1, sizeof(*supervisor->entries));
    if (entries == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for another process");
    supervisor->entries = entries;
    struct entry *entry = &entries[supervisor->n++];
    *entry = (struct entry){.child = *child, .due_ms = INT64_MIN};
    tl_backoff_init(&entry->backoff, supervisor->settings.restart_base_ms,
                    supervisor->settings.restart_limit_ms);
    return true;
}

pid_t tl_supervisor_fork(const struct tl_supervisor *supervisor, int (*run)(void *context),
                         void *context)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    close(supervisor->signals.fd);
    /* The parent may have died before it could be watched. */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(1);
    exit(run(context));
}

/* ---- one turn ---- */

/* Schedules the next start; returns the delay. */
static int64_t schedule(struct entry *entry, int64_t now_ms)
{
    int64_t delay_ms = tl_backoff_next(&entry->backoff, randombytes_random());
    entry->state = WAITING;
    entry->due_ms = now_ms + delay_ms;
    return delay_ms;
}

/* Notes which children have ended and schedules their restart, unless they were told to stop. */
static void reap(struct tl_supervisor *supervisor, int64_t now_ms)
{
    for (size_t i = 0; i < supervisor->n; i++) {
        struct entry *entry = &supervisor->entries[i];
        int status;
        if (entry->state != RUNNING || waitpid(entry->pid, &status, WNOHANG) != entry->pid)
            continue;
        entry->state = ENDED;
        entry->pid = 0;
        if (entry->stop_sent) {
            entry->child.ended(entry->child.context, status, -1);
            continue;
        }
        if (now_ms - entry->started_ms >= PROVEN_MS)
            tl_backoff_reset(&entry->backoff);
        if (!entry->child.ended(entry->child.context, status, schedule(entry, now_ms)))
            entry->state = ENDED;
    }
}

static void start_due(struct tl_supervisor *supervisor, int64_t now_ms)
{
    for (size_t i = 0; i < supervisor->n; i++) {
        struct entry *entry = &supervisor->entries[i];
        if (entry->state != WAITING || entry->due_ms > now_ms)
            continue;
        entry->started_ms = now_ms;
        entry->silent_ticks = 0;
        entry->pid = entry->child.start(entry->child.context);
        if (entry->pid > 0)
            entry->state = RUNNING;
        else
            schedule(entry, now_ms);
    }
}

/* Has the child's loop not turned for too long? Counts ticks instead of time: while the machine is
 * suspended, no loop turns. */
static bool is_stuck(struct entry *entry)
{
    if (entry->child.beats == NULL)
        return false;
    int64_t beats = entry->child.beats(entry->child.context);
    entry->silent_ticks = beats == entry->beats ? entry->silent_ticks + 1 : 0;
    entry->beats = beats;
    if (entry->silent_ticks < STUCK_TICKS)
        return false;
    entry->silent_ticks = 0;
    return true;
}

/* Kills children that are stuck or deaf. */
static void watch(struct tl_supervisor *supervisor, int64_t now_ms)
{
    if (now_ms < supervisor->tick_ms)
        return;
    supervisor->tick_ms = now_ms + TICK_MS;
    for (size_t i = 0; i < supervisor->n; i++) {
        struct entry *entry = &supervisor->entries[i];
        if (entry->state != RUNNING)
            continue;
        bool stuck = is_stuck(entry);
        if (!stuck && (entry->child.deaf == NULL || !entry->child.deaf(entry->child.context)))
            continue;
        entry->child.killing(entry->child.context, stuck ? TL_KILL_STUCK : TL_KILL_DEAF);
        kill_entry(entry);
    }
}

static void handle_signals(struct tl_supervisor *supervisor, int64_t now_ms)
{
    const struct tl_supervisor_settings *settings = &supervisor->settings;
    enum tl_signal signal;
    while ((signal = tl_signals_next(&supervisor->signals)) != TL_SIGNAL_NONE) {
        if (signal == TL_SIGNAL_CHILD)
            continue;
        if (signal == TL_SIGNAL_STOP || settings->hangup_stops) {
            if (supervisor->stop_asked == 0 || now_ms - supervisor->stop_asked_ms >= SAME_STOP_MS)
                supervisor->stop_asked++;
            supervisor->stop_asked_ms = now_ms;
            continue;
        }
        if (settings->reload != NULL)
            settings->reload(settings->context);
        for (size_t i = 0; i < supervisor->n; i++)
            if (supervisor->entries[i].state == RUNNING)
                kill(supervisor->entries[i].pid, SIGHUP);
    }
}

/* ---- the stop ---- */

static void stop_entry(const struct tl_supervisor *supervisor, struct entry *entry, int64_t now_ms)
{
    if (!entry->stop_sent) {
        int64_t limit_ms = supervisor->killing ? 0 : entry->child.stop_limit_ms;
        entry->stop_sent = true;
        entry->kill_ms = limit_ms < INT64_MAX ? now_ms + limit_ms : INT64_MAX;
        /* The process passes it on to its own children, in its order. */
        kill(entry->pid, entry->child.stop_signal != 0 ? entry->child.stop_signal : SIGTERM);
    }
    if (entry->kill_sent || now_ms < entry->kill_ms)
        return;
    entry->kill_sent = true;
    entry->child.killing(entry->child.context, TL_KILL_LATE);
    kill_entry(entry);
}

/* Tells the children of the lowest stage with one that runs to stop, and kills those that are late.
 * Children of later stages are kept running meanwhile. */
static void advance_stop(struct tl_supervisor *supervisor, int64_t now_ms)
{
    unsigned stage = UINT_MAX;
    for (size_t i = 0; i < supervisor->n; i++) {
        const struct entry *entry = &supervisor->entries[i];
        if (entry->state == RUNNING && entry->child.stop_stage < stage)
            stage = entry->child.stop_stage;
    }
    for (size_t i = 0; i < supervisor->n; i++) {
        struct entry *entry = &supervisor->entries[i];
        if (entry->child.stop_stage > stage)
            continue;
        if (entry->state == WAITING)
            entry->state = ENDED;
        else if (entry->state == RUNNING)
            stop_entry(supervisor, entry, now_ms);
    }
}

void tl_supervisor_stop(struct tl_supervisor *supervisor, int64_t now_ms)
{
    supervisor->stopping = true;
    advance_stop(supervisor, now_ms);
}

void tl_supervisor_kill(struct tl_supervisor *supervisor, int64_t now_ms)
{
    supervisor->killing = true;
    for (size_t i = 0; i < supervisor->n; i++) {
        if (supervisor->entries[i].stop_sent)
            supervisor->entries[i].kill_ms = now_ms;
    }
    tl_supervisor_stop(supervisor, now_ms);
}

bool tl_supervisor_stopping(const struct tl_supervisor *supervisor)
{
    return supervisor->stopping;
}

bool tl_supervisor_stopped(const struct tl_supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->n; i++) {
        if (supervisor->entries[i].state != ENDED)
            return false;
    }
    return supervisor->stopping;
}

/* ---- the caller's loop ---- */

/* When the next turn has something to do without a signal. */
static int64_t next_due(const struct tl_supervisor *supervisor)
{
    int64_t due_ms = INT64_MAX;
    for (size_t i = 0; i < supervisor->n; i++) {
        const struct entry *entry = &supervisor->entries[i];
        bool running = entry->state == RUNNING;
        if (entry->state == WAITING && entry->due_ms < due_ms)
            due_ms = entry->due_ms;
        if (running && entry->stop_sent && !entry->kill_sent && entry->kill_ms < due_ms)
            due_ms = entry->kill_ms;
        if (running && entry->child.beats != NULL && supervisor->tick_ms < due_ms)
            due_ms = supervisor->tick_ms;
    }
    return due_ms;
}

bool tl_supervisor_wait(const struct tl_supervisor *supervisor, struct pollfd fds[], size_t n,
                        int64_t timeout_ms, struct tl_error *err)
{
    struct pollfd all[FDS_MAX + 1];
    if (n > FDS_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "cannot wait for more than %d files", FDS_MAX);
    if (n > 0)
        memcpy(all, fds, n * sizeof(all[0]));
    all[n] = (struct pollfd){.fd = supervisor->signals.fd, .events = POLLIN};
    int64_t now_ms = tl_clock_ms();
    int64_t due_ms = next_due(supervisor);
    int64_t wait_ms = due_ms <= now_ms               ? 0
                      : due_ms - now_ms < timeout_ms ? due_ms - now_ms
                                                     : timeout_ms;
    int ready = poll(all, (nfds_t)n + 1, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
    if (ready < 0 && errno != EINTR)
        return tl_error_set(err, TL_ERR_SYSTEM, "poll: %s", strerror(errno));
    for (size_t i = 0; i < n; i++)
        fds[i].revents = ready > 0 ? all[i].revents : 0;
    return true;
}

void tl_supervisor_turn(struct tl_supervisor *supervisor, int64_t now_ms)
{
    handle_signals(supervisor, now_ms);
    reap(supervisor, now_ms);
    if (supervisor->stopping)
        advance_stop(supervisor, now_ms);
    start_due(supervisor, now_ms);
    watch(supervisor, now_ms);
}

unsigned tl_supervisor_stop_asked(const struct tl_supervisor *supervisor)
{
    return supervisor->stop_asked;
}
