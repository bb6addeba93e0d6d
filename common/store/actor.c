/* SPDX-License-Identifier: Apache-2.0 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/store/actor.h"

/* Copies at most size - 1 bytes; what is no printable ASCII becomes '?'. */
static void copy_printable(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
    for (; *to != '\0'; to++)
        if (*to <= ' ' || *to > '~')
            *to = '?';
}

static void set(struct tl_actor *actor, const char *name, const char *from, uint64_t kept)
{
    actor->kept = kept;
    copy_printable(actor->name, sizeof(actor->name), name);
    copy_printable(actor->from, sizeof(actor->from), from);
}

void tl_actor_of_program(struct tl_actor *actor, const char *program, uint64_t kept)
{
    char host[TL_ACTOR_FROM_MAX + 1] = "";
    if (gethostname(host, sizeof(host)) != 0 && host[0] == '\0')
        snprintf(host, sizeof(host), "unknown");
    host[sizeof(host) - 1] = '\0'; /* of a longer name */
    set(actor, program, host, kept);
}

void tl_actor_of_user(struct tl_actor *actor, uint64_t kept)
{
    char number[32], buffer[4096];
    struct passwd entry, *found = NULL;
    const char *sudo = getenv("SUDO_USER");
    snprintf(number, sizeof(number), "uid-%lu", (unsigned long)getuid());
    if (sudo != NULL && *sudo != '\0')
        set(actor, sudo, "cli", kept);
    else if (getpwuid_r(getuid(), &entry, buffer, sizeof(buffer), &found) == 0 && found != NULL)
        set(actor, entry.pw_name, "cli", kept);
    else
        set(actor, number, "cli", kept);
}

void tl_actor_append(const struct tl_actor *actor, struct tl_args *args)
{
    tl_args_str(args, actor->name);
    tl_args_str(args, actor->from);
    tl_args_uint(args, actor->kept);
}
