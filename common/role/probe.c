/* SPDX-License-Identifier: Apache-2.0 */
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

/* Sends the request and reads the answer: at least `least` bytes, or to its end if it is shorter,
 * at most size - 1. Returns how many, -1 without an answer. */
static ssize_t ask(int fd, const char *path, int64_t deadline_ms, char *answer, size_t least,
                   size_t size)
{
    char request[256];
    int length = snprintf(request, sizeof(request),
                          "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    if (length < 0 || (size_t)length >= sizeof(request) ||
        send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        return -1;
    size_t read = 0;
    ssize_t n = 1;
    while (read < least && n > 0) {
        n = limit_wait(fd, deadline_ms) ? recv(fd, answer + read, size - 1 - read, 0) : -1;
        if (n > 0)
            read += (size_t)n;
    }
    answer[read] = '\0';
    return n < 0 ? -1 : (ssize_t)read;
}

/* The status in the first line of an answer; -1 when there is none. */
static int status_of(const char *answer)
{
    if (strncmp(answer, "HTTP/1.", 7) != 0 || strlen(answer) < STATUS_LINE_LEAST ||
        answer[8] != ' ')
        return -1;
    int status = (int)strtol(answer + 9, NULL, 10);
    return status >= 100 && status <= 599 ? status : -1;
}

/* Connects to where a program listens; -1 without an answer. */
static int connect_to_listener(const char *host, int port, int64_t deadline_ms)
{
    bool is_any6 = strcmp(host, "::") == 0;
    if (strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    int fd = connect_to(is_any6 ? "::1" : host, port, deadline_ms);
    if (fd < 0 && is_any6) /* :: accepts IPv4 too, and a container without IPv6 has no ::1. */
        fd = connect_to("127.0.0.1", port, deadline_ms);
    return fd;
}

int tl_http_get(const char *host, int port, const char *path, int64_t timeout_ms, char *body,
                size_t size)
{
    char answer[16384];
    int64_t deadline_ms = tl_clock_ms() + timeout_ms;
    int fd = connect_to_listener(host, port, deadline_ms);
    if (fd < 0)
        return -1;
    size_t least = body != NULL ? sizeof(answer) - 1 : STATUS_LINE_LEAST;
    ssize_t n = ask(fd, path, deadline_ms, answer, least, sizeof(answer));
    close(fd);
    const char *start = n > 0 ? strstr(answer, "\r\n\r\n") : NULL;
    if (n < 0 || (body != NULL && (start == NULL || strlen(start + 4) >= size)))
        return -1;
    if (body != NULL)
        memcpy(body, start + 4, strlen(start + 4) + 1);
    return status_of(answer);
}
