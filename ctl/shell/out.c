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
#include <time.h>
#include <unistd.h>

#include "common/base/units.h"

#include "ctl/shell/shell.h"

enum {
    COLUMNS = 80,
    YEAR_MAX = 9999,
    ANSWER_MAX = 256, /* bytes of an answer to a question */
    CELL_MAX = 256,

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

void tl_terminal_time_of(const char *rfc3339, char *text, size_t size)
{
    int64_t unix_ms;
    struct tm local;
    if (!tl_time_parse(rfc3339, &unix_ms, NULL)) {
        snprintf(text, size, "%s", rfc3339);
        return;
    }
    time_t seconds = (time_t)(unix_ms / 1000);
    text[0] = '\0';
    if (localtime_r(&seconds, &local) == NULL || local.tm_year + 1900 > YEAR_MAX ||
        local.tm_year + 1900 < 0)
        return;
    size_t length = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &local);
    long offset = local.tm_gmtoff / 60;
    if (offset == 0)
        snprintf(text + length, size - length, "Z");
    else
        snprintf(text + length, size - length, "%c%02ld:%02ld", offset < 0 ? '-' : '+',
                 labs(offset) / 60, labs(offset) % 60);
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

struct cell {
    char *text;
    enum tl_tint tint;
};

struct tl_table {
    const struct tl_column *columns;
    size_t n_columns;
    struct cell *cells; /* row after row */
    size_t n, capacity;
};

struct tl_table *tl_table_new(const struct tl_column *columns, size_t n_columns)
{
    struct tl_table *table = tl_xalloc(1, sizeof(*table));
    table->columns = columns;
    table->n_columns = n_columns;
    return table;
}

void tl_table_free(struct tl_table **table)
{
    if (*table == NULL)
        return;
    for (size_t i = 0; i < (*table)->n; i++)
        free((*table)->cells[i].text);
    free((*table)->cells);
    free(*table);
    *table = NULL;
}

void tl_table_text(struct tl_table *table, const char *text)
{
    table->cells = tl_xgrow(table->cells, &table->capacity, table->n + 1, sizeof(*table->cells));
    table->cells[table->n++] = (struct cell){.text = tl_xdup(text)};
}

void tl_table_number(struct tl_table *table, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    tl_table_text(table, text);
}

void tl_table_time(struct tl_table *table, const char *rfc3339, const char *none)
{
    char text[TL_UNITS_TEXT_MAX];
    tl_terminal_time_of(rfc3339, text, sizeof(text));
    tl_table_text(table, text[0] != '\0' ? text : none);
}

void tl_table_tint(struct tl_table *table, enum tl_tint tint)
{
    if (table->n > 0)
        table->cells[table->n - 1].tint = tint;
}

void tl_table_write(const struct tl_table *table, bool colour, bool dense, struct tl_text *out)
{
    static const char *const colours[] = {
        [TL_TINT_NONE] = NULL, [TL_TINT_CARE] = "\033[33m", [TL_TINT_TROUBLE] = "\033[31m"};
    const size_t columns = table->n_columns;
    assert(columns > 0);
    int *widths = tl_xalloc(columns, sizeof(*widths));
    for (size_t i = 0; i < columns + table->n; i++) {
        const char *text = i < columns ? table->columns[i].title : table->cells[i - columns].text;
        int length = (int)strlen(text);
        widths[i % columns] = length > widths[i % columns] ? length : widths[i % columns];
    }
    for (size_t i = 0; i < columns + table->n; i++) {
        const size_t c = i % columns;
        const struct cell *cell = i < columns ? NULL : &table->cells[i - columns];
        const char *text = cell == NULL ? table->columns[c].title : cell->text;
        const char *paint = !colour ? NULL : cell == NULL ? "\033[1m" : colours[cell->tint];
        const bool last = c + 1 == columns, right = table->columns[c].right;
        const int blanks = widths[c] - (int)strlen(text);
        tl_text_append(out, "%s%*s%s%s%s%*s%s",
                       c == 0  ? ""
                       : dense ? " "
                               : "  ",
                       right ? blanks : 0, "", paint != NULL ? paint : "", text,
                       paint != NULL ? "\033[0m" : "", right || last ? 0 : blanks, "",
                       last ? "\n" : "");
    }
    free(widths);
}

void tl_table_print(struct tl_table **table)
{
    struct tl_text out = {0};
    tl_table_write(*table, tl_terminal_colour(stdout), false, &out);
    tl_text_print(&out);
    tl_table_free(table);
}

static void add_member(struct tl_table *table, const json_t *object, const struct tl_member *member)
{
    char text[CELL_MAX];
    const char *dot = member->name != NULL ? strchr(member->name, '.') : NULL;
    const char *name = dot != NULL ? dot + 1 : member->name;
    const json_t *of =
        dot != NULL ? json_object_getn(object, member->name, (size_t)(dot - member->name)) : object;
    if (member->show != NULL)
        member->show(object, text, sizeof(text));
    else if (member->kind == TL_MEMBER_WAIT)
        tl_json_wait(of, name, text, sizeof(text));
    if (member->show != NULL || member->kind == TL_MEMBER_WAIT)
        tl_table_text(table, text);
    else if (member->kind == TL_MEMBER_NUMBER)
        tl_table_number(table, tl_json_count(of, name));
    else if (member->kind == TL_MEMBER_TIME)
        tl_table_time(table, tl_json_text(of, name), member->none);
    else
        tl_table_text(table,
                      *tl_json_text(of, name) != '\0' ? tl_json_text(of, name) : member->none);
    if (member->tint != NULL)
        tl_table_tint(table, member->tint(object));
}

void tl_list_print(const json_t *list, const struct tl_member *members)
{
    struct tl_column columns[12];
    size_t n = 0, i;
    json_t *object;
    for (; members[n].title != NULL; n++) {
        assert(n < sizeof(columns) / sizeof(columns[0]));
        columns[n] = (struct tl_column){members[n].title, members[n].kind == TL_MEMBER_NUMBER ||
                                                              members[n].kind == TL_MEMBER_WAIT};
    }
    struct tl_table *table = tl_table_new(columns, n);
    json_array_foreach(list, i, object)
    {
        for (const struct tl_member *member = members; member->title != NULL; member++)
            add_member(table, object, member);
    }
    tl_table_print(&table);
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

const char *tl_json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

json_int_t tl_json_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

uint64_t tl_json_count(const json_t *object, const char *name)
{
    return (uint64_t)tl_json_number(object, name);
}

void tl_json_wait(const json_t *object, const char *name, char *text, size_t size)
{
    const json_t *ms = json_object_get(object, name);
    if (json_is_integer(ms))
        tl_terminal_duration(json_integer_value(ms), text, size);
    else
        snprintf(text, size, "-");
}

static size_t show(const json_t *value, char *text, size_t size)
{
    int n = 0;
    if (json_is_string(value))
        n = snprintf(text, size, "%s", json_string_value(value));
    else if (json_is_integer(value))
        n = snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        n = snprintf(text, size, "%.1f", json_real_value(value));
    else if (json_is_boolean(value))
        n = snprintf(text, size, "%s", json_is_true(value) ? "true" : "false");
    return n > 0 ? (size_t)n : 0;
}

void tl_json_show(const json_t *value, char *text, size_t size)
{
    size_t used = 0, i;
    json_t *item;
    text[0] = '\0';
    if (!json_is_array(value)) {
        (void)show(value, text, size);
        return;
    }
    json_array_foreach(value, i, item)
    {
        if (i > 0 && used + 1 < size)
            text[used++] = ',';
        if (used < size)
            used += show(item, text + used, size - used);
    }
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
