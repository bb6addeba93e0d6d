/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the verbs of `tellerline` share: what a command is, and what was typed; how it speaks to
 * people and to programs; the configuration and the store.
 *
 * Nothing here fails for want of memory (lab/memory.h), and whether standard output took all of it
 * is looked at once, at the end of main().
 */
#ifndef TL_CTL_SHELL_H
#define TL_CTL_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/config/config.h"
#include "common/control/control.h"
#include "common/role/options.h"
#include "common/words/json.h"

#include "lab/memory.h"
#include "lab/options.h"

/* ---- commands ---- */

/* Exit statuses of every command; help.c has them in words. */
enum {
    TL_EXIT_OK = 0,
    TL_EXIT_PROBLEM = 1,     /* a violation, an invalid setting or file, no such queue or visitor */
    TL_EXIT_FAILED = 2,      /* it could not do its work: usage, no store, a failed system call */
    TL_EXIT_UNCONFIRMED = 3, /* it has to be confirmed, and nobody said yes */
    TL_EXIT_REFUSED = 4,     /* the server refuses the token, or the role does not suffice */
    TL_EXITS
};

/* Which options a command takes. */
enum {
    TL_OPTION_CONFIG = 1 << 0,
    TL_OPTION_REDIS = 1 << 1,
    TL_OPTION_DATA = 1 << 2,
    TL_OPTION_QUEUE = 1 << 3,
    TL_OPTION_OUTPUT = 1 << 4,
    TL_OPTION_INTERVAL = 1 << 5,
    TL_OPTION_COUNT = 1 << 6,
    TL_OPTION_PROCESSES = 1 << 7,
    TL_OPTION_RECOVER = 1 << 8,
    TL_OPTION_WORKER = 1 << 9,
    TL_OPTION_FOR = 1 << 10,
    TL_OPTION_PLAN = 1 << 11,
    TL_OPTION_REHEARSE = 1 << 12,
    TL_OPTION_SERVER = 1 << 13,
    TL_OPTION_YES = 1 << 14,
    TL_OPTION_DRY_RUN = 1 << 15,
    TL_OPTION_EXPORT = 1 << 16,
    TL_OPTION_LIMIT = 1 << 17,
    TL_OPTION_FROM = 1 << 18,
    TL_OPTION_REFERENCE = 1 << 19,
    TL_OPTION_CONNECT = 1 << 20,
    TL_OPTION_ARCHIVE = 1 << 21,
    TL_OPTION_SOURCE = 1 << 22,
    TL_OPTION_REPORT = 1 << 23,
    TL_OPTION_COMPARE = 1 << 24,
    TL_OPTION_TRAIL = 1 << 26,
    TL_OPTION_VERIFY = 1 << 27,
    TL_OPTION_PROOF = 1 << 28,
};
/* The options of every command that talks to a running system. */
#define TL_OPTIONS_STORE (TL_OPTION_CONFIG | TL_OPTION_REDIS | TL_OPTION_DATA)
/* The options of every command that is an admin call: on the store, or over HTTP. */
#define TL_OPTIONS_CALL (TL_OPTIONS_STORE | TL_OPTION_SERVER | TL_OPTION_OUTPUT)

/* How a command writes what it found. */
enum tl_output { TL_OUTPUT_TABLE, TL_OUTPUT_JSON, TL_OUTPUT_YAML };
/* The same of a report. */
enum tl_report_form { TL_REPORT_TEXT, TL_REPORT_JSON, TL_REPORT_CSV, TL_REPORT_HTML };

struct tl_ctl_command;

