/* SPDX-License-Identifier: Apache-2.0 */
#include "common/role/reload.h"
#include "common/config/config.h"

#include "common/base/log.h"
#include "common/role/start.h"

void tl_reload(const struct tl_reload *reload)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_load(reload->config_path, &err);
    bool refused =
        config == NULL || (reload->take != NULL && !reload->take(reload->context, config, &err));
    if (reload->outcome != NULL) {
        atomic_fetch_add(&reload->outcome->refused, refused ? 1 : 0);
        atomic_store(&reload->outcome->failed, refused);
    }
    if (refused) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.error = &err},
               "reload refused, the running configuration stays");
    } else {
        tl_start_log(config, reload->role);
        tl_info("configuration read again: %s%slog settings are in force, the rest at the next "
                "start; but `tellerline set` changes the settings of queues that exist",
                reload->taken != NULL ? reload->taken : "", reload->taken != NULL ? " and " : "");
    }
    tl_config_free(&config);
}

void tl_reload_write(const struct tl_reload_outcome *outcome, const char *label,
                     struct tl_text *out)
{
    tl_text_append(out,
                   "# HELP tellerline_reloads_refused_total Reloads (SIGHUP) that changed nothing, "
                   "because the configuration is not valid.\n"
                   "# TYPE tellerline_reloads_refused_total counter\n"
                   "tellerline_reloads_refused_total{%s} %lld\n"
                   "# HELP tellerline_reload_failed 1 when the last reload was refused.\n"
                   "# TYPE tellerline_reload_failed gauge\n"
                   "tellerline_reload_failed{%s} %d\n",
                   label, (long long)atomic_load(&outcome->refused), label,
                   atomic_load(&outcome->failed) ? 1 : 0);
}
