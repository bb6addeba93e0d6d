/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a hook in words, from the control room's answer. */
#ifndef TL_CTL_CALLS_HOOK_WORDS_H
#define TL_CTL_CALLS_HOOK_WORDS_H

#include <jansson.h>

#include "ctl/shell/table.h"

#define TL_HOOK_WORDS_MAX 256

/* "answers", "failing since 2026-12-01T20:00:00+09:00: it answers 500". */
void tl_hook_words(const json_t *hook, char text[TL_HOOK_WORDS_MAX]);
/* How they stand out where there is colour. */
enum tl_tint tl_hook_tint(const json_t *hook);

#endif
