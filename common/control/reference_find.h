/* SPDX-License-Identifier: Apache-2.0 */
/* The visitor behind a reference code (common/auth/reference.h). */
#ifndef TL_CONTROL_REFERENCE_FIND_H
#define TL_CONTROL_REFERENCE_FIND_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/wire/names.h"

/* Looks for the visitor with this code, by any of the ticket keys: through the line, the sessions
 * and the ends that are known, a thousand in each command. False without an error: nothing is known
 * of such a visitor. TL_ERR_INVALID: the text is no code, or the keys cannot be read. */
bool tl_reference_find(struct tl_redis *redis, const struct tl_keys *keys,
                       const struct tl_config *config, const char *code,
                       char visitor[TL_VISITOR_MAX + 1], struct tl_error *err);

#endif
