/* SPDX-License-Identifier: Apache-2.0 */
/* What SIGHUP does in every program: it reads the configuration again. */
#ifndef TL_RELOAD_H
#define TL_RELOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/text.h"
#include "common/config/config.h"

/* What became of it, for the metrics; starts zeroed. May be in shared memory. */
struct tl_reload_outcome {
    _Atomic int64_t refused; /* how often, so far */
    _Atomic bool failed;     /* the last one was refused */
};

struct tl_reload {
    const char *config_path; /* NULL: defaults and environment */
    const char *role;        /* for the log; borrowed */
    /* Takes over what else the program can change while it runs; NULL: nothing. False refuses the
     * new configuration: the running one stays. The configuration is freed after the call. */
    bool (*take)(void *context, const struct tl_config *config, struct tl_error *err);
    void *context;
    struct tl_reload_outcome *outcome; /* NULL: not counted */
    const char *taken; /* what `take` takes over, for the log: "keys"; NULL without it */
};

/* Reads the file again, hands it to `take`, puts the log settings in force, and logs the outcome.
 */
void tl_reload(const struct tl_reload *reload);
/* Appends the outcome as Prometheus text, with this label. */
void tl_reload_write(const struct tl_reload_outcome *outcome, const char *label,
                     struct tl_text *out);

#endif
