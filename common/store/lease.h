/*
 * Leases as the store keeps them: tl:{q}:<role>, a string with a time to live whose value is the
 * owner. They spread the work and nothing more; what keeps it right is the fence, which the scripts
 * check.
 *
 * Taking a lease is a script, for it counts the fence. Keeping one is a single plain command, since
 * that is what idle queues cost: GETEX gives the lease its full time again and answers who holds
 * it. It cannot ask first. A holder that slept through its lease would lengthen that of its
 * successor, once, for the answer tells it; so the caller renews only what it renewed less than
 * TL_LEASE_MS ago by its own clock, and asks by the script otherwise. What is left of that is a
 * process that stops between reading its clock and sending: if the successor dies too before that
 * one wakes up, it is itself succeeded at most TL_LEASE_MS later than it would have been.
 */
#ifndef TL_LEASE_H
#define TL_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/args.h"
#include "common/store/script.h"
#include "common/store/store.h"

#define TL_LEASE_MS 1500

enum tl_lease_step {
    TL_LEASE_SKIP,    /* send nothing */
    TL_LEASE_CHECK,   /* ask when it runs out */
    TL_LEASE_RENEW,   /* extend one that we believe to hold */
    TL_LEASE_TAKE,    /* take it if it is free or our own; returns the fence */
    TL_LEASE_RELEASE, /* give it back if it is our own */
};

/* The lease of one queue: what to ask, and what is known. */
struct tl_lease {
    const char *queue; /* borrowed */
    enum tl_lease_step step;
    bool held;             /* by us: the answer to RENEW and TAKE */
    bool free;             /* nobody holds it: the answer to CHECK and RENEW */
    int64_t left_ms;       /* if held by somebody else, at least this long; the answer to CHECK */
    uint64_t fence;        /* the answer to TAKE; 0 for roles without one */
    struct tl_error error; /* kind TL_OK unless the store refused the step */
};

/* Whose leases, and what is needed to ask. */
struct tl_leaser {
    const char *key_prefix, *role, *owner; /* borrowed */
    bool fenced;                           /* TAKE counts state.fence up when the holder changes */
    struct tl_script script;               /* its sha is emptied to have it loaded again */
    struct tl_args args;
};

void tl_leaser_init(struct tl_leaser *leaser, const char *key_prefix, const char *role,
                    const char *owner, bool fenced);
void tl_leaser_deinit(struct tl_leaser *leaser);

/* Takes the steps of all leases in one pipeline. False with err when not all could be sent; what a
 * single queue was refused is in its error, and it counts as not held. */
bool tl_lease_ask(struct tl_leaser *leaser, struct tl_store *store, struct tl_lease *leases,
                  size_t n, struct tl_error *err);

#endif
