#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"

#include "ctl/child.h"
#include "ctl/supervisor.h"

enum { CHILDREN_MAX = 8, SAME_STOP_MS = 500 };

struct tl_supervisor {
    struct tl_child *children[CHILDREN_MAX];
    size_t n_children;
    int signals; /* signalfd */
    sigset_t mask_before;
    struct tl_lines_output output;
    struct tl_lines own;
    unsigned stop_asked;
    int64_t stop_asked_ms; /* when last */
    bool settled;
};

struct tl_supervisor *tl_supervisor_new(FILE *output, struct tl_error *err)
{
    struct tl_supervisor *supervisor = calloc(1, sizeof(*supervisor));
    if (supervisor == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the supervisor");
        return NULL;
    }
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, &supervisor->mask_before);
    signal(SIGPIPE, SIG_IGN); /* an output that nobody reads must not end the system */
    supervisor->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (supervisor->signals < 0) {
        tl_error_set(err, TL_ERR_SYSTEM, "signalfd: %s", strerror(errno));
        sigprocmask(SIG_SETMASK, &supervisor->mask_before, NULL);
        free(supervisor);
        return NULL;
    }
    supervisor->output = tl_lines_output(output);
    supervisor->own.role = "tellerline";
    return supervisor;
}

void tl_supervisor_free(struct tl_supervisor **supervisor)
{
    struct tl_supervisor *s = *supervisor;
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n_children; i++) {
        if (s->children[i]->state == TL_CHILD_RUNNING) {
            tl_child_signal(s->children[i], SIGKILL);
            while (waitpid(s->children[i]->pid, NULL, 0) < 0 && errno == EINTR)
                continue;
        }
        tl_child_free(&s->children[i]);
    }
    close(s->signals);
    sigprocmask(SIG_SETMASK, &s->mask_before, NULL);
    free(s);
    *supervisor = NULL;
}

void tl_supervisor_say(struct tl_supervisor *supervisor, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (length < 0)
        return;
    tl_lines_feed(&supervisor->own, &supervisor->output, text, strlen(text));
    tl_lines_end(&supervisor->own, &supervisor->output);
}

bool tl_supervisor_start(struct tl_supervisor *supervisor, const char *role,
                         const char *const argv[], int keep_fd, struct tl_error *err)
{
    if (supervisor->n_children == CHILDREN_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "%s: no more than %d programs", role,
                            CHILDREN_MAX);
    struct tl_child *child = tl_child_new(role, argv, keep_fd, (int)supervisor->n_children + 1);
    if (child == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "%s: no memory to start it", role);
    if (!tl_child_start(child, tl_clock_ms(), err)) {
        tl_child_free(&child);
        return false;
    }
    supervisor->children[supervisor->n_children++] = child;
    return true;
}

/* ---- one turn ---- */

static void describe_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
}

/* A child's process is gone. False when that means that the start has failed. */
static bool bury(struct tl_supervisor *supervisor, struct tl_child *child, int status,
                 int64_t now_ms, struct tl_error *err)
{
    char how[80];
    describe_end(status, how, sizeof(how));
    tl_child_ended(child, &supervisor->output, now_ms);
    if (child->state == TL_CHILD_ENDED) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            tl_supervisor_say(supervisor, "%s %s", child->role, how);
        return true;
    }
    if (!supervisor->settled && WIFEXITED(status)) {
        child->state = TL_CHILD_ENDED;
        return tl_error_set(err, TL_ERR_SYSTEM,
                            "%s %s before everything was up; what it said above tells why",
                            child->role, how);
    }
    tl_supervisor_say(supervisor, "%s %s; starting it again in %.1f s", child->role, how,
                      (double)(child->restart_ms - now_ms) / 1000.0);
    return true;
}

static bool reap(struct tl_supervisor *supervisor, int64_t now_ms, struct tl_error *err)
{
    bool ok = true;
    for (size_t i = 0; i < supervisor->n_children; i++) {
        struct tl_child *child = supervisor->children[i];
        int status;
        if (child->state == TL_CHILD_RUNNING && waitpid(child->pid, &status, WNOHANG) == child->pid)
            ok = bury(supervisor, child, status, now_ms, err) && ok;
    }
    return ok;
}

static void ask_to_stop(struct tl_supervisor *supervisor, int64_t now_ms)
{
    if (supervisor->stop_asked == 0 || now_ms - supervisor->stop_asked_ms >= SAME_STOP_MS)
        supervisor->stop_asked++;
    supervisor->stop_asked_ms = now_ms;
}