/* The parsed command line. Texts are borrowed from argv. */
struct tl_ctl_options {
    const struct tl_ctl_command *command;
    const char *config; /* NULL: defaults and environment */
    const char *redis;  /* NULL: what the configuration says */
    const char *data;   /* the data folder of `tellerline up` */
    const char *queue;  /* NULL: all */
    const char *worker; /* host:port, several with commas; NULL: none */
    enum tl_output output;
    bool help;
    int64_t interval_ms;
    uint64_t count;         /* 0: no limit */
    uint64_t processes;     /* 0: what the configuration says */
    bool now;               /* of recover */
    int64_t wait_ms;        /* of recover; 0: not given */
    int64_t for_ms;         /* of block; 0: not given */
    const char *server;     /* the admin listener; NULL: straight on the store */
    const char *token_file; /* NULL: the token is in TELLERLINE_TOKEN */
    bool yes;               /* do it without asking */
    bool dry_run;
    bool connect;    /* of check */
    bool archive;    /* of up: with a private PostgreSQL; of audit, verify: compares with it */
    unsigned format; /* of export: csv, jsonl; of report: enum tl_report_form */
    int64_t since_ms, until_ms; /* of report: Unix time; 0: not given */
    const char *with;           /* of report: a second sale; NULL: none */
    bool sales;                 /* of report: list them */
    uint64_t limit;             /* 0: the call's own */
    uint64_t from;              /* 0: from the beginning */
    unsigned source;            /* of restore: there is one */
    uint64_t generation;        /* of trail export; 0: the last one */
    const char *key;            /* of verify: a verifier's; NULL: none */
    const char *older;          /* of verify: a file with an older checkpoint; NULL: none */
    const char *reference;      /* of visitor show; NULL: none */
    struct tl_plan_options plan;
    struct tl_rehearse_options rehearse;
    int n_words;
    char **words; /* operands after the options */
};

/* Commands that belong together in the help. */
enum tl_ctl_group {
    TL_GROUP_RUN,
    TL_GROUP_QUEUES,
    TL_GROUP_VISITORS,
    TL_GROUP_WATCH,
    TL_GROUP_FILE,
    TL_GROUP_ACCESS,
    TL_GROUP_PLAN,
    TL_GROUPS
};

/* A verb. Returns an exit status. */
typedef int tl_ctl_verb(const struct tl_ctl_options *options);

/* How a cell stands out where there is colour. */
enum tl_tint { TL_TINT_NONE, TL_TINT_CARE, TL_TINT_TROUBLE };

/* A member of the objects of a list, and how a table shows it: numbers and waits at the right. A
 * number that is a text, such as "-", is shown as it is. */
struct tl_member {
    const char *title;
    const char *name; /* "totals.left": of an inner object */
    enum { TL_MEMBER_TEXT, TL_MEMBER_NUMBER, TL_MEMBER_TIME, TL_MEMBER_WAIT } kind;
    int most;         /* columns; 0: as many as it needs */
    const char *none; /* for a text or time that is "", or not there */
    void (*show)(const json_t *object, struct tl_text *cell); /* instead of a member, or NULL */
    enum tl_tint (*tint)(const json_t *object);               /* NULL: none */
};
#define TL_MEMBER(title_, name_, kind_, none_)                                                     \
    {                                                                                              \
        .title = (title_), .name = (name_), .kind = TL_MEMBER_##kind_, .none = (none_)             \
    }
#define TL_MEMBER_SHOWN(title_, kind_, show_, tint_)                                               \
    {                                                                                              \
        .title = (title_), .kind = TL_MEMBER_##kind_, .none = "", .show = (show_), .tint = (tint_) \
    }

/* A text with "{member}" for members of an answer, or what was asked for; "{member:words}" has
 * words for one that is not there. Times and "..._seconds" are shown as people read them. */
struct tl_sentence {
    const char *when; /* only if this member is there, and is neither false, 0, null nor "", or as
                         in "was=active" has this value; NULL: always */
    const char *text;
};

enum { TL_SENTENCES = 3 };

/* One command. A plain one is a call of the admin API, and has no `run`. */
struct tl_ctl_command {
    const char *name;  /* one word or two: "queue set" */
    const char *words; /* operands for the usage line: "QUEUE [FILE]"; NULL: none */
    enum tl_ctl_group group;
    unsigned options; /* set of TL_OPTION_* */
    tl_ctl_verb *run; /* NULL: the call */
    /* The operation (common/control/routes.c). Its arguments are the operands by their names in the
     * usage line, QUEUE as "queue", SETTING=VALUE... as "settings", and the options that were
     * given.
     */
    const char *operation;
    const char *also; /* another name of the first operand, in the body; NULL: none */
    /* The question before what cannot be undone, of the arguments and, if it has one, of the answer
     * of `confirm_by`; NULL: none. */
    const char *confirm, *confirm_by;
    /* What is written of the answer: by a function, or the list in this member as a table; and the
     * first sentence that holds. */
    void (*write)(const json_t *answer);
    const char *list;
    const struct tl_member *columns; /* ended by one without a title */
    const char *none;                /* for a list without entries; NULL: only the titles */
    struct tl_sentence say[TL_SENTENCES];
    const char *alone;   /* this member goes to standard output, alone, so that a shell can take it,
                            and   the sentence to standard error; NULL: none */
    const char *summary; /* one line */
    const char *details; /* more for --help; NULL: none */
    const char *status;  /* what exit status 1 means; NULL: as for all commands */
    int most_words;      /* operands; 0: as the usage line says */
    int words_apart;     /* with this many operands it needs no configuration; 0: it always does */
    bool confirm_typed;  /* the first operand has to be typed */
    bool hidden;         /* not in the list of commands */
};

