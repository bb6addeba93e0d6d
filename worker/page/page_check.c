#include "worker/page/page_check.h"
#include "worker/page/brand.h"
#include "worker/page/event_look.h"
#include "worker/page/languages.h"

bool tl_page_check(const struct tl_config *config, struct tl_error *err)
{
    const struct tl_brand_settings settings = tl_brand_settings_of(config);
    struct tl_languages *languages = tl_languages_new(config->page.languages, err);
    struct tl_brand *brand = languages != NULL ? tl_brand_load(&settings, languages, err) : NULL;
    struct tl_event_looks *events =
        brand != NULL ? tl_event_looks_new(config, languages, err) : NULL;
    bool good = events != NULL;
    tl_event_looks_free(&events);
    tl_brand_free(&brand);
    tl_languages_free(&languages);
    return good;
}
