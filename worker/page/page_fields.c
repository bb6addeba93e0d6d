/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/page/page_assets.h"
#include "worker/page/page_fields.h"

#define VALUE(name)  [FIELD_##name] = #name,
#define SOURCE(name) [FIELD_##name] = ">" #name,
const char *const tl_page_field_names[N_FIELDS] = {
#include "worker/page/page_fields.def"
};

_Static_assert(FIELD_event_title_lang == FIELD_event_title + TL_EVENT_TEXTS &&
                   FIELD_event_date_ms == FIELD_event_title_lang + TL_EVENT_TEXTS,
               "a field for each enum tl_event_text, in its order");
_Static_assert(FIRST_SOURCE + TL_PAGE_SOURCES == N_FIELDS,
               "a field for each enum tl_page_sources, in its order");

struct tl_template *tl_page_template_new(const struct tl_catalogue *source, struct tl_error *err)
{
    const char *names[N_FIELDS + TL_CATALOGUE_TEXTS_MAX];
    memcpy(names, tl_page_field_names, sizeof(tl_page_field_names));
    for (size_t i = 0; i < source->n_texts; i++)
        names[N_FIELDS + i] = source->texts[i].name;
    return tl_template_parse("page.html", tl_page_html.bytes, tl_page_html.length, names,
                             N_FIELDS + source->n_texts, err);
}
