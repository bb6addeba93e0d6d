/* SPDX-License-Identifier: Apache-2.0 */
/* Which name was meant by a misspelt one. */
#ifndef TL_CONFIG_SPELLING_H
#define TL_CONFIG_SPELLING_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `candidate` is close enough to the misspelt `word` to propose it, and closer than *best,
 * which it then replaces. Start with *best = SIZE_MAX. */
bool tl_spelling_closer(const char *word, const char *candidate, size_t *best);

#endif
