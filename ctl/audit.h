/*
 * The audit of one queue on the live system. What must hold after every step of every script:
 *   1. the counters of the state are the sizes of the sets, and every active visitor has a session
 *   2. under the counter policy no admission takes `active` above `capacity`
 *   3. nobody is both waiting and active
 *   4. nobody is active while somebody who stood before them in the same lane still waits
 *   5. joined = waiting + active + completed + expired + left
 * Each comparison is made by one script on one moment of the data, so what is reported is true,
 * however busy the queue is. The active set is gone through in pages; the waiting set, which may be
 * huge, is never.
 */
#ifndef TL_CTL_AUDIT_H
#define TL_CTL_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

enum { TL_AUDIT_TEXTS_MAX = 50 }; /* more violations of a queue are counted, not told */

struct tl_audit_violation {
    int rule; /* 1 to 5, as above */
    char text[320];
};

struct tl_audit_report {
    uint64_t waiting, active; /* as the sets are */
    uint64_t n_violations;
    size_t n_told; /* of them, in `told` */
    struct tl_audit_violation told[TL_AUDIT_TEXTS_MAX];
    char note[160]; /* odd but right, or "" */
};

/* Fills the report. False when it could not look, TL_ERR_NOQUEUE when there is no such queue. */
bool tl_audit_queue(struct tl_redis *redis, const struct tl_keys *keys,
                    struct tl_audit_report *report, struct tl_error *err);

#endif
