/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request, from its bytes. */
#ifndef TL_CONTROL_BODY_H
#define TL_CONTROL_BODY_H

#include <stddef.h>

#include <jansson.h>

#include "common/base/error.h"

#define TL_CONTROL_BODY_MAX (256 * 1024) /* bytes: a bulk join of 1000 visitors fits */

/* An object, no member twice. NULL with TL_ERR_INVALID; the caller owns it. */
json_t *tl_control_read_body(const char *bytes, size_t length, struct tl_error *err);

#endif
