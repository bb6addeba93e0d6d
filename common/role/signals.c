/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/role/signals.h"

bool tl_signals_open(struct tl_signals *signals, struct tl_error *err)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    signals->fd = -1;
    int problem = pthread_sigmask(SIG_BLOCK, &set, &before);
    if (problem != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "cannot block signals: %s", strerror(problem));
    signals->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals->fd < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        tl_error_set(err, TL_ERR_SYSTEM, "cannot receive signals: %s", strerror(errno));
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (signals->fd >= 0)
            close(signals->fd);
        signals->fd = -1;
        return false;
    }
    return true;
}

void tl_signals_close(struct tl_signals *signals)
{
    if (signals->fd < 0)
        return;
    close(signals->fd);
    signals->fd = -1;
}

enum tl_signal tl_signals_next(const struct tl_signals *signals)
{
    struct signalfd_siginfo info;
    if (read(signals->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return TL_SIGNAL_NONE;
    return info.ssi_signo == SIGHUP    ? TL_SIGNAL_RELOAD
           : info.ssi_signo == SIGCHLD ? TL_SIGNAL_CHILD
                                       : TL_SIGNAL_STOP;
}

bool tl_signals_wait(const struct tl_signals *signals, int64_t timeout_ms)
{
    struct pollfd fd = {.fd = signals->fd, .events = POLLIN};
    int n = poll(&fd, 1, timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms);
    if (n < 0 && errno != EINTR)
        tl_warn("poll: %s", strerror(errno));
    return n > 0;
}
