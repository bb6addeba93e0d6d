/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/origin.h"
#include "common/base/text.h"

#include "lab/rehearse_options.h"

enum { SPEED_MOST = 10000 };

/* Scheme, host and port, and nothing behind them. */
static bool apply_server(void *context, const char *value, struct tl_error *err)
{
    struct tl_error problem;
    char quoted[80];
    if (strchr(value, ' ') != NULL || !tl_origins_valid(value, &problem)) {
        tl_quote(value, quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID,
                            "%s is not an address such as http://127.0.0.1:8080", quoted);
    }
    *(const char **)context = value;
    return true;
}

static bool apply_speed(void *context, const char *value, struct tl_error *err)
{
    return tl_option_number(value, SPEED_MOST, context, err);
}

static bool apply_leaving(void *context, const char *value, struct tl_error *err)
{
    char *end = NULL;
    double share = strtod(value, &end);
    bool percent = strcmp(end, "%") == 0;
    bool good = value[0] >= '0' && value[0] <= '9' && (percent || *end == '\0');
    share /= percent ? 100 : 1;
    if (!good || share > 1)
        return tl_error_set(err, TL_ERR_INVALID,
                            "must be a share from 0 to 1, such as 0.5 or 50%%");
    *(double *)context = share;
    return true;
}

void tl_rehearse_options_rows(struct tl_rehearse_options *options,
                              struct tl_option rows[TL_REHEARSE_OPTIONS_N])
{
    *options = (struct tl_rehearse_options){.speed = 1};
    const struct tl_option all[TL_REHEARSE_OPTIONS_N] = {
        {"server", "URL", "a worker, or what is in front of it (default: http.listen, here)",
         apply_server, &options->server, false},
        {"speed", "N", "so many times faster than the sale (default: 1)", apply_speed,
         &options->speed, false},
        {"leaving", "SHARE", "of those who give up: press leave, and do not just close the page",
         apply_leaving, &options->leaving, false},
        {"remove", NULL, "only remove QUEUE, a scratch queue that an earlier run left",
         tl_option_flag, &options->remove, false},
    };
    memcpy(rows, all, sizeof(all));
}
