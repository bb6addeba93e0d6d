/* SPDX-License-Identifier: Apache-2.0 */
/* Where a test listens. */
#ifndef TL_TEST_LISTENING_H
#define TL_TEST_LISTENING_H

#include <netinet/in.h>
#include <sys/socket.h>

/* The port of the only TCP socket of this process that listens; -1: none does. */
static inline int listening_port(void)
{
    for (int fd = 0; fd < 1024; fd++) {
        union {
            struct sockaddr any;
            struct sockaddr_in6 v6;
            struct sockaddr_in v4;
        } address = {.any = {0}};
        int listens = 0;
        socklen_t size = sizeof(listens), length = sizeof(address);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
            getsockname(fd, &address.any, &length) == 0 &&
            (address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6))
            return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
                                                          : address.v6.sin6_port);
    }
    return -1;
}

#endif
