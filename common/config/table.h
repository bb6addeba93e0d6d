/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables behind the configuration: one row per setting, for the processes and for a queue. The
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
#include "common/config/settings.h"

/* Bytes of a path or of its name in the environment, with the terminating zero. */
#define TL_SETTING_PATH_MAX 64

/* How a value is written, and what the field is in the struct. */
enum tl_setting_type {
    TL_SETTING_BOOL,     /* true, false: bool */
    TL_SETTING_NUMBER,   /* uint64_t */
    TL_SETTING_SHARE,    /* 80% or 0.8: uint64_t, whole per cent, which the store keeps */
    TL_SETTING_DECIMAL,  /* 0.9: double */
    TL_SETTING_SIZE,     /* 64KiB: uint64_t, bytes */
    TL_SETTING_DURATION, /* 10m: int64_t, ms */
    TL_SETTING_TIME,     /* RFC 3339 or nothing: int64_t, Unix ms, 0 for nothing */
    TL_SETTING_STRING,   /* char[size], printable */
    TL_SETTING_LISTEN,   /* host:port, [::1]:port: struct tl_listen */
    TL_SETTING_CHOICE,   /* one of `names`: an enum that counts from 0 in their order */
    TL_SETTING_LANES,    /* a list: lanes and n_lanes of a queue */
    TL_SETTING_LANE,     /* one of the lanes: default_lane of a queue */
    TL_SETTING_NAMES,    /* a list of some of `names`: uint64_t, a bit for each in their order */
    TL_SETTING_LIST,     /* a list of words: char[size], separated by spaces */
    TL_SETTING_TEXTS,    /* a text, or one for each of some languages: char[size], see texts.h */
    TL_SETTING_WEIGHTS,  /* a list of whole numbers, or nothing: struct tl_weights */
};

struct tl_setting {
    const char *path; /* "redis.url"; of a queue "rate.admit", also in the store */
    /* NULL, or the last part of the path's long form: `capacity: 20` is `capacity: {max: 20}`, and
     * gives the rows below, as capacity.min, their defaults. */
    const char *self;
    enum tl_setting_type type;
    bool lines;   /* texts may have line breaks */
    bool is_path; /* of a text: a relative one starts at the configuration file */
    /* Of a text or a list: what else it has no characters of, and what it is then not; or NULL. */
    const char *characters, *form;
    const char *fallback; /* the default, as text */
    int64_t min, max;     /* of the value; of the length of a text (max 0: what the field holds) */
    const char *const *names; /* of a choice or of names, ended by NULL */
    bool (*check)(const char *value,
                  struct tl_error *err); /* of a text or a list, beyond its length; or NULL */
    size_t offset, size;                 /* of the field */
    const char *help;                    /* one line */
};

/* Settings of the processes (fields of struct tl_config); those of a queue: queue_table.h. */
const struct tl_setting *tl_config_table(size_t *n);

#endif
