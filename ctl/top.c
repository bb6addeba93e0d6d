#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "common/base/clock.h"

#include "ctl/command.h"
#include "ctl/rows.h"
#include "ctl/signs.h"
#include "ctl/table.h"

static const struct tl_column columns[] = {
    {"QUEUE", false},    {"MODE", false},  {"PHASE", false},  {"WAITING", true},  {"ACTIVE", true},
    {"LIMIT", true},     {"JOINED", true}, {"/S", true},      {"ADMITTED", true}, {"/S", true},
    {"COMPLETED", true}, {"/S", true},     {"EXPIRED", true}, {"LEFT", true},
};

/* The terminal, and its settings to restore at the end. */
struct screen {
    bool live; /* a terminal: redraw in place */
    struct termios before;
    int signals; /* signalfd for SIGINT and SIGTERM */
};

static bool screen_open(struct screen *screen, struct tl_error *err)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    screen->signals = signalfd(-1, &ends, SFD_CLOEXEC);
    if (screen->signals < 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "signalfd: %s", strerror(errno));
    screen->live = isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &screen->before) == 0;
    if (!screen->live)
        return true;
    struct termios raw = screen->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) {
        tl_error_set(err, TL_ERR_SYSTEM, "terminal: %s", strerror(errno));
        close(screen->signals);
        return false;
    }
    fputs("\033[?1049h\033[?25l", stdout); /* alternate screen, hidden cursor */
    return true;
}

static void screen_close(struct screen *screen)
{
    if (screen->live) {
        fputs("\033[?25h\033[?1049l", stdout);
        fflush(stdout);
        if (tcsetattr(STDIN_FILENO, TCSANOW, &screen->before) != 0)
            fprintf(stderr, "tellerline: the terminal could not be restored (%s); run `reset`\n",
                    strerror(errno));
    }
    close(screen->signals);
}

/* Waits until the next refresh. True when the user wants to quit. */
static bool screen_wait(const struct screen *screen, int64_t until_ms)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = screen->signals, .events = POLLIN},
                               {.fd = screen->live ? STDIN_FILENO : -1, .events = POLLIN}};
        int64_t left = until_ms - tl_clock_ms();
        if (left <= 0)
            return false;
        if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
            return true;
        if (fds[0].revents != 0)
            return true;
        char key = '\0';
        if (fds[1].revents != 0 && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
            return true;
    }
}

