#include <errno.h>
#include <netdb.h>
#include <stdio.h>
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

static int try_address(const struct addrinfo *address, bool reuse_port)
{
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    address->ai_protocol);
    if (fd < 0)
        return -1;
    if (set_option(fd, SO_REUSEADDR) && (!reuse_port || set_option(fd, SO_REUSEPORT)) &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static int port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    char port[8];
    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0 ||
        getnameinfo((struct sockaddr *)&address, length, NULL, 0, port, sizeof(port),
                    NI_NUMERICSERV) != 0)
        return -1;
    int number = 0;
    for (const char *digit = port; *digit != '\0'; digit++)
        number = number * 10 + (*digit - '0');
    return number;
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
