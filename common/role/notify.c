/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/units.h"
#include "common/role/notify.h"

enum {
    STATUS_MAX = 160,
    MESSAGE_MAX = STATUS_MAX + 64,
    PINGS_PER_INTERVAL = 4, /* systemd asks for two at least */
    LOG_EVERY_MS = 60000,
};

struct tl_notify {
    int fd;
    struct sockaddr_un address;
    socklen_t address_length;
    int64_t opened_ms;
    int64_t ping_every_ms; /* 0: no watchdog */
    int64_t pinged_ms;
    bool ready_sent;
    char status[STATUS_MAX]; /* the last one that was sent */
    struct tl_log_limit limit;
};

/* A path, or a name in the abstract namespace behind '@'. */
static bool set_address(struct tl_notify *notify, const char *text, struct tl_error *err)
{
    size_t length = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || length < 2 ||
        length >= sizeof(notify->address.sun_path))
        return tl_error_set(err, TL_ERR_INVALID,
                            "NOTIFY_SOCKET: expected the path of a unix socket, or @name");
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, text, length);
    if (text[0] == '@')
        notify->address.sun_path[0] = '\0';
    /* No NUL at the end: in an abstract name it would be part of the name. */
    notify->address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    return true;
}

/* The ping interval in ms; 0 when this process is not watched. */
static int64_t watchdog_interval(void)
{
    const char *usec_text = getenv("WATCHDOG_USEC");
    const char *pid_text = getenv("WATCHDOG_PID");
    struct tl_error ignored = {0};
    uint64_t usec, pid;
    if (usec_text == NULL || !tl_number_parse(usec_text, &usec, &ignored) || usec > INT64_MAX)
        return 0;
    if (pid_text != NULL &&
        (!tl_number_parse(pid_text, &pid, &ignored) || pid != (uint64_t)getpid()))
        return 0;
    return (int64_t)usec / 1000 / PINGS_PER_INTERVAL;
}

bool tl_notify_open(struct tl_notify **notify_out, int64_t now_ms, struct tl_error *err)
{
    const char *socket_text = getenv("NOTIFY_SOCKET");
    *notify_out = NULL;
    if (socket_text == NULL || socket_text[0] == '\0')
        return true;
    struct tl_notify *notify = calloc(1, sizeof(*notify));
    if (notify == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory to notify the service manager");
    notify->opened_ms = notify->pinged_ms = now_ms;
    notify->ping_every_ms = watchdog_interval();
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok = notify->fd >= 0
                  ? set_address(notify, socket_text, err)
                  : tl_error_set(err, TL_ERR_SYSTEM, "no socket to the service manager: %s",
                                 strerror(errno));
    *notify_out = notify;
    if (!ok)
        tl_notify_free(notify_out);
    return ok;
}

void tl_notify_free(struct tl_notify **notify)
{
    if (*notify == NULL)
        return;
    if ((*notify)->fd >= 0)
        close((*notify)->fd);
    free(*notify);
    *notify = NULL;
}

/* Never waits: a manager that does not read must not block the loop. */
static bool send_message(const struct tl_notify *notify, const char *message)
{
    return sendto(notify->fd, message, strlen(message), MSG_NOSIGNAL,
                  (const struct sockaddr *)&notify->address, notify->address_length) >= 0;
}

void tl_notify_turn(struct tl_notify *notify, bool ready, const char *reason, int64_t now_ms)
{
    if (notify == NULL)
        return;
    bool start =
        !notify->ready_sent && (ready || now_ms - notify->opened_ms >= TL_NOTIFY_PATIENCE_MS);
    bool ping = notify->ping_every_ms > 0 && now_ms - notify->pinged_ms >= notify->ping_every_ms;
    char status[STATUS_MAX];
    snprintf(status, sizeof(status), "%s", reason);
    /* Each line is a variable, so the status must be a single line. */
    status[strcspn(status, "\r\n")] = '\0';
    bool changed = strcmp(status, notify->status) != 0;
    if (!start && !ping && !changed)
        return;
    char message[MESSAGE_MAX];
    snprintf(message, sizeof(message), "%s%sSTATUS=%s\n", start ? "READY=1\n" : "",
             ping ? "WATCHDOG=1\n" : "", status);
    if (!send_message(notify, message)) {
        int problem = errno;
        unsigned suppressed;
        if (tl_log_allow(&notify->limit, now_ms, LOG_EVERY_MS, &suppressed))
            tl_warn("cannot notify the service manager: %s", strerror(problem));
        return; /* sent again at the next turn */
    }
    notify->ready_sent = notify->ready_sent || start;
    if (ping)
        notify->pinged_ms = now_ms;
    snprintf(notify->status, sizeof(notify->status), "%s", status);
}

void tl_notify_stopping(struct tl_notify *notify)
{
    if (notify != NULL && !send_message(notify, "STOPPING=1\nSTATUS=stopping\n"))
        tl_warn("cannot notify the service manager: %s", strerror(errno));
}
