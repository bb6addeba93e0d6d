/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `tellerline`: name, options and function of each. */
#ifndef TL_CTL_SHELL_COMMAND_H
#define TL_CTL_SHELL_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

#include "lab/plan_options.h"
#include "lab/rehearse_options.h"

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
    TL_OPTION_JSON = 1 << 4,
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
};
/* The options of every command that talks to a running system. */
#define TL_OPTIONS_STORE (TL_OPTION_CONFIG | TL_OPTION_REDIS | TL_OPTION_DATA)
/* The options of every command that is an admin call: on the store, or over HTTP. */
#define TL_OPTIONS_CALL (TL_OPTIONS_STORE | TL_OPTION_SERVER | TL_OPTION_JSON)

/* The parsed command line. Texts are borrowed from argv. */
struct tl_ctl_options {
    const char *config; /* NULL: defaults and environment */
    const char *redis;  /* NULL: what the configuration says */
    const char *data;   /* the data folder of `tellerline up` */
    const char *queue;  /* NULL: all */
    const char *worker; /* host:port, several with commas; NULL: none */
    bool json;
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
    bool connect;          /* of check */
    const char *format;    /* of export */
    const char *output;    /* of export; NULL: standard output */
    uint64_t limit;        /* 0: the call's own */
    uint64_t from;         /* 0: from the beginning */
    const char *reference; /* of visitor show; NULL: none */
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

struct tl_ctl_command {
    const char *name;    /* one word or two: "queue set" */
    const char *other;   /* another spelling, "set"; NULL: none */
    const char *words;   /* operands for the usage line: "QUEUE TEXT", or "" */
    const char *summary; /* one line */
    const char *details; /* more for --help, or "" */
    const char *status;  /* what exit status 1 means; NULL: as for all commands */
    enum tl_ctl_group group;
    unsigned options; /* set of TL_OPTION_* */
    int min_words, max_words;
    bool hidden;                                      /* not in the list of commands */
    int (*run)(const struct tl_ctl_options *options); /* returns an exit status */
};

int tl_command_up(const struct tl_ctl_options *options);
int tl_command_dashboard(const struct tl_ctl_options *options);
int tl_command_audit(const struct tl_ctl_options *options);
int tl_command_queue_show(const struct tl_ctl_options *options);
int tl_command_queue_create(const struct tl_ctl_options *options);
int tl_command_queue_line(const struct tl_ctl_options *options);
int tl_command_queue_delete(const struct tl_ctl_options *options);
int tl_command_visitor_show(const struct tl_ctl_options *options);
int tl_command_stats(const struct tl_ctl_options *options);
int tl_command_export(const struct tl_ctl_options *options);
int tl_command_diff(const struct tl_ctl_options *options);
int tl_command_apply(const struct tl_ctl_options *options);
int tl_command_queues(const struct tl_ctl_options *options);
int tl_command_hooks_list(const struct tl_ctl_options *options);
int tl_command_hooks_test(const struct tl_ctl_options *options);
int tl_command_top(const struct tl_ctl_options *options);
int tl_command_set(const struct tl_ctl_options *options);
int tl_command_open(const struct tl_ctl_options *options);
int tl_command_pause(const struct tl_ctl_options *options);
int tl_command_drain(const struct tl_ctl_options *options);
int tl_command_close(const struct tl_ctl_options *options);
int tl_command_sold_out(const struct tl_ctl_options *options);
int tl_command_passthrough(const struct tl_ctl_options *options);
int tl_command_notice(const struct tl_ctl_options *options);
int tl_command_visitor_move(const struct tl_ctl_options *options);
int tl_command_visitor_remove(const struct tl_ctl_options *options);
int tl_command_visitor_forget(const struct tl_ctl_options *options);
int tl_command_block(const struct tl_ctl_options *options);
int tl_command_unblock(const struct tl_ctl_options *options);
int tl_command_blocks(const struct tl_ctl_options *options);
int tl_command_draw(const struct tl_ctl_options *options);
int tl_command_verify_draw(const struct tl_ctl_options *options);
int tl_command_recover(const struct tl_ctl_options *options);
int tl_command_log(const struct tl_ctl_options *options);
int tl_command_token_make(const struct tl_ctl_options *options);
int tl_command_token_list(const struct tl_ctl_options *options);
int tl_command_token_revoke(const struct tl_ctl_options *options);
int tl_command_key_make(const struct tl_ctl_options *options);
int tl_command_plan(const struct tl_ctl_options *options);
int tl_command_rehearse(const struct tl_ctl_options *options);
int tl_command_check(const struct tl_ctl_options *options);
int tl_command_config_doc(const struct tl_ctl_options *options);

/* Writes `tellerline: ` and the error to standard error, and returns `status`. */
int tl_ctl_fail(int status, const struct tl_error *err);
/* The exit status for a change that failed: TL_EXIT_PROBLEM when what was asked for is wrong or its
 * queue does not exist, else TL_EXIT_FAILED. */
int tl_ctl_status_of(const struct tl_error *err);
/* The exit status for a file or a list that could not be read: TL_EXIT_PROBLEM, but TL_EXIT_FAILED
 * when it was memory that was missing. */
int tl_ctl_file_status(const struct tl_error *err);

#endif
