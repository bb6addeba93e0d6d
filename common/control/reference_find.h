/* The visitor behind a reference code (common/auth/reference.h). */
#ifndef TL_CONTROL_REFERENCE_FIND_H
#define TL_CONTROL_REFERENCE_FIND_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/wire/names.h"

/* Looks for the place that any of the ticket keys reads from the code: at its score in the line,
 * then through the sessions, a thousand in each command. False without an error: it neither waits
 * nor has a session. TL_ERR_INVALID: the text is no code, or the keys cannot be read. */
bool tl_reference_find(struct tl_redis *redis, const struct tl_keys *keys,
                       const struct tl_config *config, const char *code,
                       char visitor[TL_VISITOR_MAX + 1], struct tl_error *err);

#endif
