#include <string.h>

#include "worker/page/page_assets.h"
#include "worker/page/page_fields.h"
#include "worker/page/page_template.h"
#include "worker/page/page_text.h"

static bool is_name(const char *known, const char *name, size_t length)
{
    return strlen(known) == length && memcmp(known, name, length) == 0;
}

static int find_name(const char *name, size_t length)
{
    for (int i = 0; i < N_FIELDS; i++) {
        if (is_name(tl_page_field_name((enum tl_page_field)i), name, length))
            return i;
    }
    size_t n;
    const struct tl_page_message *messages = tl_page_messages(&n);
    for (size_t i = 0; i < n; i++) {
        if (is_name(messages[i].name, name, length))
            return N_FIELDS + (int)i;
    }
    return -1;
}

struct tl_template *tl_page_template_new(struct tl_error *err)
{
    size_t length;
    const void *bytes = tl_page_html(&length);
    return tl_template_parse("page.html", bytes, length, find_name, err);
}
