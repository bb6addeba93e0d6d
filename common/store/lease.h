/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases in the store: tl:{q}:<role> is a string with a time to live whose value is the owner.
 * Leases only spread the work. Correctness comes from the fence, which the functions check.
 *
 * A function takes a lease, because the fence has to be counted up. One plain command renews it,
 * because renewals are what idle queues cost: GETEX sets the full time to live and returns the
 * owner. It cannot check the owner first. A holder that slept through its lease would extend the
 * lease of its successor, once, until it sees the reply. Therefore the caller renews only what has
 * not run out by its own clock, and takes by function otherwise. One case remains: a process stops
 * between reading its clock and sending, and its successor dies before it wakes up. Then the next
 * takeover comes one lease later.
 *
 * A lease lasts TL_LEASE_MS. A holder whose turns take longer, because the store is far away or
 * busy, asks for more (tl_lease_plan_length): otherwise replicas hand the lease to and fro.
 */
#ifndef TL_LEASE_H
#define TL_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/store.h"

#define TL_LEASE_MS     1500
#define TL_LEASE_MAX_MS 10000

enum tl_lease_step {
    TL_LEASE_SKIP,    /* send nothing */
    TL_LEASE_CHECK,   /* ask when it runs out */
    TL_LEASE_RENEW,   /* extend one that we believe to hold */
    TL_LEASE_TAKE,    /* take it if it is free or our own; returns the fence */
    TL_LEASE_RELEASE, /* give it back if it is our own */
};

/* The lease of one queue: the next step, and what is known. */
struct tl_lease {
    const char *queue; /* borrowed */
    uint64_t epoch;    /* of its store; the caller's */
    int64_t left_ms;   /* time left of another replica's lease, at least; set by CHECK */
    uint64_t fence;    /* set by TAKE; 0 for roles without one */
    enum tl_lease_step step;
    bool resting;       /* the queue is set aside: ask nothing unless it is held */
    bool store_changed; /* its store is another one than before: TAKE it; until one has answered */
    bool held;          /* by us; set by RENEW and TAKE */
    bool free;          /* has no holder; set by CHECK and RENEW */
    struct tl_error error; /* kind TL_OK unless the store refused the step */
};

/* The leases of one role and owner, and what it takes to send steps. */
struct tl_lease_client {
    const char *key_prefix, *role, *owner; /* borrowed */
    bool fenced;                           /* TAKE counts state.fence up when the holder changes */
    int64_t length_ms; /* how long TAKE and RENEW make a lease last; at first TL_LEASE_MS */
    struct tl_args args;
};

/* Does the steps of all leases in one pipeline, or one for each node. False with err when not all
 * could be sent. A lease whose step the store refused has that error and counts as not held, and so
 * has each of a node that cannot be reached. */
bool tl_lease_ask(struct tl_lease_client *client, struct tl_store *store, struct tl_lease *leases,
                  size_t n, struct tl_error *err);

/* ---- what a round asks about each lease: decisions, which only read and write the leases ---- */

/* Leases of other replicas checked in every round, so that released ones are found early. */
#define TL_LEASE_CHECKS_PER_ROUND 16
/* The least time between two checks of leases that are about to run out. */
#define TL_LEASE_CHECK_MIN_MS 20

struct tl_lease_round {
    bool take_all;  /* ask for all leases by function: what we know may be out of date */
    bool renew;     /* renew the leases held */
    bool check_all; /* check all leases of other replicas, not only some */
};

/* The first of up to three steps: renews what is held and checks some or all leases of other
 * replicas. `held` of each lease says what is known. The few checks go round the list: *next is
 * where they start and is moved behind them. */
void tl_lease_plan_round(struct tl_lease *leases, size_t n, const struct tl_lease_round *round,
                         size_t *next);
/* The second step: when one of the few was free, its holder has released its leases, so those that
 * the first step skipped are checked. False when none was: then there is nothing to do. */
bool tl_lease_plan_checks(struct tl_lease *leases, size_t n);
/* The last step: takes free leases. False when there are none. */
bool tl_lease_plan_take(struct tl_lease *leases, size_t n);

/* The next length of the leases: twice the longest recent turn. length_ms is their length now,
 * turn_ms the time since they were renewed. A long turn is forgotten by a quarter in each renewal.
 */
int64_t tl_lease_plan_length(int64_t length_ms, int64_t turn_ms);

/* When the first lease of another replica runs out, given that all were checked. */
int64_t tl_lease_next_check_ms(const struct tl_lease *leases, size_t n, int64_t now_ms);

#endif
