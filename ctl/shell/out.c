/* SPDX-License-Identifier: Apache-2.0 */
/* What a command says, to people and to programs. */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/units.h"

#include "ctl/shell/shell.h"

enum {
    COLUMNS = 80,
    ANSWER_MAX = 256, /* bytes of an answer to a question */
    CELL_MAX = 1200,

    BAR = 24, /* columns of the bar itself */
    BAR_EVERY_MS = 200,
    BAR_EARLY_MS = 1000, /* no forecast before */
    BAR_TEXT = 256,
};

/* ---- errors ---- */

int tl_ctl_fail(int status, const struct tl_error *err)
{
    fprintf(stderr, "tellerline: %s\n", err->text);
    return status;
}

int tl_ctl_refuse(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("tellerline: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return status;
}

int tl_ctl_file_status(const struct tl_error *err)
{
    return err->kind == TL_ERR_NOMEM ? TL_EXIT_FAILED : TL_EXIT_PROBLEM;
}

int tl_ctl_status_of(const struct tl_error *err)
{
    if (err->kind == TL_ERR_DENIED)
        return TL_EXIT_REFUSED;
    return err->kind == TL_ERR_INVALID || err->kind == TL_ERR_NOQUEUE ? TL_EXIT_PROBLEM
                                                                      : TL_EXIT_FAILED;
}

/* ---- the terminal, and what people read there ---- */

bool tl_terminal_colour(FILE *file)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(fileno(file)) && terminal != NULL && strcmp(terminal, "dumb") != 0 &&
           (no_colour == NULL || no_colour[0] == '\0');
}

int tl_terminal_columns(FILE *file)
{
    struct winsize size = {0};
    if (ioctl(fileno(file), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS;
    return size.ws_col;
}

void tl_terminal_duration(int64_t ms, char *text, size_t size)
{
    int64_t seconds = (ms + 500) / 1000;
    int64_t minutes = (seconds + 30) / 60;
    if (seconds < 100)
        snprintf(text, size, "%" PRId64 " s", seconds);
    else if (minutes < 100)
        snprintf(text, size, "%" PRId64 " min", minutes);
    else
        snprintf(text, size, "%" PRId64 " h %" PRId64 " min", minutes / 60, minutes % 60);
}

int tl_ctl_confirm(const struct tl_ctl_options *options, const char *what, const char *word)
{
    char answer[ANSWER_MAX] = "";
    if (options->yes)
        return TL_EXIT_OK;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        fprintf(stderr,
                "tellerline: %s There is no terminal to ask on: say --yes. Nothing was changed.\n",
                what);
        return TL_EXIT_UNCONFIRMED;
    }
    if (word != NULL)
        fprintf(stderr, "%s Type %s to go on: ", what, word);
    else
        fprintf(stderr, "%s Go on? [y/N] ", what);
    fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) == NULL)
        fputc('\n', stderr);
    answer[strcspn(answer, "\n")] = '\0';
    if (word != NULL ? strcmp(answer, word) == 0
                     : strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0)
        return TL_EXIT_OK;
    fputs("Nothing was changed.\n", stderr);
    return TL_EXIT_UNCONFIRMED;
}

void tl_text_print(struct tl_text *text)
{
    fputs(tl_xtext(text), stdout);
    tl_text_free(text);
}

/* ---- a bar ---- */

void tl_progress_begin(struct tl_progress *progress, const char *what, int64_t now_ms)
{
    *progress = (struct tl_progress){
        .what = what, .live = isatty(STDERR_FILENO), .begun_ms = now_ms, .next_ms = now_ms};
}

