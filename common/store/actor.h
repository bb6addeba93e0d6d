/* SPDX-License-Identifier: Apache-2.0 */
/* The author of a change, and from where: what the record of changes says of each change. */
#ifndef TL_ACTOR_H
#define TL_ACTOR_H

#include <stdint.h>

#include "common/store/args.h"

#define TL_ACTOR_NAME_MAX 64
#define TL_ACTOR_FROM_MAX 63

struct tl_actor {
    char name[TL_ACTOR_NAME_MAX + 1]; /* an operator's name, a token's, or a program's */
    char from[TL_ACTOR_FROM_MAX + 1]; /* `cli`, a client's address, or a program's host */
    uint64_t kept; /* about how many changes the record keeps: retention.changes_entries */
};

/* A program that changes something by itself, as it creates a queue of its file: its name (without
 * `tellerline-`), on this host. */
void tl_actor_of_program(struct tl_actor *actor, const char *program, uint64_t kept);
/* The user who runs a command: $SUDO_USER, else the name of the user of this process; from `cli`.
 */
void tl_actor_of_user(struct tl_actor *actor, uint64_t kept);

/* Appends who, from and kept: always the last three arguments of a function that records its
 * changes (common/store/line/changes.lua). */
void tl_actor_append(const struct tl_actor *actor, struct tl_args *args);

#endif
