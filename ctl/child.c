#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ctl/child.h"

enum {
    BACKOFF_BASE_MS = 200,
    BACKOFF_LIMIT_MS = 10000,
    HEALTHY_MS = 10000,     /* whoever lived this long begins the back-off anew */
    READ_BYTES = 64 * 1024, /* at most, per call: one talkative child must not hold up the others */
};

static char **copy_argv(const char *const argv[])
{
    size_t n = 0;
    while (argv[n] != NULL)
        n++;
    char **copy = calloc(n + 1, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < n; i++) {
        copy[i] = strdup(argv[i]);
        if (copy[i] == NULL) {
            while (i > 0)
                free(copy[--i]);
            free(copy);
            return NULL;
        }
    }
    return copy;
}

struct tl_child *tl_child_new(const char *role, const char *const argv[], int keep_fd, int colour)
{
    struct tl_child *child = calloc(1, sizeof(*child));
    if (child == NULL)
        return NULL;
    child->argv = copy_argv(argv);
    if (child->argv == NULL) {
        free(child);
        return NULL;
    }
    child->role = role;
    child->keep_fd = keep_fd;
    child->state = TL_CHILD_ENDED;
    child->output = -1;
    child->lines.role = role;
    child->lines.colour = colour;
    tl_backoff_init(&child->backoff, BACKOFF_BASE_MS, BACKOFF_LIMIT_MS);
    return child;
}

void tl_child_free(struct tl_child **child)
{
    if (*child == NULL)
        return;
    if ((*child)->output >= 0)
        close((*child)->output);
    for (size_t i = 0; (*child)->argv[i] != NULL; i++)
        free((*child)->argv[i]);
    free((*child)->argv);
    free(*child);
    *child = NULL;
}

/* The child's side, between fork and exec. What fails here is said on the pipe, and ends the child.
 */
_Noreturn static void become(const struct tl_child *child, int output, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool ok = dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0 && input >= 0 &&
              dup2(input, STDIN_FILENO) >= 0 && setpgid(0, 0) == 0 &&
              sigprocmask(SIG_SETMASK, &none, NULL) == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 &&
              (child->keep_fd < 0 || fcntl(child->keep_fd, F_SETFD, 0) == 0);
    if (ok && getppid() != parent)
        _exit(0); /* the parent died before it could be watched */
    if (ok)
        execv(child->argv[0], child->argv);
    fprintf(stderr, "cannot run %s: %s\n", child->argv[0], strerror(errno));
    _exit(127);
}

bool tl_child_start(struct tl_child *child, int64_t now_ms, struct tl_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: pipe: %s", child->role, strerror(errno));
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(child, ends[1], parent);
    int fork_errno = errno;
    close(ends[1]);
    if (pid > 0)
        setpgid(pid, pid); /* as the child does itself: whoever comes first */
    if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        close(ends[0]);
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: fork: %s", child->role, strerror(fork_errno));
    }
    if (child->output >= 0)
        close(child->output);
    child->pid = pid;
    child->output = ends[0];
    child->state = TL_CHILD_RUNNING;
    child->started_ms = now_ms;
    return true;
}

void tl_child_read(struct tl_child *child, const struct tl_lines_output *output)
{
    char bytes[4096];
    for (size_t total = 0; child->output >= 0 && total < READ_BYTES;) {
        ssize_t n = read(child->output, bytes, sizeof(bytes));
        if (n > 0) {
            total += (size_t)n;
            tl_lines_feed(&child->lines, output, bytes, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            close(child->output);
            child->output = -1;
        }
    }
}

void tl_child_ended(struct tl_child *child, const struct tl_lines_output *output, int64_t now_ms)
{
    tl_child_read(child, output);
    tl_lines_end(&child->lines, output);
    child->pid = 0;
    if (child->stopping) {
        child->state = TL_CHILD_ENDED;
        return;
    }
    if (now_ms - child->started_ms >= HEALTHY_MS)
        tl_backoff_reset(&child->backoff);
    child->state = TL_CHILD_RESTART;
    child->restart_ms = now_ms + tl_backoff_next(&child->backoff, arc4random());
}

void tl_child_signal(const struct tl_child *child, int signal)
{
    kill(-child->pid, signal);
}