/* ---- the command line of one command: its options in any order among the operands ---- */

/* An option of the commands. */
struct tl_ctl_option {
    unsigned of; /* commands that take it: TL_OPTION_*; 0: all */
    bool asks;   /* it is an argument of a call, under its own name; a time as NAME_seconds */
    struct tl_option option;
};
/* All but those of the lab, for struct tl_ctl_options. Static storage. */
const struct tl_ctl_option *tl_ctl_option_table(size_t *n);

/* Sets the defaults, and writes the options that the command takes, for *options; ends with a row
 * without a name. */
void tl_ctl_options_rows(const struct tl_ctl_command *command, struct tl_ctl_options *options,
                         struct tl_option table[TL_OPTIONS_MAX + 1]);
/* Parses the arguments; argv[0] is the name of the command. argv is reordered: options->words are
 * the operands. TL_ERR_INVALID names the argument. With --help, the operands are not checked. */
bool tl_ctl_options_parse(const struct tl_ctl_command *command, int argc, char **argv,
                          struct tl_ctl_options *options, struct tl_error *err);
/* The same, but any number of operands is good, and what was typed does not say yet what the system
 * is: config and data may be NULL. */
bool tl_ctl_options_read(const struct tl_ctl_command *command, int argc, char **argv,
                         struct tl_ctl_options *options, struct tl_error *err);
/* Where nothing says what the system is, it is the one that a package installed, with its
 * environment, or a warning where others may not read that. TL_ERR_INVALID when its configuration
 * is only for others; config and data are good then, too. */
bool tl_ctl_options_locate(struct tl_ctl_options *options, struct tl_error *err);
/* Does the command use the system that a package installed, where nothing says what the system is?
 */
bool tl_installed_counts(const struct tl_ctl_command *command);
/* Where nothing says what the system is, neither an option nor the environment, it is that of the
 * file `path`, which a package installed; but not for `up`, which runs a system of its own, nor
 * `plan`, which only computes. TL_ERR_INVALID when only others may read that. */
bool tl_installed_find(const struct tl_ctl_command *command, const char *path,
                       struct tl_ctl_options *options, struct tl_error *err);

/* Sets what the environment file of the package sets of TELLERLINE_..., and the environment does
 * not; of two lines with one name, the last counts. A missing file sets nothing. */
bool tl_installed_environment(const char *path, struct tl_error *err);

/* The name of the i-th operand (from 0) of a usage line such as "NAME [SETTING=VALUE...]", and its
 * length; NULL: there is none. words NULL: without any. */
const char *tl_operand_name(const char *words, int i, size_t *length);

