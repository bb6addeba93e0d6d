/* What SIGHUP does in every program: it reads the configuration again. */
#ifndef TL_RELOAD_H
#define TL_RELOAD_H

#include <stdbool.h>

#include "common/config/config.h"

struct tl_reload {
    const char *config_path; /* NULL: defaults and environment */
    const char *role;        /* for the log; borrowed */
    /* Takes over what else the program can change while it runs; NULL: nothing. False refuses the
     * new configuration: the running one stays. The configuration is freed after the call. */
    bool (*take)(void *context, const struct tl_config *config, struct tl_error *err);
    void *context;
    const char *taken; /* what `take` takes over, for the log: "keys"; NULL without it */
};

/* Reads the file again, hands it to `take`, puts the log settings in force, and logs the outcome.
 */
void tl_reload(const struct tl_reload *reload);

#endif
