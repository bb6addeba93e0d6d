/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of challenge services that came here: each counts once. A bounded memory, so the
 * oldest may be forgotten; the provider refuses repeats as well, and so does the store
 * (tl_token_id). Keeps hashes only. */
#ifndef TL_RECENT_TOKENS_H
#define TL_RECENT_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/puzzle.h"

enum { TL_TOKENS_LIFE_S = 300 }; /* no provider accepts an older token */

struct tl_recent_tokens;

/* What names a token: like the id of a solved puzzle, "~" and 22 characters. */
void tl_token_id(const char *token, char id[TL_PUZZLE_ID_LENGTH + 1]);

struct tl_recent_tokens *tl_recent_tokens_new(void); /* NULL when out of memory */
void tl_recent_tokens_free(struct tl_recent_tokens **tokens);
/* Remembers the token. False when it is known already. now_ms: local monotonic time. */
bool tl_recent_tokens_add(struct tl_recent_tokens *tokens, const char *id, int64_t now_ms);
/* It may come again: it was not judged. */
void tl_recent_tokens_forget(struct tl_recent_tokens *tokens, const char *id);

#endif
