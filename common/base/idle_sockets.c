/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/base/idle_sockets.h"

void tl_idle_sockets_add(struct tl_idle_sockets *sockets, struct tl_idle_socket *socket,
                         bool answers, int64_t now_ms)
{
    tl_idle_sockets_remove(sockets, socket);
    if (socket->shut)
        return;
    socket->since_ms = now_ms;
    socket->answers = answers;
    socket->listed = true;
    socket->prev = sockets->last;
    socket->next = NULL;
    if (sockets->last != NULL)
        sockets->last->next = socket;
    else
        sockets->first = socket;
    sockets->last = socket;
    sockets->n++;
}

void tl_idle_sockets_remove(struct tl_idle_sockets *sockets, struct tl_idle_socket *socket)
{
    if (!socket->listed)
        return;
    socket->listed = false;
    if (socket->prev != NULL)
        socket->prev->next = socket->next;
    else
        sockets->first = socket->next;
    if (socket->next != NULL)
        socket->next->prev = socket->prev;
    else
        sockets->last = socket->prev;
    sockets->n--;
}

void tl_idle_sockets_close(struct tl_idle_sockets *sockets, struct tl_idle_socket *socket)
{
    tl_idle_sockets_remove(sockets, socket);
    sockets->shut -= socket->shut;
    socket->shut = false;
}

bool tl_idle_sockets_shut_oldest(struct tl_idle_sockets *sockets)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct tl_idle_socket *oldest = sockets->first;
    int untaken = 0;
    if (oldest == NULL)
        return false;
    tl_idle_sockets_remove(sockets, oldest);
    oldest->shut = true;
    sockets->shut++;
    if (ioctl(oldest->fd, SIOCOUTQ, &untaken) == 0 && untaken > 0)
        (void)setsockopt(oldest->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    (void)shutdown(oldest->fd, SHUT_RDWR); /* it fails when the other side was faster */
    return true;
}

/* Has the client taken enough since this was looked at? What it acknowledged counts, not what the
 * kernel holds for it. */
static bool takes(struct tl_idle_socket *socket, int64_t now_ms)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof(info);
    if (!socket->answers || getsockopt(socket->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        length < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof(info.tcpi_bytes_acked))
        return false;
    uint64_t before = socket->taken;
    socket->taken = info.tcpi_bytes_acked;
    return socket->taken - before >= (uint64_t)(now_ms - socket->since_ms);
}

size_t tl_idle_sockets_expire(struct tl_idle_sockets *sockets, int64_t now_ms, int64_t limit_ms)
{
    size_t n = 0;
    struct tl_idle_socket *oldest;
    while ((oldest = sockets->first) != NULL && now_ms - oldest->since_ms > limit_ms) {
        if (takes(oldest, now_ms))
            tl_idle_sockets_add(sockets, oldest, true, now_ms);
        else
            n += tl_idle_sockets_shut_oldest(sockets);
    }
    return n;
}
