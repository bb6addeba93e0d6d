/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the state of this program to the service manager with the datagrams of sd_notify(3),
 * without its library: what changes, and the pings of the watchdog, which show a stuck loop.
 */
#ifndef TL_NOTIFY_H
#define TL_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

struct tl_notify;

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. *notify is NULL without a service manager;
 * all functions here accept that. now_ms: local monotonic time. Fails when the address of the
 * socket is not valid. */
bool tl_notify_open(struct tl_notify **notify, int64_t now_ms, struct tl_error *err);
void tl_notify_free(struct tl_notify **notify);

/* One turn of the loop. `reason` is "ready", or why not; it becomes the status line of the unit.
 * READY=1 is sent once: as soon as ready is true, or after TL_NOTIFY_PATIENCE_MS without it. The
 * program then runs although it cannot serve yet, so that a boot or an installation that waits for
 * its start does not hang. */
void tl_notify_turn(struct tl_notify *notify, bool ready, const char *reason, int64_t now_ms);
/* The drain begins. */
void tl_notify_stopping(struct tl_notify *notify);

enum { TL_NOTIFY_PATIENCE_MS = 10000 };

#endif
