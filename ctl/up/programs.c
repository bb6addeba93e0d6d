/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/role/listen.h"
#include "common/role/supervisor.h"

#include "ctl/up/up.h"

enum {
    PROGRAMS_MAX = 8,
    RESTART_BASE_MS = 200,
    RESTART_LIMIT_MS = 10000,
    READ_BYTES = 64 * 1024, /* at most, per turn: one talkative program must not block the others */
    STOP_TURN_MS = 1000,
    EARLY_BYTES = 4096, /* of a quiet program; the rest is dropped */
};

struct program {
    struct tl_programs *programs;
    struct tl_program_start start; /* with this copy of its argv */
    const char *argv[TL_PROGRAM_ARGS_MAX];
    int output;    /* read end of its output; -1: closed */
    int write_end; /* of the same pipe, while the process is being started */
    struct tl_lines lines;
    char early[EARLY_BYTES]; /* what a quiet one wrote before all were up */
    size_t n_early;
};

struct tl_programs {
    struct tl_supervisor *supervisor;
    struct program items[PROGRAMS_MAX];
    size_t n;
    struct tl_lines_output output;
    struct tl_lines own;
    bool settled, killed;
    struct tl_error failure; /* a failed start; kind TL_OK: none */
};

struct tl_programs *tl_programs_new(FILE *output, struct tl_error *err)
{
    /* SIGHUP on a terminal means that it was closed. */
    const struct tl_supervisor_settings settings = {.restart_base_ms = RESTART_BASE_MS,
                                                    .restart_limit_ms = RESTART_LIMIT_MS,
                                                    .hangup_stops = isatty(STDIN_FILENO) == 1};
    struct tl_programs *programs = tl_xalloc(1, sizeof(*programs));
    programs->supervisor = tl_supervisor_new(&settings, err);
    if (programs->supervisor == NULL) {
        free(programs);
        return NULL;
    }
    programs->output = (struct tl_lines_output){output, tl_terminal_colour(output)};
    programs->own.role = "tellerline";
    return programs;
}

static void close_output(struct program *program)
{
    if (program->output >= 0)
        close(program->output);
    program->output = -1;
}

void tl_programs_free(struct tl_programs **programs)
{
    if (*programs == NULL)
        return;
    tl_supervisor_free(&(*programs)->supervisor);
    for (size_t i = 0; i < (*programs)->n; i++)
        close_output(&(*programs)->items[i]);
    free(*programs);
    *programs = NULL;
}

void tl_programs_say(struct tl_programs *programs, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (length < 0)
        return;
    tl_lines_feed(&programs->own, &programs->output, text, strlen(text));
    tl_lines_end(&programs->own, &programs->output);
}

/* ---- one program: start, output, end ---- */

/* In the new process. What fails here is written to the pipe, and ends the process. */
static int exec_program(void *context)
{
    const struct program *program = context;
    const struct tl_program_start *start = &program->start;
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool ok = dup2(program->write_end, STDOUT_FILENO) >= 0 &&
              dup2(program->write_end, STDERR_FILENO) >= 0 && input >= 0 &&
              dup2(input, STDIN_FILENO) >= 0 && setpgid(0, 0) == 0 &&
              sigprocmask(SIG_SETMASK, &none, NULL) == 0 &&
              (start->keep_fd < 0 || fcntl(start->keep_fd, F_SETFD, 0) == 0) &&
              (start->n_listen_fds == 0 || tl_listen_pass(start->listen_fds, start->n_listen_fds));
    if (ok)
        execv(start->argv[0], (char *const *)(uintptr_t)start->argv);
    fprintf(stderr, "cannot run %s: %s\n", start->argv[0], strerror(errno));
    _exit(127); /* not exit: buffers and exit handlers are the parent's */
}

static pid_t fail_start(const struct program *program, const char *call)
{
    struct tl_programs *programs = program->programs;
    int problem = errno;
    if (programs->settled)
        tl_programs_say(programs, "%s: %s: %s; trying again", program->start.role, call,
                        strerror(problem));
    else
        tl_error_set(&programs->failure, TL_ERR_SYSTEM, "%s: %s: %s", program->start.role, call,
                     strerror(problem));
    return -1;
}

static pid_t start_program(void *context)
{
    struct program *program = context;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail_start(program, "pipe");
    /* Only our end must not block: the flag belongs to each end of the pipe. */
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        close(ends[0]);
        close(ends[1]);
        return fail_start(program, "fcntl");
    }
    program->write_end = ends[1];
    pid_t pid = tl_supervisor_fork(program->programs->supervisor, exec_program, program);
    int fork_errno = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = fork_errno;
        return fail_start(program, "fork");
    }
    setpgid(pid, pid); /* as the child does itself, so that it is done whichever runs first */
    close_output(program);
    program->output = ends[0];
    return pid;
}

