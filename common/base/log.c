/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/text.h"

/*
 * A line is at most LINE_MAX_BYTES long, the largest write that a pipe takes as a whole (PIPE_BUF),
 * so lines of several processes on one pipe never mix. Each value has its own share of that and is
 * cut, with three dots, when it is longer: a long message cannot push out the error after it.
 */
enum {
    LINE_MAX_BYTES = 4096,
    NAME_MAX_BYTES = 192,  /* role, queue, visitor, connection: each, escaped */
    ERROR_MAX_BYTES = 960, /* escaped */
    MESSAGE_MAX_BYTES = 2048,
    FIXED_MAX_BYTES = 320, /* time, level, pid, kind, and all names and quotes */
};

_Static_assert(FIXED_MAX_BYTES + 4 * NAME_MAX_BYTES + ERROR_MAX_BYTES + MESSAGE_MAX_BYTES <=
                   LINE_MAX_BYTES,
               "every value's share fits into one line");

/* The one log of the process. Atomic, because SIGHUP changes it while other threads write. */
static _Atomic(const char *) log_role = "tellerline";
static atomic_int log_level = TL_LOG_INFO;
static atomic_int log_format = TL_LOG_LOGFMT;
static atomic_uint log_lost; /* lines that could not be written since the last one that could */

static const char *const level_names[] = {
    [TL_LOG_DEBUG] = "debug", [TL_LOG_INFO] = "info",   [TL_LOG_WARN] = "warn",
    [TL_LOG_ERROR] = "error", [TL_LOG_FATAL] = "fatal",
};

void tl_log_init(const struct tl_log_settings *settings)
{
    atomic_store(&log_level, (int)settings->level);
    atomic_store(&log_format, (int)settings->format);
    atomic_store(&log_role, settings->role);
}

/* ---- escaping ---- */

struct line {
    char bytes[LINE_MAX_BYTES];
    size_t length;
    bool json;
};

static void put_text(struct line *line, const char *text)
{
    size_t n = strlen(text);
    memcpy(line->bytes + line->length, text, n);
    line->length += n;
}

/* Appends at most `limit` bytes. Malformed bytes are shown as they are (\xNN) in logfmt; JSON has
 * no way to say so and gets U+FFFD. */
static void put_escaped(struct line *line, const char *text, size_t limit)
{
    size_t end = line->length + limit - 3;
    while (*text != '\0') {
        char out[8];
        unsigned code = 0;
        size_t taken = tl_utf8_decode(text, &code);
        int length;
        if (taken == 0) {
            length = line->json ? snprintf(out, sizeof(out), "\\ufffd")
                                : snprintf(out, sizeof(out), "\\x%02x", (unsigned char)text[0]);
            taken = 1;
        } else if (code == '"' || code == '\\') {
            length = snprintf(out, sizeof(out), "\\%c", (char)code);
        } else if (code == '\n' || code == '\r' || code == '\t') {
            length = snprintf(out, sizeof(out), "\\%c",
                              code == '\n'   ? 'n'
                              : code == '\r' ? 'r'
                                             : 't');
        } else if (code <= 0xFFFF && tl_utf8_invisible(code)) {
            length = snprintf(out, sizeof(out), "\\u%04x", code);
        } else {
            length = snprintf(out, sizeof(out), "%.*s", (int)taken, text);
        }
        if (line->length + (size_t)length > end) {
            put_text(line, "...");
            return;
        }
        put_text(line, out);
        text += taken;
    }
}

/* ---- fields ---- */

/* Is the value valid without quotes in logfmt? */
static bool is_bare(const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~' || *text == '"' || *text == '=' || *text == '\\')
            return false;
    }
    return true;
}

static void put_key(struct line *line, const char *key)
{
    if (line->json)
        put_text(line, line->length == 0 ? "{\"" : ",\"");
    else if (line->length > 0)
        put_text(line, " ");
    put_text(line, key);
    put_text(line, line->json ? "\":" : "=");
}

static void put_quoted(struct line *line, const char *key, const char *value, size_t limit)
{
    put_key(line, key);
    put_text(line, "\"");
    put_escaped(line, value, limit);
    put_text(line, "\"");
}

/* A short value: quoted only where it must be. NULL: no such field. */
static void put_name(struct line *line, const char *key, const char *value)
{
    if (value == NULL)
        return;
    if (line->json || !is_bare(value)) {
        put_quoted(line, key, value, NAME_MAX_BYTES);
        return;
    }
    put_key(line, key);
    put_escaped(line, value, NAME_MAX_BYTES);
}

static void put_number(struct line *line, const char *key, unsigned long value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lu", value);
    put_key(line, key);
    put_text(line, text);
}

static void put_time(struct line *line)
{
    struct timespec now;
    struct tm utc;
    char text[64];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + length, sizeof(text) - length, ".%03dZ", (int)(now.tv_nsec / 1000000));
    put_name(line, "time", text);
}

/* ---- writing ---- */

/* One write(2), without a SIGPIPE: a closed log must not end the process. */
static bool write_line(const struct line *line)
{
    sigset_t pipe_signal;
    sigset_t before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    int blocked = pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);

    ssize_t written;
    do {
        written = write(STDERR_FILENO, line->bytes, line->length);
    } while (written < 0 && errno == EINTR);

    if (written < 0 && errno == EPIPE) {
        const struct timespec at_once = {0};
        while (sigtimedwait(&pipe_signal, NULL, &at_once) < 0 && errno == EINTR)
            continue;
    }
    if (blocked == 0)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    return written == (ssize_t)line->length;
}

void tl_log(enum tl_log_level level, const struct tl_log_fields *fields, const char *message, ...)
{
    if ((int)level < atomic_load_explicit(&log_level, memory_order_relaxed))
        return;
    int saved_errno = errno;
    char text[MESSAGE_MAX_BYTES];
    va_list args;
    va_start(args, message);
    if (vsnprintf(text, sizeof(text), message, args) < 0)
        snprintf(text, sizeof(text), "%s", message); /* unformatted rather than lost */
    va_end(args);

    struct line line;
    line.length = 0;
    line.json = atomic_load(&log_format) == TL_LOG_JSON;
    put_time(&line);
    put_name(&line, "level", level_names[level]);
    put_name(&line, "role", atomic_load(&log_role));
    put_number(&line, "pid", (unsigned long)getpid());
    unsigned lost = atomic_exchange(&log_lost, 0);
    if (lost > 0)
        put_number(&line, "lost_lines", lost);
    if (fields != NULL) {
        put_name(&line, "queue", fields->queue);
        put_name(&line, "visitor", fields->visitor);
        put_name(&line, "connection", fields->connection);
    }
    if (fields != NULL && fields->error != NULL) {
        put_name(&line, "kind", tl_error_kind_name(fields->error->kind));
        put_quoted(&line, "error", fields->error->text, ERROR_MAX_BYTES);
    }
    put_quoted(&line, "msg", text, MESSAGE_MAX_BYTES);
    put_text(&line, line.json ? "}\n" : "\n");
    if (!write_line(&line))
        atomic_fetch_add(&log_lost, lost + 1);
    errno = saved_errno;
}

bool tl_log_allow(struct tl_log_limit *limit, int64_t now_ms, int64_t interval_ms,
                  unsigned *suppressed)
{
    if (now_ms < limit->next_ms) {
        limit->suppressed++;
        return false;
    }
    *suppressed = limit->suppressed;
    limit->suppressed = 0;
    limit->next_ms = now_ms + interval_ms;
    return true;
}
