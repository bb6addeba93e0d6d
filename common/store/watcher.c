/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/store/watcher.h"

void tl_watcher_init(struct tl_watcher *watcher)
{
    pthread_condattr_t monotonic;
    *watcher = (struct tl_watcher){0};
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&watcher->waken, &monotonic); /* none of them fails in glibc */
    (void)pthread_condattr_destroy(&monotonic);
    (void)pthread_mutex_init(&watcher->lock, NULL);
}

int tl_watcher_start(struct tl_watcher *watcher, void *(*run)(void *context), void *context)
{
    int problem = pthread_create(&watcher->thread, NULL, run, context);
    watcher->started = problem == 0;
    return problem;
}

void tl_watcher_lock(struct tl_watcher *watcher)
{
    pthread_mutex_lock(&watcher->lock);
}

void tl_watcher_unlock(struct tl_watcher *watcher)
{
    pthread_mutex_unlock(&watcher->lock);
}

bool tl_watcher_sleep(struct tl_watcher *watcher, int64_t ms, bool *woken)
{
    int64_t until_ms = tl_clock_ms() + ms;
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    while (!watcher->stop && !watcher->woken &&
           pthread_cond_timedwait(&watcher->waken, &watcher->lock, &until) != ETIMEDOUT)
        continue;
    *woken = watcher->woken;
    watcher->woken = false;
    return !watcher->stop;
}

void tl_watcher_wake(struct tl_watcher *watcher)
{
    watcher->woken = true;
    pthread_cond_signal(&watcher->waken);
}

void tl_watcher_end(struct tl_watcher *watcher)
{
    if (watcher->started) {
        tl_watcher_lock(watcher);
        watcher->stop = true;
        tl_watcher_wake(watcher);
        tl_watcher_unlock(watcher);
        pthread_join(watcher->thread, NULL);
    }
    pthread_cond_destroy(&watcher->waken);
    pthread_mutex_destroy(&watcher->lock);
}
