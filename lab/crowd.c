/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/value.h"

#include "lab/crowd.h"
#include "lab/memory.h"

#define SECONDS_MOST    100000000000.0 /* the year 5138 as Unix time */
#define SPAN_MOST_MS    (INT64_C(366) * 86400000)
#define SESSION_MOST_MS (INT64_C(7) * 86400000)
#define NEVER           INT64_MAX

enum {
    COLUMNS_MOST = 256,
    NO_COLUMN = -1,
    FILE_BYTES_MOST = 512 << 20,
    PART_SIZE = TL_LANE_NAME_MAX + 32,
};

/* What tl_random_of is for. */
enum {
    DRAWN_ARRIVAL,
    DRAWN_PATIENCE,
    DRAWN_NO_SHOW,
    DRAWN_SESSION,
    DRAWN_SESSION_ANGLE,
    DRAWN_LANE
};

/* ---- arrivals of a file ---- */

/* How a file writes times. */
enum kind { KIND_NONE, KIND_SECONDS, KIND_CLOCK, KIND_DATE };

static const char *const kind_names[] = {"", "seconds", "a time of day", "a date with a time"};

struct reader {
    const char *name;
    size_t line; /* number of the line being read */
    int time_column, session_column;
    enum kind kind;
    size_t capacity;
    struct tl_arrivals *arrivals;
};

static bool refuse(const struct reader *reader, const char *text, const char *why,
                   struct tl_error *err)
{
    char quoted[80];
    tl_quote(text, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID, "%s:%zu: %s %s", reader->name, reader->line, quoted,
                        why);
}

/* Takes the next field of a line and moves *at behind its comma, or to NULL after the last. Blanks
 * and quotes around it are taken off, a doubled quote inside stands for one (RFC 4180): in place.
 */
static char *take_field(char **at)
{
    char *from = *at + strspn(*at, " \t"), *field = from, *to = from;
    if (*from == '"') {
        for (from++; *from != '\0' && (*from != '"' || from[1] == '"'); from++) {
            from += *from == '"' ? 1 : 0;
            *to++ = *from;
        }
        from += *from == '"' ? 1 : 0;
    }
    size_t rest = strcspn(from, ",");
    *at = from[rest] == ',' ? from + rest + 1 : NULL;
    memmove(to, from, rest);
    for (to += rest; to > field && (to[-1] == ' ' || to[-1] == '\t'); to--)
        ;
    *to = '\0';
    return field;
}

/* "12", "12.5", ".5": decimal seconds to ms. */
static bool parse_seconds(const char *text, int64_t *ms)
{
    size_t digits = strspn(text, "0123456789");
    size_t used = digits;
    if (text[used] == '.')
        used += 1 + strspn(text + used + 1, "0123456789");
    if (text[used] != '\0' || used == 0 || (digits == 0 && used == 1))
        return false;
    double seconds = strtod(text, NULL);
    if (seconds > SECONDS_MOST)
        return false;
    *ms = (int64_t)floor(seconds * 1000 + 0.5);
    return true;
}

/* "9:05", "21:05:00", "21:05:00.25" to ms; hours up to 99, for times past midnight. */
static bool parse_clock(const char *text, int64_t *ms)
{
    int64_t hours = 0;
    int64_t rest = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > 2 || text[digits] != ':')
        return false;
    for (size_t i = 0; i < digits; i++)
        hours = hours * 10 + (text[i] - '0');
    const char *minutes = text + digits + 1;
    if (strspn(minutes, "0123456789") != 2 || minutes[0] > '5')
        return false;
    if (minutes[2] == ':') {
        if (strspn(minutes + 3, "0123456789") != 2 || !parse_seconds(minutes + 3, &rest) ||
            rest >= 61000) /* a leap second */
            return false;
    } else if (minutes[2] != '\0') {
        return false;
    }
    *ms = (hours * 60 + (minutes[0] - '0') * 10 + (minutes[1] - '0')) * 60000 + rest;
    return true;
}

static enum kind parse_time(const char *text, int64_t *ms)
{
    if (parse_seconds(text, ms))
        return KIND_SECONDS;
    if (parse_clock(text, ms))
        return KIND_CLOCK;
    return tl_time_parse(text, ms, NULL) ? KIND_DATE : KIND_NONE;
}

static bool add(struct reader *reader, int64_t at_ms, int64_t session_ms, struct tl_error *err)
{
    struct tl_arrivals *arrivals = reader->arrivals;
    if (arrivals->n == TL_ARRIVALS_MOST)
        return tl_error_set(err, TL_ERR_INVALID, "%s:%zu: more than %d arrivals", reader->name,
                            reader->line, TL_ARRIVALS_MOST);
    arrivals->list =
        tl_xgrow(arrivals->list, &reader->capacity, arrivals->n + 1, sizeof(*arrivals->list));
    arrivals->list[arrivals->n] =
        (struct tl_arrival){.at_ms = at_ms, .session_ms = session_ms, .row = (uint32_t)arrivals->n};
    arrivals->n++;
    return true;
}

