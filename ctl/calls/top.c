/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/units.h"

#include "ctl/calls/calls.h"

static void show_state(const json_t *stats, struct tl_text *out)
{
    tl_text_append(out, "%s", tl_row_state(stats));
}

/* They left, or were no longer seen. */
static void show_gave_up(const json_t *stats, struct tl_text *out)
{
    tl_text_append(out, "%" PRIu64, tl_row_total(stats, "left") + tl_row_total(stats, "absent"));
}

#define COUNT(title, name) TL_MEMBER(title, name, NUMBER, "")

/* What there is to see, and what fits into 80 columns of it. add_rates() makes the rates. */
static const struct tl_member wide_columns[] = {
    TL_MEMBER("QUEUE", "queue", TEXT, ""),
    TL_MEMBER("MODE", "mode", TEXT, ""),
    TL_MEMBER_SHOWN("PHASE", TEXT, tl_row_phase, tl_row_tint),
    COUNT("WAITING", "waiting"),
    TL_MEMBER("OLDEST", "oldest_wait_ms", WAIT, ""),
    COUNT("ACTIVE", "active"),
    TL_MEMBER_SHOWN("LIMIT", NUMBER, tl_row_limit, NULL),
    COUNT("JOINED", "totals.joined"),
    COUNT("/MIN", "rates.joined"),
    COUNT("ADMITTED", "totals.admitted"),
    COUNT("/MIN", "rates.admitted"),
    COUNT("COMPLETED", "totals.completed"),
    COUNT("/MIN", "rates.completed"),
    TL_MEMBER_SHOWN("GAVE UP", NUMBER, show_gave_up, NULL),
    COUNT("NO-SHOWS", "totals.unclaimed"),
    COUNT("EXPIRED", "totals.expired"),
    {.title = NULL}};
static const struct tl_member narrow_columns[] = {
    {.title = "QUEUE", .name = "queue", .none = "", .most = 14},
    TL_MEMBER_SHOWN("STATE", TEXT, show_state, tl_row_tint),
    COUNT("WAITS", "waiting"),
    {.title = "OLDEST", .name = "oldest_wait_ms", .kind = TL_MEMBER_WAIT, .none = "", .most = 7},
    COUNT("ACTIVE", "active"),
    {.title = "LIMIT", .kind = TL_MEMBER_NUMBER, .none = "", .most = 6, .show = tl_row_limit},
    COUNT("ADM/MIN", "rates.admitted"),
    TL_MEMBER_SHOWN("GAVE UP", NUMBER, show_gave_up, NULL),
    COUNT("NO-SHOW", "totals.unclaimed"),
    {.title = NULL}};

/* The terminal, and its settings to restore at the end. */
struct screen {
    bool live; /* a terminal: redraw in place */
    struct termios before;
    int signals; /* signalfd for SIGINT and SIGTERM */
};

/* context: the screen. */
static void screen_close(void *context)
{
    const struct screen *screen = context;
    if (screen->live) {
        fputs("\033[?25h\033[?1049l", stdout);
        fflush(stdout);
        if (tcsetattr(STDIN_FILENO, TCSANOW, &screen->before) != 0)
            fprintf(stderr, "tellerline: the terminal could not be restored (%s); run `reset`\n",
                    strerror(errno));
    }
    close(screen->signals);
}

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
    tl_memory_last(screen_close, screen);
    return true;
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

