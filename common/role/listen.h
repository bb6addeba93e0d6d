/* Listening TCP sockets. */
#ifndef TL_LISTEN_H
#define TL_LISTEN_H

#include <stdbool.h>

#include "common/config/config.h"

/* Opens a listening socket (IPv4 or IPv6, non-blocking, close-on-exec, SO_REUSEADDR, SO_REUSEPORT
 * when asked); port 0 takes a free one. Returns the descriptor, which the caller closes, or -1;
 * *port gets the port. */
int tl_listen_open(const struct tl_listen *listen, bool reuse_port, int *port,
                   struct tl_error *err);

#endif
