/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one number of what a probed site answers. */
#ifndef TL_READING_H
#define TL_READING_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/settings.h"

/* The number at `value` in a text of this format (docs/operators/adaptive.md): finite, and at least
 * 0. TL_ERR_PROTOCOL with a sentence when there is none. */
bool tl_reading_take(enum tl_probe_format format, const char *text, size_t length,
                     const char *value, double *number, struct tl_error *err);

#endif
