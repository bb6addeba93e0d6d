/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the rows of the tables of settings are written. OWNER is the struct that holds the fields. A
 * row's path is that of its field, which for a duration and a time ends in _ms besides. The help
 * comes last; of a text may follow what it consists of (.characters, .form), a check (.check), and
 * .min = 1 where it may not be empty.
 */
#ifndef TL_CONFIG_ROWS_H
#define TL_CONFIG_ROWS_H

#include "common/config/table.h"

#define ROW(path_, field, type_, ...)                                                              \
    {                                                                                              \
        .path = #path_, .offset = offsetof(OWNER, field), .size = sizeof(((OWNER *)NULL)->field),  \
        .type = TL_SETTING_##type_, __VA_ARGS__                                                    \
    }
#define BOUNDED(path, field, type, standard, least, most, ...)                                     \
    ROW(path, field, type, .fallback = standard, .min = least, .max = most, .help = __VA_ARGS__)

#define TEXT(m, standard, ...) ROW(m, m, STRING, .fallback = standard, .help = __VA_ARGS__)
/* Of a file or a folder. */
#define PATH(m, standard, ...)                                                                     \
    ROW(m, m, STRING, .is_path = true, .fallback = standard, .help = __VA_ARGS__)
/* Words that are separated by spaces in the field. */
#define LIST(m, standard, ...) ROW(m, m, LIST, .fallback = standard, .help = __VA_ARGS__)
/* At most this many bytes in a language. */
#define TEXTS(m, most, ...)      ROW(m, m, TEXTS, .fallback = "", .max = most, .help = __VA_ARGS__)
#define LISTEN(m, standard, ...) ROW(m, m, LISTEN, .fallback = standard, .help = __VA_ARGS__)
#define FLAG(m, standard, ...)   ROW(m, m, BOOL, .fallback = standard, .help = __VA_ARGS__)
/* names_: what may be chosen, ended by NULL */
#define CHOICE(m, standard, names_, ...)                                                           \
    ROW(m, m, CHOICE, .fallback = standard, .names = names_, .help = __VA_ARGS__)
#define NAMES(m, names_, ...) ROW(m, m, NAMES, .fallback = "", .names = names_, .help = __VA_ARGS__)

#define NUMBER(m, standard, least, most, ...)                                                      \
    BOUNDED(m, m, NUMBER, standard, least, most, __VA_ARGS__)
/* In whole per cent. */
#define SHARE(m, standard, least, most, ...)                                                       \
    BOUNDED(m, m, SHARE, standard, least, most, __VA_ARGS__)
#define DECIMAL(m, standard, least, most, ...)                                                     \
    BOUNDED(m, m, DECIMAL, standard, least, most, __VA_ARGS__)
#define SIZE(m, standard, least, most, ...) BOUNDED(m, m, SIZE, standard, least, most, __VA_ARGS__)
#define DURATION(m, standard, least, most, ...)                                                    \
    BOUNDED(m, m##_ms, DURATION, standard, least, most, __VA_ARGS__)
/* Until the end of the year 9999. */
#define TIME(m, ...) BOUNDED(m, m##_ms, TIME, "", 0, INT64_C(253402300799999), __VA_ARGS__)

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Bounds of durations. */
#define MILLISECONDS(n) (n)
#define SECONDS(n)      INT64_C(n##000)
#define MINUTES(n)      (SECONDS(60) * (n))
#define DAYS(n)         (MINUTES(1440) * (n))

#endif
