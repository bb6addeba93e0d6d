/*
 * Tells the service manager how this program does: the datagrams of sd_notify(3), without its
 * library. The loop says at every turn whether it can serve; what is news is sent, and the watchdog
 * is fed as often as the manager asked for it, so that a loop that stands still is noticed.
 *
 * Without NOTIFY_SOCKET in the environment all of this does nothing.
 */
#ifndef TL_NOTIFY_H
#define TL_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

struct tl_notify;

/* Reads NOTIFY_SOCKET, and WATCHDOG_USEC with WATCHDOG_PID, from the environment. *notify is NULL
 * when there is nobody to tell, which all functions here accept. now_ms: local monotonic time.
 * Fails when the socket's address is none we can send to. */
bool tl_notify_open(struct tl_notify **notify, int64_t now_ms, struct tl_error *err);
/* Clears the caller's pointer; NULL allowed. */
void tl_notify_free(struct tl_notify **notify);

/* One turn of the loop. `reason` is "ready", or why not; it becomes the unit's status line. READY=1
 * is sent once: as soon as ready is true, or when it has not been for TL_NOTIFY_PATIENCE_MS. The
 * program then runs and waits for what it lacks, and nothing that waits for its start (a boot, an
 * installation) hangs with it. */
void tl_notify_turn(struct tl_notify *notify, bool ready, const char *reason, int64_t now_ms);
/* The drain begins. */
void tl_notify_stopping(struct tl_notify *notify);

enum { TL_NOTIFY_PATIENCE_MS = 10000 };

#endif
