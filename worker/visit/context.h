/* SPDX-License-Identifier: Apache-2.0 */
/* What all steps of a worker process work on: the visit of a request, what it waits for, and the
 * worker itself. */
#ifndef TL_CONTEXT_H
#define TL_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/auth/ticket.h"
#include "common/base/log.h"
#include "common/base/net.h"
#include "common/config/config.h"
#include "worker/feed/outbox.h"
#include "worker/http/clients.h"
#include "worker/http/limiter.h"
#include "worker/http/refusal.h"
#include "worker/http/router.h"
#include "worker/page/look.h"
#include "worker/queue/queue.h"
#include "worker/queue/queues.h"
#include "worker/verify/verifier.h"
#include "worker/visit/recent.h"
#include "worker/visit/secrets.h"
#include "worker/visit/subscriber_table.h"

/* ---- visits ---- */

enum tl_wait_kind {
    TL_WAIT_COMMAND,
    TL_WAIT_LOOKUP,
    TL_WAIT_EVENT,
    TL_WAIT_PAGE,
    TL_WAIT_VERDICT,
    TL_WAIT_ARCHIVE,
    TL_WAIT_KINDS
};

struct tl_archive_job;
struct tl_fetch;

/* Part of its visit. What has come of it is the next step's to read. */
struct tl_wait {
    enum tl_wait_kind kind;
    tl_step *step;    /* what follows */
    int64_t since_us; /* local monotonic time */
    int64_t deadline_ms;
    struct tl_visit *prev, *next; /* in the list of its kind, the earliest deadline first */
    struct tl_visit *next_waiter; /* for the same command */
    /* Of the question to the store; or the event. */
    uint64_t number;
    /* A command, with result NULL: it has no outcome in time. */
    struct tl_pending_command *pending;
    const struct tl_pending_result *result;
    /* A lookup: is the place known now, or could the store not say? Does the store know it, and the
     * line not yet? How the place of a pending ticket has ended (enum tl_reason), or 0. */
    bool known, behind;
    unsigned ended;
    /* A page: the bytes of its draw ids; NULL: the store could not say. */
    const unsigned char *ids;
    size_t length;
    struct tl_fetch *fetch;                /* a verdict: the question to the service */
    const struct tl_archive_job *archived; /* the archive's answer; NULL: it did not come in time */
    /* What the wait is about: the tag of a page, the id of a token. */
    char about[80];
};

/* All visits of a worker that wait. */
struct tl_waits {
    struct tl_wait_list {
        struct tl_visit *first, *last;
        uint64_t count;
    } lists[TL_WAIT_KINDS];
    uint64_t last_number;
};

/* One request of a visitor: who it comes from, what place it is about, and what it waits for. Made
 * and freed with its request. */
struct tl_visit {
    struct tl_worker *worker;
    struct tl_request *request;
    tl_step *handler;               /* of its route */
    char name[TL_ROUTER_QUEUE_MAX]; /* of the queue, as the path says; "": none */
    /* The other end of the connection; or, where that is a trusted proxy, the last address in
     * X-Forwarded-For that is not one. */
    struct tl_address address;
    bool has_address;          /* else it is not known */
    struct tl_queue *queue;    /* NULL: not asked for yet, or its line is not loaded */
    struct tl_ticket ticket;   /* together with: */
    enum tl_worth worth;       /* as it was judged, and... */
    struct tl_line_view state; /* ...the state of its place */
    struct tl_refusal refusal; /* why it is refused */
    struct tl_wait wait;
    int64_t now_ms;               /* of this step: local monotonic time */
    bool gives_ticket;            /* the answer carries the ticket, as one to a join */
    bool joins;                   /* asks for a new place if that of its pending ticket has ended */
    enum tl_command_kind command; /* that its route stands for */
};

/* ---- the worker ---- */

struct tl_worker {
    /* The process gives: */
    const struct tl_config *config;
    struct tl_queue_env *env;
    const struct tl_brand *brand;  /* of the pages; borrowed */
    struct tl_event_looks *events; /* of the queues' pages; borrowed, replaced at a reload */
    struct tl_secrets secrets;     /* taken over */
    struct tl_limiter *limiter;    /* of all processes */
    struct tl_sharing *sharing;    /* likewise */
    struct tl_server *server;      /* NULL until it serves */
    uv_loop_t *loop;
    uint64_t connections_max; /* event streams and the server's connections together */
    /* The worker's own: */
    struct tl_recent *passes;    /* that were given */
    struct tl_networks *proxies; /* whose X-Forwarded-For is trusted */
    struct tl_networks *bypass;  /* who gets in past the line */
    struct tl_misuse *misuse;
    struct tl_visitor_ids visitor_ids; /* for newcomers */
    struct tl_log_limit bypass_log;    /* of who got in so */
    struct tl_log_limit untrusted_log; /* of joins refused behind a proxy that is not trusted */
    struct tl_clients *clients;        /* the event streams and long polls of each address */
    struct tl_effort effort;           /* that puzzles ask for */
    struct tl_waits waits;
    struct tl_queues queues;
    struct tl_subscribers { /* the event streams and long polls */
        struct tl_subscriber_table table;
        int64_t swept_ms;
        uint64_t owed;          /* turns due, in subscribers * ms; the fraction of a turn is kept */
        int64_t drain_until_ms; /* 0: not draining */
    } subscribers;
    struct tl_pending_command *leaving; /* follows the join that is being settled; or NULL */
    struct { /* the challenge service, as worker/api/challenge.c keeps it */
        struct tl_recent *tokens;
        int64_t look_ms; /* when to look for clients that are gone */
        bool down;       /* the last question had no verdict */
        struct tl_log_limit down_log;
    } service;
    struct tl_log_limit no_service_log; /* of queues with a challenge that no service is for */
};

#endif
