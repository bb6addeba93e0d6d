/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker process remembers of passes and tokens, each in a table of fixed size in which a
 * later one takes the place of an earlier one. */
#ifndef TL_API_RECENT_H
#define TL_API_RECENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/pass.h"
#include "common/auth/puzzle.h"

/* ---- passes that it gave, so that a visitor who polls gets the same one, not signed again ---- */

struct tl_kept_passes;

struct tl_kept_passes *tl_kept_passes_new(void);          /* NULL when out of memory */
void tl_kept_passes_free(struct tl_kept_passes **passes); /* NULL behind it is allowed */
/* Other keys sign now. */
void tl_kept_passes_clear(struct tl_kept_passes *passes);

/* The text of the pass of this admission (`id`), generation and end, borrowed until the next call
 * of another function; NULL: none is kept. */
const char *tl_kept_passes_find(const struct tl_kept_passes *passes, const struct tl_pass *pass);
/* Without memory it is not kept. */
void tl_kept_passes_keep(struct tl_kept_passes *passes, const struct tl_pass *pass,
                         const char *text);

/* ---- tokens of challenge services that came here: each counts once ---- */

/* The oldest may be forgotten; the provider refuses repeats as well, and so does the store
 * (tl_token_id). Keeps hashes only. */

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