/* Finds the columns by the names in the first line. */
static bool read_names(struct reader *reader, char *at, struct tl_error *err)
{
    reader->time_column = reader->session_column = NO_COLUMN;
    for (int column = 0; at != NULL && column < COLUMNS_MOST; column++) {
        const char *name = take_field(&at);
        int *found = strcmp(name, "arrival") == 0   ? &reader->time_column
                     : strcmp(name, "session") == 0 ? &reader->session_column
                                                    : NULL;
        if (found != NULL && *found != NO_COLUMN)
            return refuse(reader, name, "names two columns", err);
        if (found != NULL)
            *found = column;
    }
    return reader->time_column != NO_COLUMN ||
           tl_error_set(err, TL_ERR_INVALID,
                        "%s:1: the first line is neither an arrival nor names a column \"arrival\"",
                        reader->name);
}

static bool read_row(struct reader *reader, char *at, struct tl_error *err)
{
    const char *time = NULL, *session = "";
    int64_t at_ms = 0, session_ms = -1;
    for (int column = 0; at != NULL && column < COLUMNS_MOST; column++) {
        const char *field = take_field(&at);
        time = column == reader->time_column ? field : time;
        session = column == reader->session_column ? field : session;
    }
    if (time == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "%s:%zu: the line has no arrival", reader->name,
                            reader->line);
    enum kind kind = parse_time(time, &at_ms);
    if (kind == KIND_NONE)
        return refuse(reader, time,
                      "is not a time such as 12.5, 21:05:00 or 2026-12-01T20:00:00+09:00", err);
    if (reader->kind != KIND_NONE && kind != reader->kind) {
        char why[96];
        snprintf(why, sizeof(why), "is %s, but the lines before have %s", kind_names[kind],
                 kind_names[reader->kind]);
        return refuse(reader, time, why, err);
    }
    reader->kind = kind;
    if (session[0] != '\0' && !parse_seconds(session, &session_ms) &&
        !parse_clock(session, &session_ms))
        return refuse(reader, session, "is not a session such as 245 or 0:04:05", err);
    if (session_ms > SESSION_MOST_MS)
        return refuse(reader, session, "is a session longer than 7 days", err);
    return add(reader, at_ms, session_ms, err);
}

/* Does the first line name the columns? It begins as no time does. */
static bool names_columns(const char *line)
{
    char first = line[strspn(line, " \t\"")];
    return first != '\0' && strchr("0123456789.-+,", first) == NULL;
}

/* bytes ends with a zero. */
static bool read_lines(struct reader *reader, char *bytes, struct tl_error *err)
{
    for (char *at = bytes, *line; (line = strsep(&at, "\n")) != NULL;) {
        size_t length = strlen(line);
        if (length == 0 && at == NULL)
            break; /* behind the last line */
        reader->line++;
        if (length > 0 && line[length - 1] == '\r')
            line[--length] = '\0';
        if (length == 0)
            continue;
        if (!(reader->line == 1 && names_columns(line) ? read_names : read_row)(reader, line, err))
            return false;
    }
    return reader->arrivals->n > 0 ||
           tl_error_set(err, TL_ERR_INVALID, "%s:%zu: there is no arrival in the file",
                        reader->name, reader->line > 0 ? reader->line : 1);
}

static int compare(const void *a, const void *b)
{
    const struct tl_arrival *one = a;
    const struct tl_arrival *other = b;
    if (one->at_ms != other->at_ms)
        return one->at_ms < other->at_ms ? -1 : 1;
    return one->row < other->row ? -1 : one->row > other->row;
}

bool tl_arrivals_parse(const char *name, char *bytes, size_t length, struct tl_arrivals *arrivals,
                       struct tl_error *err)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* of UTF-8, as spreadsheets write it */
    struct reader reader = {
        .name = name, .time_column = 0, .session_column = 1, .arrivals = arrivals};
    *arrivals = (struct tl_arrivals){0};
    for (char *zero = bytes; (zero = memchr(zero, '\0', length - (size_t)(zero - bytes))) != NULL;)
        *zero = '?'; /* would end a text */
    if (!read_lines(&reader, bytes + (strncmp(bytes, mark, 3) == 0 ? 3 : 0), err)) {
        tl_arrivals_free(arrivals);
        return false;
    }
    qsort(arrivals->list, arrivals->n, sizeof(*arrivals->list), compare);
    int64_t first_ms = arrivals->list[0].at_ms;
    if (arrivals->list[arrivals->n - 1].at_ms - first_ms > SPAN_MOST_MS) {
        tl_arrivals_free(arrivals);
        return tl_error_set(err, TL_ERR_INVALID, "%s: the arrivals span more than 366 days", name);
    }
    for (size_t i = 0; i < arrivals->n; i++)
        arrivals->list[i].at_ms -= first_ms;
    return true;
}

