/* SPDX-License-Identifier: Apache-2.0 */
/* What all handlers of a worker process work with: the process, and a request. */
#ifndef TL_API_CONTEXT_H
#define TL_API_CONTEXT_H

#include "common/auth/ticket.h"
#include "common/base/log.h"
#include "common/base/net.h"
#include "common/config/config.h"
#include "worker/http/clients.h"
#include "worker/http/limiter.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"
#include "worker/http/router.h"
#include "worker/page/brand.h"
#include "worker/page/event_look.h"
#include "worker/queue/env.h"
#include "worker/queue/queues.h"
#include "worker/queue/subscribers.h"
#include "worker/queue/tickets.h"
#include "worker/verify/verifier.h"
#include "worker/visit/recent.h"
#include "worker/visit/secrets.h"
#include "worker/visit/wait.h"

struct tl_worker {
    const struct tl_config *config;
    struct tl_queue_env *env;
    struct tl_secrets secrets;
    struct tl_kept_passes *kept_passes;
    const struct tl_languages *languages; /* of the pages; borrowed */
    const struct tl_brand *brand;         /* borrowed */
    struct tl_event_looks *events;        /* what the queues' pages are for; borrowed */
    struct tl_networks *proxies;          /* whose X-Forwarded-For is trusted */
    struct tl_bypass *bypass;             /* who gets in past the line */
    struct tl_limiter *limiter;           /* of all processes */
    struct tl_sharing *sharing;           /* likewise */
    struct tl_misuse *misuse;
    struct tl_visitor_ids visitor_ids; /* for newcomers */
    struct tl_log_limit untrusted_log; /* of joins refused behind a proxy that is not trusted */
    struct tl_clients *clients;        /* the event streams and long polls of each address */
    struct tl_effort effort;           /* that puzzles ask for */
    struct tl_holds *holds;
    struct tl_queues *queues;
    struct tl_subscribers *subscribers; /* the event streams and long polls */
    struct tl_pending_command *leaving; /* follows the join that is being settled; or NULL */
    struct tl_verifications *verifications;
    struct tl_draw_pages *draw_pages;
    struct tl_log_limit no_service_log; /* of queues with a challenge that no service is for */
    void *process;                      /* for the callback: see worker/api/worker.h */
    bool (*stream_fits)(void *process);
};

/* One request of a visitor. Written by worker/visit, and by the handlers of worker/api. */
struct tl_visit {
    struct tl_worker *worker;
    struct tl_request *request;
    tl_step *handler;               /* of its route */
    char name[TL_ROUTER_QUEUE_MAX]; /* of the queue, as the path says; "": none */
    struct tl_queue *queue;         /* NULL: not asked for yet, or its line is not loaded */
    struct tl_ticket ticket;        /* together with: */
    enum tl_worth worth;            /* as it was judged, and... */
    struct tl_line_view state;      /* ...the state of its place */
    struct tl_refusal refusal;      /* why it is refused */
    struct tl_wait wait;            /* for one thing at a time */
    int64_t now_ms;                 /* of this step: local monotonic time */
};

#endif
