/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin listener of a program: /livez, /readyz and /metrics, and more where the program has
 * struct tl_admin_calls. It has a thread of its own, so that it answers while the program's loop is
 * busy; with calls, each connection has one, so that it answers while a call waits. Connections
 * without a request give way to new ones.
 */
#ifndef TL_ADMIN_H
#define TL_ADMIN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/text.h"
#include "common/config/config.h"

struct MHD_Connection;
struct tl_admin;

/* Called on the listener's thread; with calls, on several at once. */
struct tl_admin_source {
    void *context;
    /* Does the loop turn? Else /livez answers 503, and a service manager restarts the program. */
    bool (*live)(void *context);
    /* Can the program do its work now? Writes a line for /readyz: "ready" and what is not served,
     * or why it is not. */
    bool (*ready)(void *context, char reason[160]);
    /* Appends Prometheus text. */
    void (*metrics)(void *context, struct tl_text *out);
};

/* All other requests. Called on the thread of the connection, as libmicrohttpd calls its handlers:
 * they may wait. `end` may come from another one, after all others. */
struct tl_admin_calls {
    void *context;
    unsigned places; /* connections that may be busy with these requests at once */
    /* A request begins. target: path and query as they were sent. Returns what belongs to the
     * request; NULL when out of memory. */
    void *(*begin)(void *context, const char *target);
    /* Once or several times for each request: MHD_AccessHandlerCallback. False closes the
     * connection. */
    bool (*handle)(void *context, struct tl_admin *admin, void *request,
                   struct MHD_Connection *connection, const char *method, const char *version,
                   const char *upload, size_t *upload_size);
    /* Once for each that began: it is answered, or its connection is closed. */
    void (*end)(void *context, void *request);
};

/* Starts listening and logs the address. calls: NULL for none; copied. With port -1 there is no
 * listener: *admin is NULL and the result true. */
bool tl_admin_start(struct tl_admin **admin, const struct tl_listen *listen,
                    const struct tl_admin_source *source, const struct tl_admin_calls *calls,
                    struct tl_error *err);
/* From `handle`: a connection that is busy with a request does not give way to others and has no
 * time limit here. */
void tl_admin_busy(struct tl_admin *admin, struct MHD_Connection *connection, bool busy);
/* Waits for what is in work, and closes all connections. */
void tl_admin_stop(struct tl_admin **admin);

#endif
