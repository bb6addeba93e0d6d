/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that looks again and again at what others use, and the lock around what it tells them.
 */
#ifndef TL_WATCHER_H
#define TL_WATCHER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tl_watcher {
    pthread_mutex_t lock;
    pthread_cond_t waken;
    pthread_t thread;
    bool started;
    bool stop;  /* under the lock */
    bool woken; /* likewise */
};

void tl_watcher_init(struct tl_watcher *watcher);
/* Starts the thread. Returns 0, or why it cannot be started (errno). */
int tl_watcher_start(struct tl_watcher *watcher, void *(*run)(void *context), void *context);
void tl_watcher_lock(struct tl_watcher *watcher);
void tl_watcher_unlock(struct tl_watcher *watcher);
/* Both under the lock, which the thread gives back while it sleeps. Sleeps for this time, or until
 * it is woken: *woken. False: the thread has to end. */
bool tl_watcher_sleep(struct tl_watcher *watcher, int64_t ms, bool *woken);
void tl_watcher_wake(struct tl_watcher *watcher);
/* Ends the thread, when its current look is over, and frees what belongs to it. */
void tl_watcher_end(struct tl_watcher *watcher);

#endif
