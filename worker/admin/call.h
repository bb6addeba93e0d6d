/* SPDX-License-Identifier: Apache-2.0 */
/* One admin request: finds out what is asked and who asks, and does it. */
#ifndef TL_ADMIN_CALL_H
#define TL_ADMIN_CALL_H

#include "common/control/control.h"
#include "worker/admin/access.h"
#include "worker/admin/previews.h"
#include "worker/admin/reports.h"
#include "worker/admin/streams.h"

/* What all calls share; borrowed. */
struct tl_admin_call_env {
    const struct tl_config *config;
    struct tl_admin_access *access;
    struct tl_admin_streams *streams;
    struct tl_admin_previews *previews;
    struct tl_admin_reports *reports;
};

struct tl_admin_server;

struct tl_admin_call {
    struct tl_admin_server *server;
    struct MHD_Connection *connection; /* borrowed */
    bool begun;                        /* its head was looked at: what comes is the body */
    struct tl_admin_head head;
    char *text; /* of the target; owned */
    struct tl_target target;
    char *body; /* owned */
    size_t body_length, body_received;
    const struct tl_control_route *route;
    struct tl_admin_bearer bearer;
    struct tl_control_answer answer; /* status 0: not answered yet */
    char cookie[TL_ADMIN_SESSION_TEXT_MAX + 1];
    enum { TL_COOKIE_KEEP, TL_COOKIE_SET, TL_COOKIE_REMOVE } cookie_change;
    struct tl_admin_page page;   /* answers instead, with text in it */
    struct MHD_Response *stream; /* answers instead; owned */
    const char *stream_type;
};

/* NULL when out of memory. */
struct tl_admin_call *tl_admin_call_new(const char *target);
void tl_admin_call_free(struct tl_admin_call **call);

/* With the head filled in, before anything else: is there such a call? Else answers. */
bool tl_admin_call_find(struct tl_admin_call *call);
/* Has the call a body, to be received when the caller is known? */
bool tl_admin_call_takes_body(const struct tl_admin_call *call);
/* Appends to the body. False: the connection should be closed, far too much was sent. */
bool tl_admin_call_receive(struct tl_admin_call *call, const char *bytes, size_t length);

/* May the caller do this? Else answers. */
bool tl_admin_call_authorise(struct tl_admin_call *call, const struct tl_admin_call_env *env,
                             struct tl_control *control);
/* Does it, and answers or opens the stream. */
void tl_admin_call_perform(struct tl_admin_call *call, const struct tl_admin_call_env *env,
                           struct tl_control *control);

#endif
