/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures the log. Standard error is a datagram socket during a capture: one recv(2) gets what one
 * write(2) sent, which shows that every line is written in one piece.
 */
#ifndef TL_TEST_LOG_CAPTURE_H
#define TL_TEST_LOG_CAPTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/log.h"

static int real_stderr;
static int sockets[2];
static char line[16384];

static int setup(void **state)
{
    (void)state;
    real_stderr = dup(STDERR_FILENO);
    assert_true(real_stderr >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(sockets[0]);
    close(sockets[1]);
    close(real_stderr);
    return 0;
}

static void init(enum tl_log_level level, enum tl_log_format format, const char *role)
{
    const struct tl_log_settings settings = {.level = level, .format = format, .role = role};
    tl_log_init(&settings);
}

static void stderr_to(int fd)
{
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
}

/* The next line written, or NULL when there is none. */
static inline const char *next_line(void)
{
    ssize_t n = recv(sockets[0], line, sizeof(line) - 1, MSG_DONTWAIT);
    if (n < 0)
        return NULL;
    line[n] = '\0';
    assert_int_equal(strlen(line), n);
    return line;
}

/* Logs "%s" and returns the line. */
static inline const char *log_line(enum tl_log_level level, const struct tl_log_fields *fields,
                                   const char *message)
{
    stderr_to(sockets[1]);
    tl_log(level, fields, "%s", message);
    stderr_to(real_stderr);
    return next_line();
}

/* What follows the process id. */
static inline const char *tail(const char *text, const char *pid_key)
{
    char pid[32];
    snprintf(pid, sizeof(pid), "%s%ld", pid_key, (long)getpid());
    const char *found = strstr(text, pid);
    assert_non_null(found);
    return found + strlen(pid);
}

static void assert_logfmt(const char *message, const char *expected)
{
    const char *text = log_line(TL_LOG_INFO, NULL, message);
    assert_non_null(text);
    assert_string_equal(tail(text, " pid="), expected);
}

/* The one quoted value that ends a logfmt line closes where the line does, not before. */
static void assert_message_closes(const char *text)
{
    const char *at = strstr(text, " msg=\"");
    assert_non_null(at);
    for (at += 6; *at != '"'; at++) {
        if (*at == '\\')
            at++;
        assert_in_range((unsigned char)*at, ' ', 0xFE);
    }
    assert_string_equal(at, "\"\n");
}

#endif
