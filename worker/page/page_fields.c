/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/page/page_assets.h"
#include "worker/page/page_fields.h"

#define FIELD_NAME(name) [FIELD_##name] = #name,

const char *const tl_page_field_names[N_FIELDS] = {TL_PAGE_FIELDS(FIELD_NAME)};

_Static_assert(FIELD_event_title_lang == FIELD_event_title + TL_EVENT_TEXTS &&
                   FIELD_event_date_ms == FIELD_event_title_lang + TL_EVENT_TEXTS,
               "a field for each enum tl_event_text, in its order");
_Static_assert(FIRST_SOURCE + TL_PAGE_SOURCES == N_FIELDS,
               "a field for each enum tl_page_sources, in its order");

/* context: the source of the texts */
static int find_name(const void *context, const char *name, size_t length, bool source)
{
    int first = source ? FIRST_SOURCE : 0;
    int end = source ? N_FIELDS : FIRST_SOURCE;
    for (int i = first; i < end; i++) {
        const char *known = tl_page_field_names[i];
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return i;
    }
    if (source)
        return -1;
    int text = tl_catalogue_find(context, name, length);
    return text < 0 ? -1 : N_FIELDS + text;
}

struct tl_template *tl_page_template_new(const struct tl_catalogue *source, struct tl_error *err)
{
    return tl_template_parse("page.html", tl_page_html.bytes, tl_page_html.length, find_name,
                             source, err);
}
