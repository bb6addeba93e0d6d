/*
 * The table behind the configuration: one row per setting, for the processes and for a queue. The
 * file, the environment, the hash of a queue in the store, the admin API and the documentation all
 * go through these rows, so a setting has one name, one type, one default and one pair of bounds
 * everywhere.
 */
#ifndef TL_CONFIG_TABLE_H
#define TL_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/config.h"

#define TL_SETTING_PATH_MAX                                                                        \
    64                           /* bytes of a path or environment name, with the terminating zero \
                                  */
#define TL_SETTING_BOUNDS_MAX 96 /* bytes of tl_setting_bounds, with the terminating zero */

/* How a value is written, and what the field is in the struct. */
enum tl_setting_type {
    TL_SETTING_BOOL,     /* true, false: bool */
    TL_SETTING_NUMBER,   /* uint64_t */
    TL_SETTING_SIZE,     /* 64KiB: uint64_t, bytes */
    TL_SETTING_DURATION, /* 10m: int64_t, ms */
    TL_SETTING_TIME,     /* RFC 3339 or nothing: int64_t, Unix ms, 0 for nothing */
    TL_SETTING_STRING,   /* char[size], printable */
    TL_SETTING_LISTEN,   /* host:port, [::1]:port: struct tl_listen */
    TL_SETTING_CHOICE,   /* one of `names`: an enum that counts from 0 in their order */
    TL_SETTING_LANES,    /* a list: lanes and n_lanes of a queue */
    TL_SETTING_LANE,     /* one of the lanes: default_lane of a queue */
};

struct tl_setting {
    const char *path; /* "redis.url"; of a queue "rate.admit" */
    const char *key;  /* of a queue setting its name in the store, "rate_admit"; else NULL */
    enum tl_setting_type type;
    const char *fallback; /* the default, as text */
    int64_t min, max; /* of the value; of the length for a string (max 0: what the field holds) */
    const char *const *names; /* of a choice, ended by NULL */
    bool (*check)(const char *value,
                  struct tl_error *err); /* of a string, beyond its length; or NULL */
    size_t offset, size;                 /* of the field */
    const char *help;                    /* one line */
};

/* Settings of the processes (fields of struct tl_config), and of a queue (of struct
 * tl_queue_settings). */
const struct tl_setting *tl_config_table(size_t *n);
const struct tl_setting *tl_queue_table(size_t *n);
/* Process settings of earlier versions: only path, and what to use instead in help. They are
 * refused like unknown settings, but with that advice. */
const struct tl_setting *tl_config_removed_table(size_t *n);

/* Whether the value is text as the file writes it, or as the store keeps it: plain milliseconds for
 * durations and times, commas between lanes. The second also takes the first. */
enum tl_setting_form { TL_FORM_FILE, TL_FORM_STORE };

/* Parses the value and stores it in the field of `base`; on failure nothing is changed and err says
 * what is wrong with it and what the limit is. The value of a plain string is never part of the
 * message, as it may hold a password. */
bool tl_setting_set(const struct tl_setting *row, void *base, const char *value,
                    enum tl_setting_form form, struct tl_error *err);
/* The field's value as the store keeps it. TL_QUEUE_VALUE_MAX bytes are always enough. */
void tl_setting_get(const struct tl_setting *row, const void *base, char *value, size_t size);
/* All rows' defaults into base. */
void tl_settings_default(const struct tl_setting *rows, size_t n, void *base);

/* The limits in words: "256B to 1MiB", "counter, rate or both". */
void tl_setting_bounds(const struct tl_setting *row, char bounds[TL_SETTING_BOUNDS_MAX]);
/* The type in words: "duration". */
const char *tl_setting_type_name(const struct tl_setting *row);
/* "redis.url" as TELLERLINE_REDIS_URL. */
void tl_setting_env_name(const struct tl_setting *row, char name[TL_SETTING_PATH_MAX]);

/* Whether `candidate` is so close to the misspelt `word` that it is worth proposing, and closer
 * than *best, which it then replaces. Start with *best = SIZE_MAX. */
bool tl_spelling_closer(const char *word, const char *candidate, size_t *best);

#endif