/* How many bytes of a line fill at most `columns` columns. Colours take none. */
static int length_of(const char *line, int columns)
{
    int i = 0;
    while (line[i] != '\0' && line[i] != '\n' && columns > 0) {
        if (line[i] == '\033')
            i += (int)strcspn(line + i, "m\n") + 1;
        else {
            i++;
            columns--;
        }
    }
    return i;
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
        printf("%.*s\033[0m\033[K\r\n", length_of(text, size.ws_col), text);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

/* The command while it runs. */
struct top {
    const struct tl_ctl_options *options;
    struct tl_ctl_call *call;
    struct screen screen;
    bool colour;
    json_t *rows, *before; /* read now, and at the last refresh; NULL: not yet */
    int64_t read_ms, before_ms;
};

/* The same queue at the last refresh; NULL: there is none, or it was created again since. */
static const json_t *earlier_of(const struct top *top, const json_t *stats)
{
    size_t i;
    json_t *earlier;
    json_array_foreach(json_object_get(top->before, "queues"), i, earlier)
    {
        if (strcmp(tl_json_text(earlier, "queue"), tl_json_text(stats, "queue")) == 0 &&
            tl_json_count(earlier, "generation") == tl_json_count(stats, "generation"))
            return earlier;
    }
    return NULL;
}

/* How many a minute, by the history of the queue; where that is too short, since the last refresh.
 */
static json_t *rate_of(const struct top *top, const json_t *stats, const json_t *earlier,
                       const char *name)
{
    char rate[32];
    uint64_t now = tl_row_total(stats, name);
    int64_t elapsed_ms = top->read_ms - top->before_ms;
    tl_row_per_minute(stats, name, rate, sizeof(rate));
    if (strcmp(rate, "-") == 0 && earlier != NULL && elapsed_ms > 0 &&
        now >= tl_row_total(earlier, name))
        snprintf(rate, sizeof(rate), "%.0f",
                 (double)(now - tl_row_total(earlier, name)) * 60000.0 / (double)elapsed_ms);
    return json_string(rate);
}

/* Sets the rates, which no answer has. */
static void add_rates(const struct top *top)
{
    static const char *const names[] = {"joined", "admitted", "completed"};
    size_t i;
    json_t *stats;
    json_array_foreach(json_object_get(top->rows, "queues"), i, stats)
    {
        const json_t *earlier = earlier_of(top, stats);
        json_t *rates = json_object();
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            (void)json_object_set_new(rates, names[k], rate_of(top, stats, earlier, names[k]));
        (void)json_object_set_new(stats, "rates", rates);
    }
}

/* Appends the table: the wide one where it fits, and where there is no terminal. */
static void add_queues(const struct top *top, struct tl_text *out)
{
    struct tl_text wide = {0};
    const json_t *queues = json_object_get(top->rows, "queues");
    bool fits = true;
    add_rates(top);
    tl_list_write(queues, wide_columns, false, false, &wide);
    for (const char *line = tl_xtext(&wide); fits && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        fits = length <= (size_t)tl_terminal_columns(stdout);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    tl_text_free(&wide);
    fits = fits || !top->screen.live;
    tl_list_write(queues, fits ? wide_columns : narrow_columns, top->colour, !fits, out);
}

/* Appends how many queues each node of a Redis Cluster has, and which of them is away. */
static void add_nodes(const struct top *top, struct tl_text *out)
{
    const json_t *queues = json_object_get(top->rows, "queues");
    for (size_t i = 0; i < json_array_size(queues); i++) {
        const char *node = tl_json_text(json_array_get(queues, i), "node");
        size_t n = 0, known = 0, away = 0;
        for (size_t k = 0; k < json_array_size(queues); k++) {
            const json_t *stats = json_array_get(queues, k);
            bool here = strcmp(tl_json_text(stats, "node"), node) == 0;
            known += here && k < i;
            n += here;
            away += here && json_is_true(json_object_get(stats, "away"));
        }
        if (*node != '\0' && known == 0)
            tl_text_append(out, "%s%s: %zu %s%s", i == 0 ? "\nNodes: " : "; ", node, n,
                           n == 1 ? "queue" : "queues", away > 0 ? ", away" : "");
    }
}

/* Appends a line for each queue with signs of misuse in the last minute. */
static void add_signs(const struct top *top, struct tl_text *out)
{
    size_t i;
    json_t *stats;
    struct tl_text lines = {0};
    json_array_foreach(json_object_get(top->rows, "queues"), i, stats)
    {
        tl_row_signs(stats, &lines);
    }
    const char *signs = tl_xtext(&lines);
    if (*signs != '\0')
        tl_text_append(out, "\nSigns of misuse in the last minute:\n%s", signs);
    tl_text_free(&lines);
}

/* Reads the queues. False: there is no good answer, and err says why. */
static bool read_rows(struct top *top, struct tl_error *err)
{
    const struct tl_ctl_ask ask = {.operation = "listQueues"};
    json_t *rows = tl_ctl_call_get(top->call, &ask, err);
    if (rows == NULL)
        return false;
    json_decref(top->before);
    top->before = top->rows;
    top->before_ms = top->read_ms;
    top->rows = rows;
    top->read_ms = tl_clock_ms();
    return true;
}

/* Shows the queues once. A store error is shown and the next refresh tries again; err gets it all
 * the same. Only a refusal ends the command, and missing memory. */
static bool refresh(struct top *top, struct tl_error *err)
{
    struct tl_text out = {0};
    if (!read_rows(top, err)) {
        char text[400];
        if (err->kind == TL_ERR_NOMEM || err->kind == TL_ERR_DENIED || err->kind == TL_ERR_INVALID)
            return false;
        snprintf(text, sizeof(text), "%s\ntrying again", err->text);
        screen_draw(&top->screen, text);
        return true;
    }
    add_queues(top, &out);
    add_nodes(top, &out);
    add_signs(top, &out);
    screen_draw(&top->screen, tl_xtext(&out));
    tl_text_free(&out);
    return true;
}

/* Refreshes until the user wants to quit, or so often as was asked for. */
static bool show(struct top *top, struct tl_error *err)
{
    bool ok = true;
    int64_t next_ms = tl_clock_ms();
    for (uint64_t shown = 0; ok; next_ms += top->options->interval_ms) {
        *err = (struct tl_error){0};
        ok = refresh(top, err);
        if (++shown == top->options->count)
            return err->kind == TL_OK; /* a script that wants no more has no newer numbers */
        if (!ok || screen_wait(&top->screen, next_ms + top->options->interval_ms))
            break;
    }
    return ok;
}

int tl_command_top(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct top top = {.options = options, .colour = tl_terminal_colour(stdout)};
    top.call = tl_ctl_call_open(options, &err);
    bool ok = top.call != NULL && screen_open(&top.screen, &err);
    if (ok) {
        ok = show(&top, &err);
        tl_memory_last(NULL, NULL);
        screen_close(&top.screen);
    }
    json_decref(top.rows);
    json_decref(top.before);
    tl_ctl_call_close(&top.call);
    if (ok)
        return TL_EXIT_OK;
    return tl_ctl_fail(err.kind == TL_ERR_DENIED ? TL_EXIT_REFUSED : TL_EXIT_FAILED, &err);
}
