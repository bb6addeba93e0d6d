/*
 * The sockets of a server on which no complete request has come yet, oldest first: those that are
 * closed when they take too long, or when there is no room for others. Not thread-safe.
 */
#ifndef TL_IDLE_SOCKETS_H
#define TL_IDLE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One socket; part of its owner's struct. All zero before it is first in a list. */
struct tl_idle_socket {
    struct tl_idle_socket *prev, *next;
    int fd; /* the owner's */
    bool listed;
    int64_t since_ms;
};

/* All zero: empty. */
struct tl_idle_sockets {
    struct tl_idle_socket *first, *last;
};

/* Puts the socket at the end: it is idle since now_ms (local monotonic time). */
void tl_idle_sockets_add(struct tl_idle_sockets *sockets, struct tl_idle_socket *socket,
                         int64_t now_ms);
/* Takes it out, if it is in. */
void tl_idle_sockets_remove(struct tl_idle_sockets *sockets, struct tl_idle_socket *socket);
/* Takes the oldest out and shuts it down: its owner notices and closes it. False when there is
 * none. */
bool tl_idle_sockets_shut_oldest(struct tl_idle_sockets *sockets);
/* Does the same with all that are idle for longer than limit_ms. Returns how many. */
size_t tl_idle_sockets_expire(struct tl_idle_sockets *sockets, int64_t now_ms, int64_t limit_ms);

#endif
