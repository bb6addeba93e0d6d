/* SPDX-License-Identifier: Apache-2.0 */
/* NAME=VALUE... of the command line as the settings of a call. */
#ifndef TL_CTL_CALLS_ASSIGNMENTS_H
#define TL_CTL_CALLS_ASSIGNMENTS_H

#include <jansson.h>

#include "common/base/error.h"

/* The value of a setting of this name as a call wants it: the text, or a boolean where the setting
 * is one. The control room checks it. */
json_t *tl_assignment_value(const char *name, const char *value);

/* An object of all of them; the caller owns it. NULL with TL_ERR_INVALID when a word is not of this
 * form, or a name is there twice. */
json_t *tl_assignments_read(int n, char *const *words, struct tl_error *err);

#endif
