/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a command line, from a table: `--name`, `--name VALUE` or `--name=VALUE` in any order
 * among the operands; `--` ends the options. Some have a letter, too: `-q NAME`. A longer word that
 * begins with one hyphen is an operand.
 */
#ifndef TL_OPTIONS_H
#define TL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/error.h"
#include "common/config/table.h"

/* The setting of an option that fills in a member of OWNER; its help comes last, and more members
 * of the row may follow it. */
#define TL_OPTION_VALUE(name, member, kind, ...)                                                   \
    {                                                                                              \
        .path = name, .type = TL_SETTING_##kind, .offset = offsetof(OWNER, member),                \
        .size = sizeof(((OWNER *)NULL)->member), .help = __VA_ARGS__                               \
    }

enum { TL_OPTIONS_MAX = 40 }; /* rows of a table */

/* One option; a table ends with a row whose path is NULL. */
struct tl_option {
    /* A setting: its path is the name, and its reader has the bounds and the sentences. But a text
     * is borrowed from argv, so its field is a const char *, and one without an argument is a bool
     * that becomes true. */
    struct tl_setting value;
    const char *argument; /* name of its value, for the help: "N"; NULL: takes none */
    char letter;          /* 'q', given as -q; 0: none */
    bool last;            /* what follows is not read: --help */
    /* Instead of the reader of settings, for what is none; field: as of the setting. */
    bool (*apply)(void *field, const char *value, struct tl_error *err);
    void *base; /* of the setting's offset */
};

/* Applies the options of argv[1] to argv[argc - 1] and moves the operands to the end. Returns the
 * index of the first operand (argc: there is none), or -1 with a sentence for the user. */
int tl_options_read(const struct tl_option table[], int argc, char **argv, struct tl_error *err);

/* Sets what has a fallback to that. */
void tl_options_default(const struct tl_option table[]);

/* Writes one line of help per option. */
void tl_options_print(const struct tl_option table[], FILE *out);

#endif
