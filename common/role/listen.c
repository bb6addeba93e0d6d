/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/role/listen.h"

#define BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */

static bool set_option(int fd, int option)
{
    int on = 1;
    return setsockopt(fd, SOL_SOCKET, option, &on, sizeof(on)) == 0;
}

/* What the kernel keeps of a connection, each way, before it waits; it doubles the figure. A page
 * fits. Left to itself it keeps up to 4 MB for a client who does not read. Connections have it from
 * their listening socket. */
static bool bound_buffers(int fd)
{
    int size = 64 * 1024;
    return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) == 0;
}

static int try_address(const struct addrinfo *address, bool reuse_port)
{
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    address->ai_protocol);
    if (fd < 0)
        return -1;
    if (set_option(fd, SO_REUSEADDR) && (!reuse_port || set_option(fd, SO_REUSEPORT)) &&
        bound_buffers(fd) && bind(fd, address->ai_addr, address->ai_addrlen) == 0 &&
        listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static int port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t length = sizeof(address);
    if (getsockname(fd, &address.any, &length) != 0)
        return -1;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

int tl_listen_open(const struct tl_listen *listen, bool reuse_port, int *port, struct tl_error *err)
{
    char service[8];
    snprintf(service, sizeof(service), "%u", (unsigned)listen->port & 0xffffu);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *addresses = NULL;
    int problem = getaddrinfo(listen->host, service, &hints, &addresses);
    if (problem != 0) {
        tl_error_set(err, TL_ERR_SYSTEM, "cannot listen on %s:%s: %s", listen->host, service,
                     gai_strerror(problem));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *at = addresses; at != NULL && fd < 0; at = at->ai_next)
        fd = try_address(at, reuse_port);
    int saved = errno;
    freeaddrinfo(addresses);
    if (fd < 0) {
        tl_error_set(err, TL_ERR_SYSTEM, "cannot listen on %s:%s: %s%s", listen->host, service,
                     strerror(saved),
                     saved == EADDRINUSE ? "; another program has the port, choose another one"
                                         : "");
        return -1;
    }
    *port = port_of(fd);
    return fd;
}

bool tl_listen_share(const struct tl_listen *listen, int fds[], unsigned n, int *port,
                     struct tl_error *err)
{
    struct tl_listen address = *listen;
    for (unsigned i = 0; i < n; i++)
        fds[i] = -1;
    /* SO_REUSEPORT would silently share the port with any other program of this user that sets it.
     * So the port is opened once without it: that fails when the port is in use. */
    int probe = tl_listen_open(&address, false, &address.port, err);
    if (probe < 0)
        return false;
    close(probe);
    for (unsigned i = 0; i < n; i++) {
        fds[i] = tl_listen_open(&address, true, &address.port, err);
        if (fds[i] < 0)
            return false;
    }
    *port = address.port;
    return true;
}

/* ---- passing sockets to another program ---- */

enum { FIRST_PASSED = 3 };

bool tl_listen_pass(const int fds[], unsigned n)
{
    int copies[TL_LISTEN_MAX];
    char pid[24];
    char number[24];
    /* First away from the places where they go: one may stand where another goes. */
    for (unsigned i = 0; i < n && i < TL_LISTEN_MAX; i++) {
        copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_PASSED + (int)n);
        if (copies[i] < 0)
            return false;
    }
    for (unsigned i = 0; i < n && i < TL_LISTEN_MAX; i++) {
        if (dup2(copies[i], FIRST_PASSED + (int)i) < 0)
            return false;
    }
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    snprintf(number, sizeof(number), "%u", n);
    return setenv("LISTEN_PID", pid, 1) == 0 && setenv("LISTEN_FDS", number, 1) == 0;
}

static bool take_one(int fd, struct tl_error *err)
{
    int listens = 0;
    socklen_t length = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "LISTEN_FDS: descriptor %d is no listening socket",
                            fd);
    int flags = fcntl(fd, F_GETFL);
    if (!bound_buffers(fd) || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "LISTEN_FDS: %s", strerror(errno));
    return true;
}

bool tl_listen_take(int fds[], unsigned most, unsigned *n, struct tl_error *err)
{
    const char *pid = getenv("LISTEN_PID");
    const char *number = getenv("LISTEN_FDS");
    *n = 0;
    if (pid == NULL || number == NULL || strtol(pid, NULL, 10) != (long)getpid())
        return true;
    unsigned long passed = strtoul(number, NULL, 10);
    if (passed < 1 || passed > most)
        return tl_error_set(err, TL_ERR_INVALID,
                            "LISTEN_FDS is \"%.20s\": a worker takes one socket for each of its "
                            "%u processes at most, or connections to the rest would wait for ever",
                            number, most);
    for (; *n < passed; (*n)++) {
        fds[*n] = FIRST_PASSED + (int)*n;
        if (!take_one(fds[*n], err))
            return false;
    }
    return unsetenv("LISTEN_PID") == 0 && unsetenv("LISTEN_FDS") == 0;
}
