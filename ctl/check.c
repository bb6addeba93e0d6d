/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/config/config.h"
#include "common/config/document.h"

#include "ctl/command.h"

#include "worker/page/page_check.h"

int tl_command_check(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_load(options->config, &err);
    if (config == NULL)
        return tl_ctl_fail(tl_ctl_file_status(&err), &err);
    struct tl_languages *languages = tl_languages_new(config->page.languages, &err);
    bool good = languages != NULL && tl_page_check(config, languages, &err);
    tl_languages_free(&languages);
    if (!good) {
        tl_config_free(&config);
        return tl_ctl_fail(tl_ctl_file_status(&err), &err);
    }
    printf("%s: ok; %zu %s\n",
           options->config != NULL ? options->config : "defaults and environment", config->n_queues,
           config->n_queues == 1 ? "queue" : "queues");
    tl_config_free(&config);
    return TL_EXIT_OK;
}

int tl_command_config_doc(const struct tl_ctl_options *options)
{
    (void)options;
    tl_config_document(stdout);
    return ferror(stdout) ? TL_EXIT_FAILED : TL_EXIT_OK;
}
