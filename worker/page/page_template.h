/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in template of the waiting page. It can name every field of page_fields.h and every
 * text of the catalogues. */
#ifndef TL_PAGE_TEMPLATE_H
#define TL_PAGE_TEMPLATE_H

#include "common/base/error.h"

#include "worker/page/catalogue.h"
#include "worker/page/template.h"

/* Parses the built-in template. In it, a number below N_FIELDS is a field; text i of the catalogues
 * has the number N_FIELDS + i. NULL on failure; freed with tl_template_free. */
struct tl_template *tl_page_template_new(const struct tl_catalogue *source, struct tl_error *err);

#endif