void tl_progress_text(const struct tl_progress *progress, uint64_t done, uint64_t total,
                      int64_t now_ms, int columns, char *text, unsigned size)
{
    char bar[BAR + 1], left[40] = "", rest[64] = "";
    int64_t elapsed_ms = now_ms - progress->begun_ms;
    if (done > total && total > 0)
        total = done;
    size_t filled = total > 0 ? (size_t)(BAR * done / total) : 0;
    memset(bar, '.', BAR);
    memset(bar, '#', filled);
    bar[BAR] = '\0';
    if (total > 0 && done > 0 && elapsed_ms >= BAR_EARLY_MS) {
        double ms = (double)elapsed_ms * (double)(total - done) / (double)done;
        tl_terminal_duration((int64_t)ms, left, sizeof(left));
        snprintf(rest, sizeof(rest), ", %s left", left);
    }
    if (total > 0)
        snprintf(text, size, "%s [%s] %3" PRIu64 " %%  %" PRIu64 " of %" PRIu64 "%s",
                 progress->what, bar, 100 * done / total, done, total, rest);
    else
        snprintf(text, size, "%s  %" PRIu64, progress->what, done);
    if (columns > 0 && strlen(text) > (size_t)columns)
        text[columns] = '\0';
}

void tl_progress_at(struct tl_progress *progress, uint64_t done, uint64_t total, int64_t now_ms)
{
    char text[BAR_TEXT];
    if (!progress->live || now_ms < progress->next_ms)
        return;
    progress->next_ms = now_ms + BAR_EVERY_MS;
    tl_progress_text(progress, done, total, now_ms, tl_terminal_columns(stderr) - 1, text,
                     sizeof(text));
    fprintf(stderr, "\r%s\033[K", text);
    fflush(stderr);
}

void tl_progress_end(struct tl_progress *progress)
{
    if (progress->live)
        fputs("\r\033[K", stderr);
    progress->live = false;
}

/* ---- tables ---- */

static void add_cell(const json_t *object, const struct tl_member *member, struct tl_text *cell)
{
    char text[CELL_MAX];
    const char *dot = member->name != NULL ? strchr(member->name, '.') : NULL;
    const char *name = dot != NULL ? dot + 1 : member->name;
    const json_t *of =
        dot != NULL ? json_object_getn(object, member->name, (size_t)(dot - member->name)) : object;
    const char *shown = tl_json_text(of, name);
    if (member->show != NULL) {
        member->show(object, cell);
    } else if (member->kind == TL_MEMBER_WAIT) {
        tl_json_wait(of, name, text, sizeof(text));
        shown = text;
    } else if (member->kind == TL_MEMBER_NUMBER && *shown == '\0') {
        snprintf(text, sizeof(text), "%" PRIu64, tl_json_count(of, name));
        shown = text;
    } else if (member->kind == TL_MEMBER_TIME) {
        tl_terminal_time_of(shown, text, sizeof(text));
        shown = text;
    }
    if (member->show == NULL)
        tl_text_append(cell, "%s", *shown != '\0' ? shown : member->none);
    if (member->most > 0 && cell->length > (size_t)member->most) {
        cell->length = (size_t)member->most - 1;
        tl_text_append(cell, "~");
    }
}

void tl_list_write(const json_t *list, const struct tl_member *members, bool colour, bool dense,
                   struct tl_text *out)
{
    static const char *const colours[] = {
        [TL_TINT_NONE] = NULL, [TL_TINT_CARE] = "\033[33m", [TL_TINT_TROUBLE] = "\033[31m"};
    size_t columns = 0;
    while (members[columns].title != NULL)
        columns++;
    const size_t n = columns * (json_array_size(list) + 1); /* with the titles */
    struct tl_text *cells = tl_xalloc(n, sizeof(*cells));
    int *widths = tl_xalloc(columns, sizeof(*widths));
    for (size_t i = 0; i < n; i++) {
        const size_t c = i % columns;
        if (i < columns)
            tl_text_append(&cells[i], "%s", members[c].title);
        else
            add_cell(json_array_get(list, i / columns - 1), &members[c], &cells[i]);
        widths[c] = (int)cells[i].length > widths[c] ? (int)cells[i].length : widths[c];
    }
    for (size_t i = 0; i < n; i++) {
        const size_t c = i % columns;
        const struct tl_member *member = &members[c];
        const json_t *object = i < columns ? NULL : json_array_get(list, i / columns - 1);
        const char *paint = !colour                ? NULL
                            : object == NULL       ? "\033[1m"
                            : member->tint != NULL ? colours[member->tint(object)]
                                                   : NULL;
        const bool last = c + 1 == columns;
        const bool right = member->kind == TL_MEMBER_NUMBER || member->kind == TL_MEMBER_WAIT;
        const int blanks = widths[c] - (int)cells[i].length;
        tl_text_append(out, "%s%*s%s%s%s%*s%s",
                       c == 0  ? ""
                       : dense ? " "
                               : "  ",
                       right ? blanks : 0, "", paint != NULL ? paint : "", tl_xtext(&cells[i]),
                       paint != NULL ? "\033[0m" : "", right || last ? 0 : blanks, "",
                       last ? "\n" : "");
        tl_text_free(&cells[i]);
    }
    free(widths);
    free(cells);
}

