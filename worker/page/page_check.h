/* SPDX-License-Identifier: Apache-2.0 */
/* The check of everything that the configuration says about pages, before anything runs. */
#ifndef TL_PAGE_CHECK_H
#define TL_PAGE_CHECK_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/settings.h"

#include "worker/page/languages.h"

/* Reads the brand and the events of the queues, with their files. On failure err says what is wrong
 * and where. */
bool tl_page_check(const struct tl_config *config, const struct tl_languages *languages,
                   struct tl_error *err);

#endif
