/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks protected sites how loaded they are, without waiting for any: a site that hangs delays no
 * one. Only a probe that is tended goes on, so that those queues alone are asked for whose capacity
 * the admitter steers at the moment.
 */
#ifndef TL_PROBER_H
#define TL_PROBER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/config.h"

struct tl_prober;

/* What became of a probe. */
struct tl_probed {
    bool failed;
    int64_t load;          /* in thousandths, as in struct tl_feedback */
    struct tl_error error; /* of a failure */
};

/* NULL with *err untouched: no configured queue has a probe. The configuration is borrowed. */
struct tl_prober *tl_prober_new(const struct tl_config *config, struct tl_error *err);
void tl_prober_free(struct tl_prober **prober);

/* In the functions below prober may be NULL. */

/* Reads what the probe of this queue has found, and asks again when it is due. Returns when to come
 * again, local monotonic; INT64_MAX: no matter when. */
int64_t tl_prober_tend(struct tl_prober *prober, const char *queue, int64_t now_ms);
/* Takes the last result, once. False: there is none, or none that is new. */
bool tl_prober_take(struct tl_prober *prober, const char *queue, struct tl_probed *probed);

#endif
