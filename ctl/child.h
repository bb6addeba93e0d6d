/* One program under the supervisor: its process, its output, and when it is started again. */
#ifndef TL_CTL_CHILD_H
#define TL_CTL_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/backoff.h"
#include "common/base/error.h"

#include "ctl/lines.h"

enum tl_child_state {
    TL_CHILD_RUNNING,
    TL_CHILD_RESTART, /* died; is started again at restart_ms */
    TL_CHILD_ENDED,   /* for good */
};

struct tl_child {
    const char *role;
    char **argv; /* owned */
    int keep_fd; /* left open in the child, -1: none */
    enum tl_child_state state;
    pid_t pid;     /* while RUNNING */
    int output;    /* read end of its output, -1 when closed */
    bool stopping; /* was told to end: is not started again */
    int64_t started_ms, restart_ms;
    struct tl_backoff backoff;
    struct tl_lines lines;
};

/* A new child, not yet started. role is borrowed, argv copied. NULL when out of memory. */
struct tl_child *tl_child_new(const char *role, const char *const argv[], int keep_fd, int colour);
void tl_child_free(struct tl_child **child); /* closes its output; the process is left alone */

/* Starts the process. */
bool tl_child_start(struct tl_child *child, int64_t now_ms, struct tl_error *err);
/* Prints what it has written; closes the output at its end. */
void tl_child_read(struct tl_child *child, const struct tl_lines_output *output);
/* After its process has been waited for: prints the rest of its output, and decides what next. */
void tl_child_ended(struct tl_child *child, const struct tl_lines_output *output, int64_t now_ms);
/* Signals the process and all that it has started itself. */
void tl_child_signal(const struct tl_child *child, int signal);

#endif