void tl_list_print(const json_t *list, const struct tl_member *members)
{
    struct tl_text out = {0};
    tl_list_write(list, members, tl_terminal_colour(stdout), false, &out);
    tl_text_print(&out);
}

/* ---- JSON ---- */

static json_t *require(json_t *value)
{
    if (value == NULL) { /* jansson makes no text of other bytes */
        fputs("tellerline: what is to be written is not text in UTF-8\n", stderr);
        exit(TL_EXIT_FAILED);
    }
    return value;
}

/* May a text stand in YAML as it is? Only what nothing else could be meant by. */
static bool is_bare(const char *text)
{
    static const char *const others[] = {"true", "false", "null", "yes", "no", "on",
                                         "off",  "y",     "n",    "nan", "inf"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcasecmp(text, others[i]) == 0)
            return false;
    return isalpha((unsigned char)text[0]) &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") ==
               strlen(text);
}

/* A scalar, or an empty list or object: as JSON, which is YAML, too. */
static void write_scalar(const json_t *value)
{
    if (json_is_string(value) && is_bare(json_string_value(value)))
        fputs(json_string_value(value), stdout);
    else
        (void)json_dumpf(value, stdout, JSON_ENCODE_ANY);
    putchar('\n');
}

static bool is_scalar(const json_t *value)
{
    return json_array_size(value) + json_object_size(value) == 0;
}

/* Writes a list or an object, with `blanks` before each line but the first, which is begun. */
static void write_yaml(const json_t *value, int blanks)
{
    const char *name;
    size_t i;
    json_t *inner;
    bool begun = true;
    if (is_scalar(value)) {
        write_scalar(value);
        return;
    }
    json_array_foreach(value, i, inner)
    {
        printf("%*s- ", begun ? 0 : blanks, "");
        write_yaml(inner, blanks + 2);
        begun = false;
    }
    json_object_foreach((json_t *)(uintptr_t)value, name, inner)
    {
        json_t *key = json_string(name);
        printf("%*s", begun ? 0 : blanks, "");
        if (is_bare(name))
            fputs(name, stdout);
        else
            (void)json_dumpf(key, stdout, JSON_ENCODE_ANY);
        json_decref(key);
        begun = false;
        if (is_scalar(inner)) {
            fputs(": ", stdout);
            write_scalar(inner);
        } else {
            printf(":\n%*s", blanks + 2, "");
            write_yaml(inner, blanks + 2);
        }
    }
}

void tl_data_write(enum tl_output output, json_t *value)
{
    if (output == TL_OUTPUT_YAML) {
        write_yaml(require(value), 0);
    } else {
        (void)json_dumpf(require(value), stdout, JSON_INDENT(2)); /* main() looks at the output */
        putchar('\n');
    }
    json_decref(value);
}

void tl_json_add(json_t *list, json_t *value)
{
    (void)json_array_append_new(list, require(value));
}

void tl_json_wait(const json_t *object, const char *name, char *text, size_t size)
{
    const json_t *ms = json_object_get(object, name);
    if (json_is_integer(ms))
        tl_terminal_duration(json_integer_value(ms), text, size);
    else
        snprintf(text, size, "-");
}

void tl_json_flat(const json_t *object,
                  void (*each)(void *context, const char *name, const json_t *value), void *context)
{
    const char *name, *inner_name;
    json_t *value, *inner;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        char path[128];
        if (!json_is_object(value)) {
            each(context, name, value);
            continue;
        }
        json_object_foreach(value, inner_name, inner)
        {
            snprintf(path, sizeof(path), "%s.%s", name, inner_name);
            each(context, path, inner);
        }
    }
}
