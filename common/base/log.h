/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured logs on standard error, one line per event: logfmt (default) or JSON. Each of the five
 * levels has one meaning:
 *   debug  of use to a developer only
 *   info   normal operation
 *   warn   unusual, recovers without help
 *   error  an operator should act
 *   fatal  the process stops
 * A line carries time, level, role, process id, and the fields given. Control characters and quotes
 * in values are escaped, so that nothing a visitor sends can forge a line. Safe to call from
 * several threads.
 */
#ifndef TL_LOG_H
#define TL_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

enum tl_log_level { TL_LOG_DEBUG, TL_LOG_INFO, TL_LOG_WARN, TL_LOG_ERROR, TL_LOG_FATAL };
enum tl_log_format { TL_LOG_LOGFMT, TL_LOG_JSON };

struct tl_log_settings {
    enum tl_log_level level; /* lines below it are dropped */
    enum tl_log_format format;
    const char *role; /* borrowed for the life of the process: "dispatcher", "worker.2", ... */
};

/* Sets level, format and role of this process. May be called again (SIGHUP). */
void tl_log_init(const struct tl_log_settings *settings);

/* Fields of a line beside the message; any may be NULL. */
struct tl_log_fields {
    const char *queue;
    const char *visitor;
    const char *connection;
    const struct tl_error *error; /* adds kind= and error= */
};

/* One line. `message` is printf-style. Fields may be NULL. */
void tl_log(enum tl_log_level level, const struct tl_log_fields *fields, const char *message, ...)
    __attribute__((format(printf, 3, 4)));

/* Limits how often a repeated message is written: keep one static object per message. */
struct tl_log_limit {
    int64_t next_ms;     /* internal: monotonic time before which lines are counted, not written */
    unsigned suppressed; /* internal */
};

/* True when a line may be written now (at most one per interval_ms); *suppressed gets how many were
 * dropped since the last one. Not shared between threads. */
bool tl_log_allow(struct tl_log_limit *limit, int64_t now_ms, int64_t interval_ms,
                  unsigned *suppressed);

#define tl_debug(...) tl_log(TL_LOG_DEBUG, NULL, __VA_ARGS__)
#define tl_info(...)  tl_log(TL_LOG_INFO, NULL, __VA_ARGS__)
#define tl_warn(...)  tl_log(TL_LOG_WARN, NULL, __VA_ARGS__)

#endif
