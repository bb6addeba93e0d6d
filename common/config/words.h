/* SPDX-License-Identifier: Apache-2.0 */
/* Settings in words, for messages and for the documentation. */
#ifndef TL_CONFIG_WORDS_H
#define TL_CONFIG_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/config/table.h"

#define TL_SETTING_BOUNDS_MAX 96 /* bytes of tl_setting_bounds, with the terminating zero */

/* The limits in words: "256B to 1MiB", "counter, rate or both". */
void tl_setting_bounds(const struct tl_setting *row, char bounds[TL_SETTING_BOUNDS_MAX]);
/* The type in words: "duration". */
const char *tl_setting_type_name(const struct tl_setting *row);
/* "redis.url" as TELLERLINE_REDIS_URL. */
void tl_setting_env_name(const struct tl_setting *row, char name[TL_SETTING_PATH_MAX]);

/* Whether `candidate` is close enough to the misspelt `word` to propose it, and closer than *best,
 * which it then replaces. Start with *best = SIZE_MAX. */
bool tl_spelling_closer(const char *word, const char *candidate, size_t *best);

#endif
