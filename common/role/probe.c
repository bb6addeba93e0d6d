#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/role/probe.h"

enum { STATUS_LINE_LEAST = 12 }; /* "HTTP/1.1 200" */

/* Makes the next blocking call on the socket end at the deadline. False when that has passed. */
static bool limit_wait(int fd, int64_t deadline_ms)
{
    int64_t left_ms = deadline_ms - tl_clock_ms();
    if (left_ms <= 0)
        return false;
    const struct timeval patience = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0;
}

static int connect_to(const char *host, int port, int64_t deadline_ms)
{
    char service[16];
    snprintf(service, sizeof(service), "%d", port);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, service, &hints, &found) != 0)
        return -1;
    int fd = -1;
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 &&
            (!limit_wait(fd, deadline_ms) || connect(fd, at->ai_addr, at->ai_addrlen) != 0)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

/* Sends the request and returns the status of the answer, -1 without one. */
static int ask(int fd, const char *path, int64_t deadline_ms)
{
    char request[256];
    char answer[64];
    int length = snprintf(request, sizeof(request),
                          "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    if (length < 0 || (size_t)length >= sizeof(request) ||
        send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        return -1;
    size_t read = 0;
    while (read < STATUS_LINE_LEAST) {
        ssize_t n = limit_wait(fd, deadline_ms)
                        ? recv(fd, answer + read, sizeof(answer) - 1 - read, 0)
                        : -1;
        if (n <= 0)
            return -1;
        read += (size_t)n;
    }
    answer[read] = '\0';
    if (strncmp(answer, "HTTP/1.", 7) != 0 || answer[8] != ' ')
        return -1;
    int status = (int)strtol(answer + 9, NULL, 10);
    return status >= 100 && status <= 599 ? status : -1;
}

int tl_http_probe(const char *host, int port, const char *path, int64_t timeout_ms)
{
    int64_t deadline_ms = tl_clock_ms() + timeout_ms;
    bool is_any6 = strcmp(host, "::") == 0;
    if (strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    int fd = connect_to(is_any6 ? "::1" : host, port, deadline_ms);
    if (fd < 0 && is_any6) /* :: accepts IPv4 too, and a container without IPv6 has no ::1. */
        fd = connect_to("127.0.0.1", port, deadline_ms);
    if (fd < 0)
        return -1;
    int status = ask(fd, path, deadline_ms);
    close(fd);
    return status;
}
