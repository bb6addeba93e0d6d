/* The built-in template of the waiting page. It can name every field of page_fields.h and every
 * message of page_text.h. */
#ifndef TL_PAGE_TEMPLATE_H
#define TL_PAGE_TEMPLATE_H

#include "common/base/error.h"

#include "worker/page/template.h"

/* Parses the built-in template. In it, a number below N_FIELDS is a field; message i of
 * tl_page_messages has the number N_FIELDS + i. NULL on failure; freed with tl_template_free. */
struct tl_template *tl_page_template_new(struct tl_error *err);

#endif
