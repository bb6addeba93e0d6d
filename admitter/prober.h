/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that asks protected sites how loaded they are. It asks for those queues only that the
 * admitter steers at the moment; a site that hangs delays nobody else.
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

/* Keeps the probe of this queue going for the next ten seconds, and takes its last result, once.
 * False: there is none, or none that is new. prober may be NULL. */
bool tl_prober_take(struct tl_prober *prober, const char *queue, int64_t now_ms,
                    struct tl_probed *probed);

#endif