/* Writes `tellerline: ` and the error to standard error, and returns `status`. */
int tl_ctl_fail(int status, const struct tl_error *err);
/* The same for an error that it makes of the printf-style text. */
int tl_ctl_refuse(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The exit status for a change that failed: TL_EXIT_PROBLEM when what was asked for is wrong or its
 * queue does not exist, TL_EXIT_REFUSED when it may not be done, else TL_EXIT_FAILED. */
int tl_ctl_status_of(const struct tl_error *err);
/* The exit status for a file or a list that could not be read: TL_EXIT_PROBLEM, but TL_EXIT_FAILED
 * when it was memory that was missing. */
int tl_ctl_file_status(const struct tl_error *err);

/* ---- people ---- */

/* Does it show colour? Only a terminal that supports it, and unless NO_COLOR is set
 * (no-color.org). */
bool tl_terminal_colour(FILE *file);
/* Columns of the terminal that this is written to; 80 when it is none, or does not say. */
int tl_terminal_columns(FILE *file);

/* Writes a length of time for people: "48 s", "12 min", "3 h 5 min". */
void tl_terminal_duration(int64_t ms, char *text, size_t size);

/* Asks on the terminal, and returns TL_EXIT_OK when the answer is yes; with --yes it does not ask.
 * Without a terminal to ask on, or for another answer, it says so on standard error and returns
 * TL_EXIT_UNCONFIRMED.
 * what: sentences with what will happen, and that it cannot be undone. word: what to type, such as
 * the name of a queue; NULL: "y" or "yes" is enough. */
int tl_ctl_confirm(const struct tl_ctl_options *options, const char *what, const char *word);

/* Writes it to standard output and releases it. */
void tl_text_print(struct tl_text *text);

/* How far long work is: a bar on standard error, if that is a terminal; else nothing. Times are
 * local and monotonic (common/base/clock.h). */
struct tl_progress {
    const char *what; /* borrowed: "export" */
    bool live;        /* a terminal */
    int64_t begun_ms, next_ms;
};
void tl_progress_begin(struct tl_progress *progress, const char *what, int64_t now_ms);
/* Draws, a few times a second at most. total 0: not known. */
void tl_progress_at(struct tl_progress *progress, uint64_t done, uint64_t total, int64_t now_ms);
/* Clears the line. */
void tl_progress_end(struct tl_progress *progress);
/* The text of the bar, without line end, in at most `columns` columns: the fraction, the numbers,
 * and how long the rest will take. */
void tl_progress_text(const struct tl_progress *progress, uint64_t done, uint64_t total,
                      int64_t now_ms, int columns, char *text, unsigned size);

/* ---- tables ---- */

/* Appends a table with a row for each object of the list, below titles: each column is as wide as
 * its widest cell, with two spaces between columns, and no blanks at the end of a line. members:
 * ended by one without a title. colour: titles are bold, and tinted cells have their colour. dense:
 * one space between columns, where room is scarce. */
void tl_list_write(const json_t *list, const struct tl_member *members, bool colour, bool dense,
                   struct tl_text *out);
/* Writes it to standard output, in colour if that is a terminal that shows it. */
void tl_list_print(const json_t *list, const struct tl_member *members);

/* ---- JSON ---- */

/* Writes the value to standard output as JSON or YAML, with a line end, and releases it. NULL,
 * which is text that is not UTF-8, ends the command with status 2. */
void tl_data_write(enum tl_output output, json_t *value);
/* Appends to a list; a value of NULL as in tl_data_write. */
void tl_json_add(json_t *list, json_t *value);

/* A length of time in ms, such as "oldest_wait_ms", for people; "-" when it is not known. */
void tl_json_wait(const json_t *object, const char *name, char *text, size_t size);
/* Calls `each` for every member, those of inner objects as "rate.admit". */
void tl_json_flat(const json_t *object,
                  void (*each)(void *context, const char *name, const json_t *value),
                  void *context);

/* ---- the configuration and the store ---- */

/* Sleeps; a signal ends it early, which does no harm. */
void tl_ctl_pause(int64_t ms);

/* File in the data folder with the address of the private Redis of `tellerline up`. */
#define TL_REDIS_URL_FILE "redis.url"
/* The same of its private PostgreSQL. */
#define TL_POSTGRES_URL_FILE "postgres.url"

#define TL_CTL_URL_MAX 512

/* The address of the archive: the configured one, else that of a `tellerline up --archive` that
 * runs on the data folder. */
bool tl_ctl_archive_url(const struct tl_config *config, const struct tl_ctl_options *options,
                        char url[TL_CTL_URL_MAX], struct tl_error *err);

/* The address of a program that listens there, from this machine: "http://127.0.0.1:8080". */
#define TL_CTL_LOCAL_MAX (sizeof(((struct tl_listen *)NULL)->host) + 32)
void tl_ctl_local_url(const struct tl_listen *listen, char url[TL_CTL_LOCAL_MAX]);

struct tl_ctl_session {
    const struct tl_config *config;
    struct tl_control *control;
    struct tl_store *store; /* that of the control, borrowed */
    struct tl_actor actor;  /* who runs the command, for the record of changes */
};

/* Loads the configuration, and makes the way to the store. On failure there is nothing to close. */
bool tl_ctl_session_prepare(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                            struct tl_error *err);
/* The same, and connects. */
bool tl_ctl_session_open(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                         struct tl_error *err);
void tl_ctl_session_close(struct tl_ctl_session *session);

/* Says on standard error which of these queues was probably meant by the name, unless it is one of
 * them. Releases the names, which are texts. */
void tl_ctl_propose_queue(const char *name, json_t *names);
/* The same of the queues of the store and the configuration. */
void tl_ctl_session_propose(struct tl_ctl_session *session, const char *name);

#endif
