/* SPDX-License-Identifier: Apache-2.0 */
/* The visitor whom an operator names. */
#ifndef TL_CONTROL_VISITOR_FIND_H
#define TL_CONTROL_VISITOR_FIND_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/wire/names.h"

/* The visitor of a text, which is an id or a ticket. A ticket counts only if it is genuine: a
 * person who sends a forged one to the operator could name another visitor in it. */
bool tl_control_find_visitor(const struct tl_config *config, const char *queue, const char *text,
                             char visitor[TL_VISITOR_MAX + 1], struct tl_error *err);

#endif