static void take_signals(struct tl_supervisor *supervisor, int64_t now_ms)
{
    struct signalfd_siginfo info;
    while (read(supervisor->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        /* A terminal that is closed ends us; without one, SIGHUP means that the programs shall
         * reload. */
        bool hangup = info.ssi_signo == SIGHUP;
        if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM ||
            (hangup && isatty(STDIN_FILENO)))
            ask_to_stop(supervisor, now_ms);
        for (size_t i = 0; hangup && !isatty(STDIN_FILENO) && i < supervisor->n_children; i++) {
            if (supervisor->children[i]->state == TL_CHILD_RUNNING)
                kill(supervisor->children[i]->pid, SIGHUP);
        }
    }
}

static bool restart_due(struct tl_supervisor *supervisor, int64_t now_ms, struct tl_error *err)
{
    for (size_t i = 0; i < supervisor->n_children; i++) {
        struct tl_child *child = supervisor->children[i];
        if (child->state == TL_CHILD_RESTART && child->restart_ms <= now_ms &&
            !tl_child_start(child, now_ms, err))
            return false;
    }
    return true;
}

/* How long a turn may wait: until the timeout or the next restart. */
static int wait_time(const struct tl_supervisor *supervisor, int64_t now_ms, int64_t timeout_ms)
{
    for (size_t i = 0; i < supervisor->n_children; i++) {
        const struct tl_child *child = supervisor->children[i];
        if (child->state == TL_CHILD_RESTART && child->restart_ms - now_ms < timeout_ms)
            timeout_ms = child->restart_ms > now_ms ? child->restart_ms - now_ms : 0;
    }
    return (int)timeout_ms;
}

bool tl_supervisor_turn(struct tl_supervisor *supervisor, int64_t timeout_ms, struct tl_error *err)
{
    struct pollfd fds[CHILDREN_MAX + 1];
    for (size_t i = 0; i < supervisor->n_children; i++)
        fds[i] = (struct pollfd){.fd = supervisor->children[i]->output, .events = POLLIN};
    fds[supervisor->n_children] = (struct pollfd){.fd = supervisor->signals, .events = POLLIN};
    if (poll(fds, supervisor->n_children + 1, wait_time(supervisor, tl_clock_ms(), timeout_ms)) <
            0 &&
        errno != EINTR)
        return tl_error_set(err, TL_ERR_SYSTEM, "poll: %s", strerror(errno));
    for (size_t i = 0; i < supervisor->n_children; i++) {
        if (fds[i].revents != 0)
            tl_child_read(supervisor->children[i], &supervisor->output);
    }
    int64_t now_ms = tl_clock_ms();
    take_signals(supervisor, now_ms);
    return reap(supervisor, now_ms, err) && restart_due(supervisor, now_ms, err);
}

void tl_supervisor_settled(struct tl_supervisor *supervisor)
{
    supervisor->settled = true;
}

unsigned tl_supervisor_stop_asked(const struct tl_supervisor *supervisor)
{
    return supervisor->stop_asked;
}

/* ---- the end ---- */

static bool is_named(const struct tl_child *child, const char *const roles[])
{
    for (size_t i = 0; roles[i] != NULL; i++) {
        if (strcmp(roles[i], child->role) == 0)
            return true;
    }
    return false;
}

/* Signals those of the roles that run; returns how many. Signal 0 only counts. */
static size_t signal_roles(struct tl_supervisor *supervisor, const char *const roles[], int signal)
{
    size_t n = 0;
    for (size_t i = 0; i < supervisor->n_children; i++) {
        struct tl_child *child = supervisor->children[i];
        if (!is_named(child, roles))
            continue;
        child->stopping = true;
        if (child->state == TL_CHILD_RESTART)
            child->state = TL_CHILD_ENDED;
        if (child->state != TL_CHILD_RUNNING)
            continue;
        n++;
        if (signal == SIGKILL)
            tl_supervisor_say(supervisor, "%s does not end; killing it", child->role);
        if (signal == SIGTERM) /* a program passes it on to its own processes, in its own order */
            kill(child->pid, SIGTERM);
        else if (signal != 0)
            tl_child_signal(child, signal);
    }
    return n;
}

bool tl_supervisor_stop(struct tl_supervisor *supervisor, const char *const roles[],
                        int64_t patience_ms)
{
    int64_t until_ms = tl_clock_ms() + patience_ms;
    size_t left = signal_roles(supervisor, roles, SIGTERM);
    while (left > 0 && supervisor->stop_asked < 2) {
        int64_t now_ms = tl_clock_ms();
        struct tl_error err = {0};
        if (now_ms >= until_ms)
            break;
        if (!tl_supervisor_turn(supervisor, until_ms - now_ms, &err))
            tl_supervisor_say(supervisor, "%s", err.text);
        left = signal_roles(supervisor, roles, 0);
    }
    if (left == 0)
        return true;
    signal_roles(supervisor, roles, SIGKILL);
    while (signal_roles(supervisor, roles, 0) > 0) {
        struct tl_error err = {0};
        if (!tl_supervisor_turn(supervisor, 1000, &err))
            tl_supervisor_say(supervisor, "%s", err.text);
    }
    return false;
}
