#include "common/role/reload.h"
#include "common/config/config.h"

#include "common/base/log.h"
#include "common/role/start.h"

void tl_reload(const struct tl_reload *reload)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_load(reload->config_path, &err);
    if (config == NULL || (reload->take != NULL && !reload->take(reload->context, config, &err))) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.error = &err},
               "reload refused, the running configuration stays");
    } else {
        tl_start_log(config, reload->role);
        tl_info("configuration read again: %s%slog settings are in force, the rest at the next "
                "start",
                reload->taken != NULL ? reload->taken : "", reload->taken != NULL ? " and " : "");
    }
    tl_config_free(&config);
}