bool tl_arrivals_read(const char *path, struct tl_arrivals *arrivals, struct tl_error *err)
{
    size_t length;
    *arrivals = (struct tl_arrivals){0};
    char *bytes = tl_file_read("", path, FILE_BYTES_MOST, &length, err);
    bool ok = bytes != NULL &&
              (length <= FILE_BYTES_MOST ||
               tl_error_set(err, TL_ERR_INVALID, "%s: larger than 512 MiB", path)) &&
              tl_arrivals_parse(path, bytes, length, arrivals, err);
    free(bytes);
    return ok;
}

/* ---- what is drawn ---- */

uint64_t tl_random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

double tl_random_share(uint64_t *state)
{
    return ((double)(tl_random_next(state) >> 11) + 0.5) * 0x1p-53;
}

static uint64_t mix(uint64_t z)
{
    return tl_random_next(&z);
}

double tl_random_of(uint64_t seed, uint64_t visitor, unsigned purpose)
{
    uint64_t state = mix(mix(seed) ^ visitor) ^ purpose;
    return tl_random_share(&state);
}

double tl_exponential(double mean, double u)
{
    return -mean * log(u);
}

/* G. Box, M. Muller, "A note on the generation of random normal deviates", 1958. */
double tl_lognormal(double mean, double spread, double u, double v)
{
    double normal = sqrt(-2 * log(u)) * cos(2 * M_PI * v), variance = log1p(spread * spread);
    return mean * exp(sqrt(variance) * normal - variance / 2);
}

/* The time by which a share u of the crowd has come. */
static double arrival_of(const struct tl_crowd *crowd, double u)
{
    double over = (double)crowd->over_ms;
    double peak = crowd->peak_ms >= 0 ? (double)crowd->peak_ms : over / 2;
    switch (crowd->shape) {
    case TL_CROWD_EVEN:
        return u * over;
    case TL_CROWD_RUSH: /* exponential, cut off after four of its means */
        return -over / 4 * log(1 - u * (1 - exp(-4)));
    case TL_CROWD_WAVE: /* a triangle */
        break;
    }
    return u * over < peak ? sqrt(u * over * peak) : over - sqrt((1 - u) * over * (over - peak));
}

void tl_arrivals_draw(const struct tl_crowd *crowd, uint64_t seed, struct tl_arrivals *arrivals)
{
    *arrivals = (struct tl_arrivals){.n = crowd->visitors,
                                     .list = tl_xalloc(crowd->visitors, sizeof(*arrivals->list))};
    for (size_t i = 0; i < arrivals->n; i++)
        arrivals->list[i] = (struct tl_arrival){
            .at_ms = (int64_t)arrival_of(crowd, tl_random_of(seed, i, DRAWN_ARRIVAL)),
            .session_ms = -1,
            .row = (uint32_t)i};
    qsort(arrivals->list, arrivals->n, sizeof(*arrivals->list), compare);
}

void tl_arrivals_free(struct tl_arrivals *arrivals)
{
    free(arrivals->list);
    *arrivals = (struct tl_arrivals){0};
}

int64_t tl_visitor_patience_ms(const struct tl_simulation_visitors *visitors, size_t visitor)
{
    if (visitors->patience_ms == 0)
        return NEVER;
    double u = tl_random_of(visitors->seed, visitor, DRAWN_PATIENCE);
    return (int64_t)ceil(tl_exponential((double)visitors->patience_ms, u));
}

bool tl_visitor_comes(const struct tl_simulation_visitors *visitors, size_t visitor)
{
    return tl_random_of(visitors->seed, visitor, DRAWN_NO_SHOW) >= visitors->no_shows;
}

int64_t tl_visitor_session_ms(const struct tl_simulation_visitors *visitors,
                              const struct tl_arrivals *arrivals, size_t visitor)
{
    if (arrivals->list[visitor].session_ms >= 0)
        return arrivals->list[visitor].session_ms;
    double stays_ms = tl_lognormal((double)visitors->session_ms, visitors->spread,
                                   tl_random_of(visitors->seed, visitor, DRAWN_SESSION),
                                   tl_random_of(visitors->seed, visitor, DRAWN_SESSION_ANGLE));
    return (int64_t)fmin(stays_ms, 1e15);
}

