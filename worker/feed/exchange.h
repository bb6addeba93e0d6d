/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exchange with the store: a batch that it is to take, a question what became of a batch, a
 * look-up of a visitor, signs of misuse, a site's feedback, a page of a draw's list, or what came
 * true of the waits told. Commands are appended to a pipeline; the answers are received in the same
 * order. Knows nothing of threads.
 */
#ifndef TL_EXCHANGE_H
#define TL_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/redis.h"
#include "common/wire/names.h"
#include "worker/feed/outbox.h"

/* What the store knows about a visitor whose place is not in our line. */
enum tl_lookup_found {
    TL_LOOKUP_NOWHERE,
    TL_LOOKUP_ALIVE, /* waiting or active at that place: our line is not up to date */
    TL_LOOKUP_ENDED,
    TL_LOOKUP_FAILED, /* the store did not answer */
};

enum tl_exchange_kind {
    TL_EXCHANGE_BATCH,
    TL_EXCHANGE_CHECK,
    TL_EXCHANGE_LOOKUP,
    TL_EXCHANGE_SIGNS,
    TL_EXCHANGE_FEEDBACK,
    TL_EXCHANGE_DRAWN,
    TL_EXCHANGE_PROMISED,
};

/* Waits told to visitors that came true. */
struct tl_promised {
    uint64_t judged, early, late; /* all; admitted before and after the range told */
    uint64_t error_percent;       /* distances from the true waits, in percent of these, added up */
};

struct tl_exchange {
    enum tl_exchange_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];
    /* BATCH, CHECK */
    uint64_t number;
    char entry[TL_ENTRY_ID_MAX]; /* its id in the ingest stream; BATCH: the answer */
    /* BATCH, SIGNS, FEEDBACK; DRAWN: the answer */
    void *bytes; /* the caller's, to free */
    size_t length;
    /* BATCH */
    bool past_limit; /* send it in the way that works at the memory limit */
    /* CHECK */
    char worker[TL_WORKER_ID_MAX + 1];
    struct tl_batch_check check; /* the answer */
    /* LOOKUP */
    char visitor[TL_VISITOR_MAX + 1];
    tl_place place;
    int64_t since_ms;           /* of a pending ticket: an end before this Unix time was that of an
                                   earlier place, and so was one of a visitor who holds a place */
    enum tl_lookup_found found; /* the answer, with the reason of an end */
    enum tl_reason reason;
    /* DRAWN */
    uint64_t from, n; /* the draw ids of these ranks, from 1 */
    /* PROMISED */
    struct tl_promised promised;
};

/* Appends the commands to the pipeline. args: reusable memory. False: the connection failed. */
bool tl_exchange_append(const struct tl_exchange *exchange, struct tl_redis *redis,
                        struct tl_args *args, const char *key_prefix, struct tl_error *err);
/* Receives the answers. A refusal by the store goes to `refusal`, which must be empty before. False
 * when the connection failed: then it is not known whether the store took the commands. */
bool tl_exchange_receive(struct tl_exchange *exchange, struct tl_redis *redis,
                         struct tl_error *refusal, struct tl_error *err);
/* Would the store refuse a batch now, with the kind in `refusal`? Changes nothing. False as in
 * tl_exchange_receive. */
bool tl_exchange_probe(struct tl_redis *redis, struct tl_args *args, const char *key_prefix,
                       struct tl_error *refusal, struct tl_error *err);

#endif
