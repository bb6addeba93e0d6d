/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the waiting page: values that its template can insert, made from a view. Private to
 * worker/page. */
#ifndef TL_PAGE_FIELDS_H
#define TL_PAGE_FIELDS_H

#include "common/config/event_page.h"
#include "worker/page/catalogue.h"
#include "worker/page/page_source.h"
#include "worker/page/template.h"

#define VALUE(name)  FIELD_##name,
#define SOURCE(name) FIELD_##name,
enum {
#include "worker/page/page_fields.def"
    N_FIELDS,
    FIRST_SOURCE = FIELD_refresh_script
};
#undef VALUE
#undef SOURCE

/* The name by which the template refers to each field. */
extern const char *const tl_page_field_names[N_FIELDS];

/* Parses the built-in template. Its names are those of the fields, then those of the texts of the
 * catalogues. NULL on failure; freed with tl_template_free. */
struct tl_template *tl_page_template_new(const struct tl_catalogue *source, struct tl_error *err);

#endif
