/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/page/page_check.h"
#include "worker/page/brand.h"
#include "worker/page/event_look.h"

bool tl_page_check(const struct tl_config *config, const struct tl_languages *languages,
                   struct tl_error *err)
{
    const struct tl_brand_settings settings = tl_brand_settings_of(config);
    struct tl_brand *brand = tl_brand_load(&settings, languages, err);
    struct tl_event_looks *events =
        brand != NULL ? tl_event_looks_new(config, languages, err) : NULL;
    bool good = events != NULL;
    tl_event_looks_free(&events);
    tl_brand_free(&brand);
    return good;
}
