/*
 * The command line of every program: --config FILE, --check, --healthcheck, --version, --help, and
 * what a program adds in a small table of its own.
 */
#ifndef TL_OPTIONS_H
#define TL_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "common/base/error.h"

struct tl_config;
struct tl_listen;

#define TL_OPTIONS_MAX   16 /* rows of a program's own table at most */
#define TL_LISTENERS_MAX 2

/* One option of a program; a table ends with a row without a name. */
struct tl_option {
    const char *name;     /* "processes", given as --processes */
    const char *argument; /* "N", for --help; NULL: takes none */
    const char *help;
    /* Called for every time the option is given, in order; value is NULL without an argument. */
    bool (*apply)(void *context, const char *value, struct tl_error *err);
};

struct tl_program {
    const char *name;                /* "tellerline-worker" */
    const char *summary;             /* one line for --help */
    const struct tl_option *options; /* its own, or NULL */
    void *context;                   /* for their callbacks */
    const char *operands;            /* "COMMAND [ARGUMENT...]", for --help; NULL: takes none */
    /* Its listeners that answer /livez; --healthcheck asks the first that is configured with a
     * port. All NULL: the program has no --healthcheck. */
    const struct tl_listen *(*listeners[TL_LISTENERS_MAX])(const struct tl_config *config);
};

struct tl_options {
    const char *config_path; /* borrowed from argv or the environment; NULL: not given */
    int first_operand;       /* index into argv; argc when there is none */
};

enum tl_options_next {
    TL_OPTIONS_RUN,  /* go on with the options */
    TL_OPTIONS_EXIT, /* all is said and done: exit with *status */
};

/* The configuration file: the one given with --config, else the one that TELLERLINE_CONFIG names,
 * else NULL. */
const char *tl_options_config_path(const char *given);

/* Reads the command line. --help, --version, --check and --healthcheck write to `out`, complaints
 * go to `errors`. --healthcheck waits for the answer, three seconds at most. *status is 0, or 1 for
 * a configuration that was refused or a program that is not alive, or 2 for a wrong command line.
 * With operands, options end at the first of them. */
enum tl_options_next tl_options_parse(const struct tl_program *program, int argc, char **argv,
                                      struct tl_options *options, int *status, FILE *out,
                                      FILE *errors);

#endif
