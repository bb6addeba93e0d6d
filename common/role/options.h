/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a command line, from a table: `--name`, `--name VALUE` or `--name=VALUE` in any order
 * among the operands; `--` ends the options. Some have a letter, too: `-q NAME`. A longer word that
 * begins with one hyphen is an operand.
 */
#ifndef TL_OPTIONS_H
#define TL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/error.h"

enum { TL_OPTIONS_MAX = 40 }; /* rows of a table */

/* One option; a table ends with a row without a name. */
struct tl_option {
    const char *name;     /* "processes", given as --processes */
    const char *argument; /* name of its value, for the help: "N"; NULL: takes none */
    const char *help;
    /* Called each time the option is given, in order; value is NULL without an argument. */
    bool (*apply)(void *context, const char *value, struct tl_error *err);
    void *context;
    bool last;   /* what follows is not read: --help */
    char letter; /* 'q', given as -q; 0: none */
};

/* Applies the options of argv[1] to argv[argc - 1] and moves the operands to the end. Returns the
 * index of the first operand (argc: there is none), or -1 with a sentence for the user. */
int tl_options_read(const struct tl_option table[], int argc, char **argv, struct tl_error *err);

/* Writes one line of help per option. */
void tl_options_print(const struct tl_option table[], FILE *out);

/* Ready-made `apply` callbacks. */
bool tl_option_text(void *context, const char *value,
                    struct tl_error *err); /* const char **, borrowed from argv */
bool tl_option_flag(void *context, const char *value, struct tl_error *err); /* bool * */
/* Parses a whole number from 1 to most: for `apply` callbacks. */
bool tl_option_number(const char *value, uint64_t most, uint64_t *number, struct tl_error *err);

#endif
