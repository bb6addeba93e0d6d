/*
 * The wait estimate: a range computed from observed admissions, or from the rate that the settings
 * give.
 *
 * Counts admissions while visitors wait, and the time that passes meanwhile. Admissions that only
 * raise the number of active visitors to a new maximum do not count: filling free capacity, when
 * the line forms or when the capacity is raised, does not show how fast sessions end. Both counts
 * fade with a half-life, so that old behaviour is forgotten. Time also passes while no visitor is
 * admitted, so the estimate of a stalled line grows.
 *
 * With n admissions seen in time t, the wait for k more is k * t/n on average. Taking admissions as
 * a Poisson process, (wait / k) / (t / n) follows an F distribution with 2k and 2n degrees of
 * freedom: the range covers both the uncertainty of the rate and the randomness of the next k
 * admissions. Its quantiles are those of E. Paulson, "An approximate normalization of the analysis
 * of variance distribution", 1942, which rests on the cube-root approximation of Wilson and
 * Hilferty.
 *
 * Where only a rate limits admission, the rate says the wait, from the first visitor on: no longer
 * than as many periods as the position fills. If visitors wait and no admission is seen for much
 * longer than the rate demands, the observations count again. Where capacity limits as well, the
 * observations count, and the rate is how fast it can be at best.
 */
#ifndef TL_ETA_H
#define TL_ETA_H

#include <stdbool.h>
#include <stdint.h>

/* Starts zeroed. Times are milliseconds of one monotonic clock. */
struct tl_eta {
    double admitted;  /* fading count */
    double time_ms;   /* fading time */
    int64_t now_ms;   /* up to when time_ms has been counted */
    uint64_t level;   /* most active visitors since the line formed */
    bool waiting;     /* were visitors waiting after the last step? */
    int64_t quiet_ms; /* visitors have waited for so long since the last admission */
};

/* Admission by rate, as the settings say it. */
struct tl_eta_rule {
    uint64_t admit;   /* so many... 0: there is no rate */
    int64_t every_ms; /* ...in this time */
    uint64_t burst;
    bool lumps; /* all at once, every `every` */
    bool alone; /* nothing else limits admission */
};

struct tl_eta_step {
    uint64_t admitted; /* in this step */
    uint64_t waiting;  /* afterwards */
    uint64_t active;   /* afterwards; 0 where no capacity limits admission: all admissions count */
};

/* Adds one step of the line. */
void tl_eta_step(struct tl_eta *eta, int64_t now_ms, const struct tl_eta_step *step);
/* From now on at most `capacity` visitors can be active. */
void tl_eta_limit(struct tl_eta *eta, uint64_t capacity);
/* Stops counting time until the next step: the queue is paused or not open. */
void tl_eta_stop(struct tl_eta *eta, int64_t now_ms);

struct tl_eta_range {
    double low_s, mean_s, high_s; /* seconds; eight in ten waits end between low and high */
};

/* The wait until the position-th admission from now (position >= 1). False while fewer than five
 * were seen, unless the rule alone says it. */
bool tl_eta_estimate(const struct tl_eta *eta, const struct tl_eta_rule *rule, int64_t now_ms,
                     uint64_t position, struct tl_eta_range *range);

#endif
