/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the waiting page: values that its template can insert, made from a view. Private to
 * worker/page. */
#ifndef TL_PAGE_FIELDS_H
#define TL_PAGE_FIELDS_H

#include "common/config/settings.h"
#include "worker/page/catalogue.h"
#include "worker/page/page_source.h"

#define VALUE(name)  FIELD_##name,
#define SOURCE(name) FIELD_##name,
enum {
#include "worker/page/page_fields.def"
    N_FIELDS,
    FIRST_SOURCE = FIELD_refresh_script
};
#undef VALUE
#undef SOURCE

/* The name by which the template refers to each field; after them come those of the catalogues'
 * texts. In look.c. */
extern const char *const tl_page_field_names[N_FIELDS];

#endif
