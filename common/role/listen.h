/* SPDX-License-Identifier: Apache-2.0 */
/* Listening TCP sockets. */
#ifndef TL_LISTEN_H
#define TL_LISTEN_H

#define TL_LISTEN_MAX 256 /* sockets that are passed at once */

#include <stdbool.h>

#include "common/config/config.h"

/* Opens a listening socket (non-blocking, close-on-exec, SO_REUSEADDR, SO_REUSEPORT when asked);
 * port 0 takes a free one. Returns the descriptor, which the caller closes, or -1; *port gets the
 * port. */
int tl_listen_open(const struct tl_listen *listen, bool reuse_port, int *port,
                   struct tl_error *err);

/* Opens n such sockets on one port, which they share (SO_REUSEPORT). Fails when another program has
 * the port, even one that would share it. *port gets the port. The caller closes all fds that are
 * not -1, also on failure. */
bool tl_listen_share(const struct tl_listen *listen, int fds[], unsigned n, int *port,
                     struct tl_error *err);

/* Passes listening sockets to a program, as in socket activation of systemd, which names them in
 * LISTEN_FDS and LISTEN_PID. One that the parent keeps as well stays open while the program is
 * started again: connections wait instead of being refused. In the new process, just before exec.
 * False with errno. */
bool tl_listen_pass(const int fds[], unsigned n);
/* Takes over the sockets that this program was started with; *n gets their number, 0 for none.
 * False when there are more than `most`, or when one is no listening socket. */
bool tl_listen_take(int fds[], unsigned most, unsigned *n, struct tl_error *err);

#endif
