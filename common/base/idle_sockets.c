#include <sys/socket.h>

#include "common/base/idle_sockets.h"

void tl_idle_sockets_add(struct tl_idle_sockets *sockets, struct tl_idle_socket *socket,
                         int64_t now_ms)
{
    socket->since_ms = now_ms;
    socket->listed = true;
    socket->prev = sockets->last;
    socket->next = NULL;
    if (sockets->last != NULL)
        sockets->last->next = socket;
    else
        sockets->first = socket;
    sockets->last = socket;
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
}

bool tl_idle_sockets_shut_oldest(struct tl_idle_sockets *sockets)
{
    struct tl_idle_socket *oldest = sockets->first;
    if (oldest == NULL)
        return false;
    tl_idle_sockets_remove(sockets, oldest);
    (void)shutdown(oldest->fd, SHUT_RDWR); /* it fails when the other side was faster */
    return true;
}

size_t tl_idle_sockets_expire(struct tl_idle_sockets *sockets, int64_t now_ms, int64_t limit_ms)
{
    size_t n = 0;
    while (sockets->first != NULL && now_ms - sockets->first->since_ms > limit_ms)
        n += tl_idle_sockets_shut_oldest(sockets);
    return n;
}
