/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private redis-server of `tellerline up`. It is reachable only through a unix socket and keeps
 * its data in one folder, with every change in an append-only file (written at once, synced each
 * second).
 */
#ifndef TL_CTL_UP_PRIVATE_REDIS_H
#define TL_CTL_UP_PRIVATE_REDIS_H

#include <limits.h>
#include <stdbool.h>

#include "common/base/error.h"

enum { TL_SOCKET_PATH_MAX = 108 }; /* sun_path, with the terminating zero */

struct tl_private_redis {
    char program[PATH_MAX]; /* redis-server or valkey-server */
    char folder[PATH_MAX];  /* the data folder, absolute */
    char socket[TL_SOCKET_PATH_MAX];
    char socket_folder[TL_SOCKET_PATH_MAX]; /* made for the socket where `folder` is too long a
                                               path; else "" */
    char url[TL_SOCKET_PATH_MAX + 8];       /* unix://... */
    int lock; /* held as long as this process or the redis-server has it open; -1: none */
};

/* Finds the program, makes the folder (mode 0700), locks it and chooses the socket. False, with a
 * sentence for the operator, when one of these fails or another `tellerline up` uses the folder;
 * then there is nothing to release. */
bool tl_private_redis_prepare(struct tl_private_redis *redis, const char *data,
                              struct tl_error *err);

/* Writes the address to the file where other commands look for it. Call it when the server answers.
 */
bool tl_private_redis_publish(const struct tl_private_redis *redis, struct tl_error *err);

/* Removes that file and releases the lock. */
void tl_private_redis_release(struct tl_private_redis *redis);

/* The command line, ended by NULL; its texts are borrowed from redis. */
enum { TL_PRIVATE_REDIS_ARGS = 32 };
void tl_private_redis_argv(const struct tl_private_redis *redis,
                           const char *argv[TL_PRIVATE_REDIS_ARGS]);

/* Does the server answer? False with TL_ERR_LOADING while it reads its data, with TL_ERR_CONNECT
 * before. */
bool tl_private_redis_answers(const struct tl_private_redis *redis, struct tl_error *err);

/* Chooses the path of the socket in `folder`. "" when that cannot be used: it is too long, or holds
 * a
 * '?', which cannot be written in an address. */
void tl_private_redis_socket(const char *folder, char path[TL_SOCKET_PATH_MAX]);

#endif
