/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tellerline up`: the programs, kept running by the supervisor (common/role), their output printed
 * line by line with the name of the program in front; and their private Redis and PostgreSQL.
 */
#ifndef TL_CTL_UP_H
#define TL_CTL_UP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/error.h"

#include "ctl/shell/shell.h"

/* ---- lines of several programs: whole ones, each with the name of its program in front ---- */

#define TL_LINE_BYTES_MAX 8192 /* a longer line is split */

/* Where lines go. */
struct tl_lines_output {
    FILE *file; /* borrowed */
    bool colour;
};

/* The lines of one program. Set role and colour, and zero the rest. */
struct tl_lines {
    const char *role; /* borrowed */
    int colour;       /* index of its colour */
    size_t length;    /* bytes of a line that is not complete yet */
    char bytes[TL_LINE_BYTES_MAX];
};

/* Takes bytes from a pipe and prints the lines that they complete. Control characters other than
 * tabs are printed as '?', so that a program cannot control the terminal. */
void tl_lines_feed(struct tl_lines *lines, const struct tl_lines_output *output, const char *bytes,
                   size_t length);
/* The program has closed its output: prints a last line without a line end. */
void tl_lines_end(struct tl_lines *lines, const struct tl_lines_output *output);

/* ---- the programs ---- */

/* Each leads a process group of its own, so that Ctrl-C reaches only the parent. */
struct tl_programs;

enum { TL_PROGRAM_ARGS_MAX = 32 };

struct tl_program_start {
    const char *role; /* this and all texts are borrowed as long as the programs run */
    const char *const
        *argv;             /* fewer than TL_PROGRAM_ARGS_MAX, ended by NULL; argv[0] is the path */
    int keep_fd;           /* stays open in the program; -1: none */
    const int *listen_fds; /* passed to the program, and kept open here; borrowed */
    unsigned n_listen_fds;
    bool quiet;            /* what it writes until all are up is printed only if it ends */
    unsigned stop_stage;   /* programs of a lower stage stop first */
    int stop_signal;       /* 0: SIGTERM */
    int64_t stop_limit_ms; /* then it is killed */
};

/* output gets all lines; borrowed. */
struct tl_programs *tl_programs_new(FILE *output, struct tl_error *err);
/* Kills what still runs. */
void tl_programs_free(struct tl_programs **programs);

/* Adds a program; the next turn starts it, with the environment of the parent at that time. */
bool tl_programs_add(struct tl_programs *programs, const struct tl_program_start *start,
                     struct tl_error *err);

/* Waits up to timeout_ms for something to happen and handles it. False when waiting fails, or when
 * a program could not be started or has exited before tl_programs_settled. (A program that is
 * killed by a signal is always started again.) */
bool tl_programs_turn(struct tl_programs *programs, int64_t timeout_ms, struct tl_error *err);

/* All programs are up: from now on, each is started again when it ends. */
void tl_programs_settled(struct tl_programs *programs);

/* How often the operator asked to stop: tl_supervisor_stop_asked. */
unsigned tl_programs_stop_asked(const struct tl_programs *programs);

/* Stops all programs, stage by stage, and waits until they are gone. Kills those that are late, and
 * all when the operator asks a second time. False when a program had to be killed. */
bool tl_programs_stop(struct tl_programs *programs);

/* Prints a line of the parent itself. */
void tl_programs_say(struct tl_programs *programs, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- the data folder, and the private servers that keep their data in it ---- */

enum { TL_SOCKET_PATH_MAX = 108 }; /* sun_path, with the terminating zero */

struct tl_data_folder {
    const char *given;   /* as the operator names it; borrowed */
    char path[PATH_MAX]; /* absolute */
    int lock; /* held as long as this process or a private server has it open; -1: none */
};

/* Makes the folder (mode 0700) and locks it, unless that is done; files that this process makes
 * from now on are for their user alone. False, with a sentence for the operator, when this fails or
 * another `tellerline up` uses the folder. */
bool tl_data_folder_open(struct tl_data_folder *folder, struct tl_error *err);
void tl_data_folder_close(struct tl_data_folder *folder);

/* A server that is reachable only through a unix socket. A zeroed struct is one that is not used.
 */
struct tl_private_server {
    struct tl_data_folder *folder; /* borrowed */
    const char *url_file;          /* where other commands look for its address */
    char program[PATH_MAX];        /* redis-server or valkey-server; the folder with PostgreSQL's */
    char data[PATH_MAX];           /* in the folder, or the folder itself */
    bool other_user;               /* it runs as another user, who reaches no XDG_RUNTIME_DIR */
    char socket[TL_SOCKET_PATH_MAX];
    char socket_folder[TL_SOCKET_PATH_MAX]; /* made for the socket where the path in the data folder
                                               does not serve; else "" */
    char url[TL_SOCKET_PATH_MAX + 64];
};

/* Looks for an executable in the folders of PATH. */
bool tl_find_program(const char *name, char path[PATH_MAX]);
/* Chooses the path of the socket of this name: where the data is, or in a folder made for it where
 * that path is too long, or means something else in an address. */
bool tl_private_server_socket(struct tl_private_server *server, const char *name,
                              struct tl_error *err);
/* Writes the address to the file where other commands look for it. Call it when the server answers.
 */
bool tl_private_server_publish(const struct tl_private_server *server, struct tl_error *err);
/* Removes that file, and what was made for the socket. */
void tl_private_server_release(struct tl_private_server *server);

/* Redis: every change is in an append-only file (written at once, synced each second). PostgreSQL:
 * it runs as this user, and as `postgres` where that is root, whom it refuses. */

/* Finds the program, opens the folder and chooses the socket. False, with a sentence for the
 * operator, when one of these fails. */
bool tl_private_redis_prepare(struct tl_private_server *redis, struct tl_data_folder *folder,
                              struct tl_error *err);
bool tl_private_postgres_prepare(struct tl_private_server *postgres, struct tl_data_folder *folder,
                                 struct tl_error *err);

/* The command line, ended by NULL; its texts are borrowed from the server. */
void tl_private_redis_argv(const struct tl_private_server *redis,
                           const char *argv[TL_PROGRAM_ARGS_MAX]);
void tl_private_postgres_argv(const struct tl_private_server *postgres,
                              const char *argv[TL_PROGRAM_ARGS_MAX]);

/* Does the server answer? False with TL_ERR_LOADING while Redis reads its data, with
 * TL_ERR_CONNECT before. */
bool tl_private_redis_answers(const struct tl_private_server *redis, struct tl_error *err);
bool tl_private_postgres_answers(const struct tl_private_server *postgres, struct tl_error *err);

/* ---- the archive ---- */

/* Connects to PostgreSQL at this address and makes the tables, or brings them up to date. *before:
 * their version before. */
bool tl_up_migrate(const char *url, unsigned *before, struct tl_error *err);

tl_ctl_verb tl_command_up;
tl_ctl_verb tl_command_migrate, tl_command_restore;

#endif
