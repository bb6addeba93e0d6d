/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of a server that wait for their client, longest first: it has to send a request, or
 * to take an answer. They are closed when that takes too long, or when there is no room for others.
 * Not thread-safe.
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
    bool shut;    /* its owner has not closed it yet */
    bool answers; /* waits for its answer to be taken */
    int64_t since_ms;
    uint64_t taken; /* bytes, when that was looked at */
};

/* All zero: empty. */
struct tl_idle_sockets {
    struct tl_idle_socket *first, *last;
    size_t n;
    size_t shut; /* were shut down, and not closed by their owners yet */
};

/* Puts the socket at the end: it waits since now_ms (local monotonic time), for a request or, with
 * `answers`, for its client to take an answer. One that was shut down waits for nobody. */
void tl_idle_sockets_add(struct tl_idle_sockets *sockets, struct tl_idle_socket *socket,
                         bool answers, int64_t now_ms);
/* Takes it out, if it is in. */
void tl_idle_sockets_remove(struct tl_idle_sockets *sockets, struct tl_idle_socket *socket);
/* Its owner closes it: takes it out. */
void tl_idle_sockets_close(struct tl_idle_sockets *sockets, struct tl_idle_socket *socket);
/* Takes the oldest out and shuts it down: its owner notices and closes it. What its client has not
 * taken is dropped, so that the kernel does not keep it. False when there is none. */
bool tl_idle_sockets_shut_oldest(struct tl_idle_sockets *sockets);
/* Does the same with all that wait for longer than limit_ms, but for those whose clients take an
 * answer, if slowly: a byte a millisecond. Returns how many. */
size_t tl_idle_sockets_expire(struct tl_idle_sockets *sockets, int64_t now_ms, int64_t limit_ms);

#endif