unsigned tl_visitor_lane(const struct tl_simulation_visitors *visitors, size_t visitor)
{
    double drawn = tl_random_of(visitors->seed, visitor, DRAWN_LANE);
    unsigned lane = 0; /* the last one that has a share, when the sum is not quite 1 */
    for (unsigned i = 0; i < TL_LANES_MAX && drawn >= 0; i++) {
        if (visitors->lanes[i] > 0)
            lane = i;
        drawn -= visitors->lanes[i];
    }
    return lane;
}

/* ---- lanes ---- */

/* "vip=10%"; seen: bits of the lanes that were named before. */
static bool read_part(char *part, const struct tl_queue_settings *queue, unsigned *seen,
                      double shares[TL_LANES_MAX], struct tl_error *err)
{
    char quoted[80];
    struct tl_error problem = {0};
    char *equals = strchr(part, '=');
    tl_quote(part, quoted, sizeof(quoted));
    if (equals == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "--lanes: %s is not LANE=SHARE, such as vip=10%%",
                            quoted);
    *equals = '\0';
    tl_quote(part, quoted, sizeof(quoted));
    unsigned lane;
    if (!tl_lane_find(queue, part, &lane))
        return tl_error_set(err, TL_ERR_INVALID, "--lanes: the queue has no lane %s", quoted);
    if ((*seen & 1U << lane) != 0)
        return tl_error_set(err, TL_ERR_INVALID, "--lanes: %s is named twice", quoted);
    *seen |= 1U << lane;
    return tl_decimal_parse(equals + 1, &shares[lane], &problem) ||
           tl_error_set(err, TL_ERR_INVALID, "--lanes: %s: %s", quoted, problem.text);
}

bool tl_lanes_shares(const char *text, const struct tl_queue_settings *queue,
                     double shares[TL_LANES_MAX], struct tl_error *err)
{
    unsigned seen = 0;
    double sum = 0;
    memset(shares, 0, TL_LANES_MAX * sizeof(*shares));
    for (const char *at = text; at != NULL;) {
        char part[PART_SIZE];
        size_t length = strcspn(at, ",");
        if (length >= sizeof(part))
            return tl_error_set(err, TL_ERR_INVALID, "--lanes: a part is too long");
        snprintf(part, sizeof(part), "%.*s", (int)length, at);
        if (!read_part(part, queue, &seen, shares, err))
            return false;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    for (size_t i = 0; i < queue->n_lanes; i++)
        sum += shares[i];
    if (sum > 1 + 1e-9)
        return tl_error_set(err, TL_ERR_INVALID, "--lanes: the shares are %g %%, more than 100",
                            100 * sum);
    if (sum < 1)
        shares[queue->default_lane] += 1 - sum;
    return true;
}

/* ---- when ---- */

static int compare_dues(const void *a, const void *b)
{
    const struct tl_due *one = a, *other = b;
    if (one->at_ms != other->at_ms)
        return one->at_ms < other->at_ms ? -1 : 1;
    return (one->visitor > other->visitor) - (one->visitor < other->visitor);
}

void tl_dues_push(struct tl_dues *dues, struct tl_due due)
{
    dues->list = tl_xgrow(dues->list, &dues->capacity, dues->n + 1, sizeof(*dues->list));
    size_t at = dues->n++;
    for (; at > 0 && compare_dues(&dues->list[(at - 1) / 2], &due) > 0; at = (at - 1) / 2)
        dues->list[at] = dues->list[(at - 1) / 2];
    dues->list[at] = due;
}

struct tl_due tl_dues_pop(struct tl_dues *dues)
{
    struct tl_due top = dues->list[0];
    struct tl_due moved = dues->list[--dues->n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < dues->n; at = child) {
        if (child + 1 < dues->n && compare_dues(&dues->list[child], &dues->list[child + 1]) > 0)
            child++;
        if (compare_dues(&dues->list[child], &moved) >= 0)
            break;
        dues->list[at] = dues->list[child];
    }
    if (dues->n > 0)
        dues->list[at] = moved;
    return top;
}

void tl_dues_sort(struct tl_due *list, size_t n)
{
    if (n > 0)
        qsort(list, n, sizeof(*list), compare_dues);
}

static int compare_times(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

struct tl_times tl_times_of(int64_t *list, size_t n)
{
    if (n == 0)
        return (struct tl_times){-1, -1, -1};
    qsort(list, n, sizeof(*list), compare_times);
    return (struct tl_times){list[(n + 1) / 2 - 1], list[(9 * n + 9) / 10 - 1], list[n - 1]};
}
