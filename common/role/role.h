/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A role: a program that serves queues. Any number of its processes may run; each queue is served
 * by the one that holds its lease. What all roles do alike is here: the connection, the leases, the
 * events that are followed, errors that concern one queue only, and what is reported of them. The
 * table below is what a role does of its own; role_main.h makes a program of it.
 */
#ifndef TL_ROLE_H
#define TL_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/config/config.h"
#include "common/role/program.h"
#include "common/role/queue_metrics.h"
#include "common/role/roster.h"
#include "common/role/signals.h"
#include "common/store/store.h"
#include "common/store/tail.h"
#include "common/store/troubles.h"

struct tl_process;

/* Callbacks get the state of the process as `self`. `take` and those from `serve` on may be NULL.
 * Times are local and monotonic. */
struct tl_role {
    const char *name;                     /* "dispatcher"; also of its leases, tl:{q}:dispatcher */
    const char *summary;                  /* one line for --help */
    size_t admin;                         /* the offset in struct tl_config of its admin listener */
    bool fenced;                          /* count a fence whenever a lease changes hands */
    size_t size;                          /* of the state of a process, which starts zeroed */
    size_t queue_size;                    /* of held->state, likewise */
    const struct tl_metric_desc *metrics; /* of its own, then TL_ROLE_METRIC_ROWS */
    size_t n_metrics;                     /* of its own */
    const struct tl_queue_metrics_tables *queue_metrics; /* of held->series */

    /* Completes the state. The store is not there yet: it may come up later. */
    bool (*open)(void *self, struct tl_process *process, struct tl_error *err);
    /* Frees what the state owns. Holds no queue now. Called also after a failed open. */
    void (*close)(void *self);
    /* One bounded turn: tl_process_refresh, what is due, and a wait of tl_process_wait_ms at most.
     * False when the store failed: then all queues are outdated, all leases are checked in the next
     * turn, and, unless only the lease or the library was missing, that comes after a pause. */
    bool (*turn)(void *self, int64_t now_ms, struct tl_error *err);

    /* A lease was taken: completes held->state. False with err: the lease is released, and the next
     * round tries again; `drop` is not called for it. */
    bool (*take)(void *self, struct tl_held_queue *held, struct tl_error *err);
    /* The lease is gone: frees what held->state owns. */
    void (*drop)(void *self, struct tl_held_queue *held);
    /* A turn or `serve` failed, or the connection is a new one: held->state may be out of date. */
    void (*outdated)(void *self, struct tl_held_queue *held);
    /* For tl_process_serve. Does what is due for this queue, and lowers *due_ms to the time by
     * which the next turn has to come for it. */
    bool (*serve)(void *self, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms,
                  struct tl_error *err);
    /* Likewise. The queue is set aside: does what can be done for it nevertheless. What fails stays
     * undone. */
    void (*serve_resting)(void *self, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms);
    /* An entry of the queue's events, while the queue is followed; see tl_tail_handler. */
    bool (*event)(void *self, struct tl_held_queue *held, const void *payload, size_t length);
};

/* The metrics that all roles have follow those of its own: role->n_metrics + TL_ROLE_... */
enum { TL_ROLE_QUEUES, TL_ROLE_TROUBLED, TL_ROLE_LISTED, TL_ROLE_STORE_TIME, TL_ROLE_METRICS };

/* Their rows, in the table of the role of this name. */
#define TL_ROLE_METRIC_ROWS(name)                                                                  \
    {"tellerline_" name "_queues", "Queues whose lease this process holds.", TL_GAUGE},            \
        {"tellerline_" name "_queues_troubled", "Queues set aside because their data is damaged.", \
         TL_GAUGE},                                                                                \
        {"tellerline_" name "_queues_listed", "All queues.", TL_GAUGE},                            \
    {                                                                                              \
        "tellerline_store_seconds",                                                                \
            "One command to Redis and its answer, without pipelines and waits for events.",        \
            TL_HISTOGRAM                                                                           \
    }

/* A role at work. It reads: */
struct tl_process {
    const struct tl_config *config;
    const struct tl_signals *signals; /* a pending one: the turn should end soon */
    char id[TL_PROCESS_ID_SIZE];      /* a name for this process among its peers */
    struct tl_metrics *metrics;       /* by the table of the role, and TL_ROLE_... */
    struct tl_store *store;
    struct tl_roster *roster;     /* the queues held... */
    struct tl_troubles *troubles; /* ...those of them that are set aside */
    struct tl_tail *tail;         /* ...and those whose events are followed, until they are lost */
    /* `open` may set it: why there is nothing to do. Then the store stays closed, and no other
     * callback but `close` comes. */
    const char *idle;
    /* A turn may set it: what else than the store keeps the role from its work; NULL: nothing. */
    const char *hindrance;
    /* Of role_main.c: */
    bool ready; /* the program has said so */
    /* Of role.c: */
    const struct tl_role *role;
    void *self;
    struct tl_queue_metrics *queue_metrics;
    uint64_t epoch;     /* of the connection in the last turn */
    int64_t library_ms; /* when the store is told again that this library is in use */
};

/* Makes the state of the role, and opens nothing. role, config and signals are borrowed. NULL on
 * failure. */
struct tl_process *tl_process_new(const struct tl_role *role, const struct tl_config *config,
                                  const struct tl_signals *signals, struct tl_error *err);
/* Releases the leases, so that another process need not wait until they run out, and frees all. */
void tl_process_free(struct tl_process **process);

/* One turn of the role. False with err when the store failed. */
bool tl_process_turn(struct tl_process *process, int64_t now_ms, struct tl_error *err);
/* Can the role do its work, which it cannot when all queues there are have been set aside? detail
 * gets a line for /readyz: which are set aside and why; "" for none. */
bool tl_process_able(const struct tl_process *process, char detail[160]);

/* ---- for a turn ---- */

/* The first step: connects, and takes and renews leases when that is due. */
bool tl_process_refresh(struct tl_process *process, int64_t now_ms, struct tl_error *err);
/* Calls `serve` for every held queue that is not set aside, else `serve_resting`. An error of one
 * queue alone (a function failed on its data) sets the queue aside and does not stop the others. */
bool tl_process_serve(struct tl_process *process, int64_t now_ms, int64_t *due_ms,
                      struct tl_error *err);
/* For a role that serves its queues in another way: sets the queue aside when the error concerns
 * its data alone; else returns false. */
bool tl_process_set_aside(struct tl_process *process, struct tl_held_queue *held, int64_t now_ms,
                          struct tl_error *err);
/* How long the turn may wait, in ms: until due_ms or the next round of leases, at most half a
 * second. 0 when one of them has passed, or when the program can do its work and has not said so:
 * it does when the turn ends. */
int64_t tl_process_wait_ms(const struct tl_process *process, int64_t due_ms, int64_t now_ms);
/* Waits up to wait_ms for events and passes them to `event`. While no queue is followed, waits for
 * a signal instead. */
bool tl_process_wait(struct tl_process *process, int64_t wait_ms, struct tl_error *err);

#endif