/* Draws over the old text: cuts each line to the width of the screen and clears the rest of it. */
static void screen_draw(const struct screen *screen, const char *text)
{
    if (!screen->live) {
        fputs(text, stdout);
        fputs("\n", stdout);
        fflush(stdout);
        return;
    }
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    fputs("\033[H", stdout);
    for (int row = 1; *text != '\0' && row < size.ws_row; row++) {
        int length = (int)strcspn(text, "\n");
        printf("%.*s\033[K\r\n", length < size.ws_col ? length : size.ws_col, text);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

static void add_total(struct tl_table *table, uint64_t now, uint64_t before, int64_t elapsed_ms)
{
    char rate[32] = "-";
    if (elapsed_ms > 0 && now >= before)
        snprintf(rate, sizeof(rate), "%.1f", (double)(now - before) * 1000.0 / (double)elapsed_ms);
    tl_table_number(table, now);
    tl_table_text(table, rate);
}

/* The command while it runs. */
struct top {
    struct tl_ctl_session session;
    struct screen screen;
    struct tl_queue_rows rows, before; /* read now, and at the last refresh */
};

static void add_row(const struct top *top, struct tl_table *table, const struct tl_queue_row *row)
{
    char text[128];
    const struct tl_queue_numbers *numbers = &row->numbers;
    const struct tl_queue_row *earlier = NULL;
    for (size_t i = 0; earlier == NULL && i < top->before.n; i++) {
        if (strcmp(top->before.rows[i].name, row->name) == 0)
            earlier = &top->before.rows[i];
    }
    /* Another generation of the queue counts from zero again, so there is no rate yet. */
    bool same = earlier != NULL && earlier->numbers.generation == numbers->generation;
    const struct tl_queue_numbers *base = same ? &earlier->numbers : numbers;
    int64_t elapsed_ms = same ? top->rows.now_ms - top->before.now_ms : 0;
    tl_table_text(table, row->name);
    tl_table_text(table, tl_mode_name(row->settings.mode));
    tl_queue_row_phase(row, top->rows.now_ms, text, sizeof(text));
    tl_table_text(table, text);
    tl_table_number(table, numbers->waiting);
    tl_table_number(table, numbers->active);
    tl_queue_row_limit(row, text, sizeof(text));
    tl_table_text(table, text);
    add_total(table, numbers->joined, base->joined, elapsed_ms);
    add_total(table, numbers->admitted, base->admitted, elapsed_ms);
    add_total(table, numbers->completed, base->completed, elapsed_ms);
    tl_table_number(table, numbers->expired);
    tl_table_number(table, numbers->left);
}

/* Appends a line for each queue with signs of misuse in the last minute. */
static void add_signs(struct top *top, struct tl_text *out)
{
    bool any = false;
    for (size_t i = 0; i < top->rows.n; i++) {
        struct tl_keys keys;
        struct tl_signs signs;
        struct tl_text lines = {0};
        struct tl_error err = {0};
        const char *name = top->rows.rows[i].name;
        struct tl_redis *redis = tl_ctl_session_redis(&top->session, name, &err);
        if (redis != NULL && tl_ctl_session_keys(&top->session, name, &keys, &err) &&
            tl_ctl_signs_read(redis, &keys, top->rows.now_ms, &signs, &err))
            tl_ctl_signs_write(name, &signs, &lines);
        else
            tl_text_append(&lines, "! %s: %s\n", name, err.text);
        if (lines.failed)
            out->failed = true;
        else if (lines.length > 0)
            tl_text_append(out, "%s%s", any ? "" : "\nSigns of misuse in the last minute:\n",
                           lines.data);
        any = any || lines.length > 0;
        tl_text_free(&lines);
    }
}

/* Shows the queues once. A store error is shown and the next refresh tries again; err gets it all
 * the same. Only a failed allocation ends the command. */
static bool refresh(struct top *top, struct tl_error *err)
{
    struct tl_error read_err = {0};
    if (!tl_queue_rows_read(&top->session, &top->rows, &read_err)) {
        char text[400];
        *err = read_err;
        if (read_err.kind == TL_ERR_NOMEM)
            return false;
        snprintf(text, sizeof(text), "%s\ntrying again", read_err.text);
        screen_draw(&top->screen, text);
        return true;
    }
    struct tl_text out = {0};
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; table != NULL && i < top->rows.n; i++)
        add_row(top, table, &top->rows.rows[i]);
    if (table != NULL)
        tl_table_write(table, &out);
    add_signs(top, &out);
    bool ok = table != NULL && !out.failed;
    if (ok)
        screen_draw(&top->screen, out.data);
    tl_text_free(&out);
    tl_table_free(&table);
    tl_queue_rows_free(&top->before);
    top->before = top->rows;
    return ok || tl_error_set(err, TL_ERR_NOMEM, "no memory to show %zu queues", top->rows.n);
}

int tl_command_top(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct top top = {0};
    if (!tl_ctl_session_open(&top.session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool ok = screen_open(&top.screen, &err);
    if (ok) {
        int64_t next_ms = tl_clock_ms();
        for (uint64_t shown = 0; ok; next_ms += options->interval_ms) {
            err = (struct tl_error){0};
            ok = refresh(&top, &err);
            if (++shown == options->count) {
                ok = err.kind == TL_OK; /* a script that asked so often has no newer numbers */
                break;
            }
            if (!ok || screen_wait(&top.screen, next_ms + options->interval_ms))
                break;
        }
        screen_close(&top.screen);
        tl_queue_rows_free(&top.before);
    }
    tl_ctl_session_close(&top.session);
    return ok ? TL_EXIT_OK : tl_ctl_fail(TL_EXIT_FAILED, &err);
}
