/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a site's throughput and its visitors' behaviour say about the settings of a queue. Pure
 * computation: no input or output.
 *
 * A session uses `calls` requests, and each request that fails is repeated once. So a site of `tps`
 * requests per second serves tps / (calls * (1 + failure_rate)) visitors per second, and Little's
 * law (L = lambda * W; J. Little, 1961) says how many are on the site at once.
 *
 * A limit is rounded down: first `safety` is taken off, then two significant digits are kept. What
 * only describes is rounded to the nearest whole number.
 */
#ifndef TL_LAB_MODEL_H
#define TL_LAB_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/words/words.h"

/* How a crowd arrives. */
enum tl_crowd_shape {
    TL_CROWD_EVEN, /* at any time alike */
    TL_CROWD_RUSH, /* most of them at the beginning */
    TL_CROWD_WAVE, /* more and more until the peak, then fewer */
};

enum { TL_ARRIVALS_MOST = 10000000 }; /* of a crowd that is replayed */

/* How a crowd comes, in ms from the first moment at which anyone may arrive. */
struct tl_crowd {
    uint64_t visitors; /* 0: not known */
    enum tl_crowd_shape shape;
    int64_t over_ms; /* they all arrive within this time */
    int64_t peak_ms; /* of a wave, up to over_ms; -1: the middle */
};

/* Each within the bounds that the options have (options.c); 0 where an option is missing. */
struct tl_plan_input {
    double tps;            /* requests per second that the site serves */
    int64_t session_ms;    /* how long a visitor stays */
    double calls;          /* requests of a visitor... */
    int64_t calls_per_ms;  /* ...in this time; 0: in a session */
    double failure_rate;   /* share of requests that fail */
    double safety;         /* share of the throughput that is not used */
    double margin;         /* session_ttl is longer than the session by this share of it */
    double no_shows;       /* share of those called who do not come */
    int64_t period_ms;     /* of rate.every */
    enum tl_policy policy; /* which limits are used */
    enum tl_rate_shape shape;
    uint64_t burst; /* rate.burst */
    /* Settings that the operator has chosen; 0: suggest them. */
    uint64_t capacity, admit;
    int64_t claim_ttl_ms, waiting_ttl_ms;
    struct tl_crowd crowd;
    uint64_t sales; /* how many like this one are on at once; 0: one */
};

struct tl_plan {
    double calls;                       /* requests of a session, without repeats */
    double calls_used;                  /* with repeats */
    double per_second;                  /* visitors per second that use the throughput up */
    double per_period;                  /* the same per period */
    double at_once;                     /* visitors on the site then */
    double at_once_most;                /* the same when each session lasts session_ttl */
    uint64_t safe_capacity, safe_admit; /* limits: with safety, rounded down */
    struct tl_queue_settings settings;  /* limits as chosen, else the safe ones */
    double hold_ms;                     /* how long an admission takes a slot, on average */
    double by_rate;     /* visitors per second that the rate admits; 0: policy counter */
    double by_capacity; /* that the capacity admits while the line is not empty; 0: policy rate */
    double admitted;    /* the smaller one of them */
    double admitted_least; /* the same when no session ends before session_ttl */
    /* Of all sales together; 0 without a crowd. */
    double peak_joins;      /* per second, at the busiest moment */
    uint64_t processes;     /* of the worker, on all machines */
    uint64_t redis_bytes;   /* for the crowd, with the reserve */
    uint64_t redis_masters; /* a sale is in one of them; a cluster has three or more */
    double redis_share;     /* of a core of Redis that one sale takes at its busiest moment */
};

/* Figures of docs/contributors/benchmarks.md and docs/operators/redis.md on which the size of
 * an installation rests. */
enum {
    TL_PLAN_JOINS_PER_PROCESS = 43800,
    TL_PLAN_PAGES_PER_PROCESS = 19000, /* the default of http.max_connections */
    TL_PLAN_REDIS_BYTES = 130,         /* of a waiting visitor */
    TL_PLAN_JOINS_PER_MASTER = 280000, /* as durable as docs/operators/redis.md asks for */
    TL_PLAN_REDIS_US = 65,             /* of a visitor who comes alone, from join to end */
};

/* Computes the plan. TL_ERR_INVALID names the option that is missing or out of bounds, or says why
 * no setting fits. */
bool tl_plan_compute(const struct tl_plan_input *input, struct tl_plan *plan, struct tl_error *err);

/* How long one waits behind `ahead` visitors while `per_second` (more than 0) are admitted
 * and nobody gives up, in ms. */
int64_t tl_plan_wait_ms(uint64_t ahead, double per_second);

/* Warnings: sentences about choices that are not safe. */
void tl_plan_warn(const struct tl_plan_input *input, const struct tl_plan *plan,
                  struct tl_sentences *warnings);

#endif
