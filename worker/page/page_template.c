/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/page/page_assets.h"
#include "worker/page/page_fields.h"
#include "worker/page/page_template.h"

/* context: the source of the texts */
static int find_name(const void *context, const char *name, size_t length, bool source)
{
    int first = source ? FIRST_SOURCE : 0;
    int end = source ? N_FIELDS : FIRST_SOURCE;
    for (int i = first; i < end; i++) {
        const char *known = tl_page_field_name((enum tl_page_field)i);
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
