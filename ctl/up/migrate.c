/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/archive/migrate.h"
#include "ctl/up/up.h"

bool tl_up_migrate(const char *url, unsigned *before, struct tl_error *err)
{
    struct tl_postgres postgres = {0};
    bool ok = tl_postgres_check(url, err) && tl_postgres_open(&postgres, url, "tellerline", err) &&
              tl_migrate(&postgres, before, err);
    tl_postgres_close(&postgres);
    return ok;
}

int tl_command_migrate(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    unsigned before = 0;
    const struct tl_config *config = tl_config_load(options->config, &err);
    bool ok = config != NULL &&
              (config->archive.url[0] != '\0' ||
               tl_error_set(&err, TL_ERR_INVALID, "archive.url is not set: there is no archive"));
    ok = ok && tl_up_migrate(config->archive.url, &before, &err);
    tl_config_free(&config);
    if (!ok)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    if (before == tl_migrate_wanted())
        printf("the tables have version %u already\n", before);
    else
        printf("the tables have version %u now, before: %u\n", tl_migrate_wanted(), before);
    return TL_EXIT_OK;
}
