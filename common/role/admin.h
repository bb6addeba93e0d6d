/*
 * The admin listener of a program: /livez, /readyz and /metrics. It has a thread of its own, so
 * that it answers while the program's loop is busy or waits for the store. Connections without a
 * request give way to new ones.
 */
#ifndef TL_ADMIN_H
#define TL_ADMIN_H

#include <stdbool.h>

#include "common/base/text.h"
#include "common/config/config.h"

struct tl_admin;

/* Called on the listener's thread: must only read atomics. */
struct tl_admin_source {
    void *context;
    /* Does the loop turn? False makes /livez answer 503, so that a service manager restarts the
     * program. */
    bool (*live)(void *context);
    /* Can the program do its work now? Writes a line for /readyz: "ready" and what is not served,
     * or the reason why it is not ready. */
    bool (*ready)(void *context, char reason[160]);
    /* Appends Prometheus text. */
    void (*metrics)(void *context, struct tl_text *out);
};

/* Starts listening and logs the address. With port -1 there is no listener: *admin is NULL and the
 * result true. */
bool tl_admin_start(struct tl_admin **admin, const struct tl_listen *listen,
                    const struct tl_admin_source *source, struct tl_error *err);
void tl_admin_stop(struct tl_admin **admin);
/* The port it listens on; -1 for NULL. */
int tl_admin_port(const struct tl_admin *admin);

#endif
