/* The tokens of challenge services that came here: each counts once. A bounded memory, so the
 * oldest may be forgotten; the provider refuses repeats as well, and so does the store
 * (tl_token_id). Keeps hashes only. */
#ifndef TL_TOKENS_H
#define TL_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/puzzle.h"

enum { TL_TOKENS_LIFE_S = 300 }; /* no provider accepts an older token */

struct tl_tokens;

/* What names a token: like the id of a solved puzzle, "~" and 22 characters. */
void tl_token_id(const char *token, char id[TL_PUZZLE_ID_LENGTH + 1]);

struct tl_tokens *tl_tokens_new(void); /* NULL when out of memory */
void tl_tokens_free(struct tl_tokens **tokens);
/* Remembers the token. False when it is known already. now_ms: local monotonic time. */
bool tl_tokens_add(struct tl_tokens *tokens, const char *id, int64_t now_ms);
/* It may come again: it was not judged. */
void tl_tokens_forget(struct tl_tokens *tokens, const char *id);

#endif