static void take_output(struct program *program, const char *bytes, size_t n)
{
    size_t room = sizeof(program->early) - program->n_early;
    if (!program->start.quiet || program->programs->settled) {
        tl_lines_feed(&program->lines, &program->programs->output, bytes, n);
        return;
    }
    n = n < room ? n : room;
    memcpy(program->early + program->n_early, bytes, n);
    program->n_early += n;
}

static void read_output(struct program *program)
{
    char bytes[4096];
    for (size_t total = 0; program->output >= 0 && total < READ_BYTES;) {
        ssize_t n = read(program->output, bytes, sizeof(bytes));
        if (n > 0) {
            total += (size_t)n;
            take_output(program, bytes, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            close_output(program);
        }
    }
}

static bool program_ended(void *context, int status, int64_t delay_ms)
{
    struct program *program = context;
    struct tl_programs *programs = program->programs;
    char how[80];
    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof(how), "ended with status %d", WEXITSTATUS(status));
    read_output(program);
    if (!programs->settled)
        tl_lines_feed(&program->lines, &programs->output, program->early, program->n_early);
    program->n_early = 0;
    tl_lines_end(&program->lines, &programs->output);
    if (delay_ms < 0) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            tl_programs_say(programs, "%s %s", program->start.role, how);
        return false;
    }
    if (!programs->settled && WIFEXITED(status))
        return tl_error_set(&programs->failure, TL_ERR_SYSTEM,
                            "%s %s before everything was up; its output above tells why",
                            program->start.role, how);
    tl_programs_say(programs, "%s %s; starting it again in %.1f s", program->start.role, how,
                    (double)delay_ms / 1000.0);
    return true;
}

static void program_killed(void *context, enum tl_kill_reason reason)
{
    const struct program *program = context;
    (void)reason; /* programs watch their own loops */
    program->programs->killed = true;
    tl_programs_say(program->programs, "%s does not end; killing it", program->start.role);
}

bool tl_programs_add(struct tl_programs *programs, const struct tl_program_start *start,
                     struct tl_error *err)
{
    if (programs->n == PROGRAMS_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "%s: no more than %d programs", start->role,
                            PROGRAMS_MAX);
    struct program *program = &programs->items[programs->n];
    *program = (struct program){.programs = programs,
                                .start = *start,
                                .output = -1,
                                .lines = {.role = start->role, .colour = (int)programs->n + 1}};
    for (size_t i = 0; start->argv[i] != NULL && i + 1 < TL_PROGRAM_ARGS_MAX; i++)
        program->argv[i] = start->argv[i];
    program->start.argv = program->argv;
    const struct tl_child child = {.context = program,
                                   .start = start_program,
                                   .ended = program_ended,
                                   .killing = program_killed,
                                   .own_group = true,
                                   .stop_stage = start->stop_stage,
                                   .stop_signal = start->stop_signal,
                                   .stop_limit_ms = start->stop_limit_ms};
    if (!tl_supervisor_add(programs->supervisor, &child, err))
        return false;
    programs->n++;
    return true;
}

/* ---- all of them ---- */

/* A turn; what fails is in `err` or in programs->failure. */
static bool turn(struct tl_programs *programs, int64_t timeout_ms, struct tl_error *err)
{
    struct pollfd fds[PROGRAMS_MAX];
    for (size_t i = 0; i < programs->n; i++)
        fds[i] = (struct pollfd){.fd = programs->items[i].output, .events = POLLIN};
    if (!tl_supervisor_wait(programs->supervisor, fds, programs->n, timeout_ms, err))
        return false;
    for (size_t i = 0; i < programs->n; i++) {
        if (fds[i].revents != 0)
            read_output(&programs->items[i]);
    }
    tl_supervisor_turn(programs->supervisor, tl_clock_ms());
    return true;
}

bool tl_programs_turn(struct tl_programs *programs, int64_t timeout_ms, struct tl_error *err)
{
    if (!turn(programs, timeout_ms, err))
        return false;
    if (programs->failure.kind == TL_OK)
        return true;
    *err = programs->failure;
    return false;
}

void tl_programs_settled(struct tl_programs *programs)
{
    programs->settled = true;
}

unsigned tl_programs_stop_asked(const struct tl_programs *programs)
{
    return tl_supervisor_stop_asked(programs->supervisor);
}

bool tl_programs_stop(struct tl_programs *programs)
{
    tl_supervisor_stop(programs->supervisor, tl_clock_ms());
    while (!tl_supervisor_stopped(programs->supervisor)) {
        struct tl_error err = {0};
        if (tl_supervisor_stop_asked(programs->supervisor) >= 2)
            tl_supervisor_kill(programs->supervisor, tl_clock_ms());
        if (!turn(programs, STOP_TURN_MS, &err))
            tl_programs_say(programs, "%s", err.text);
    }
    return !programs->killed;
}
