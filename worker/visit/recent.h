/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker process remembers: of passes and tokens, each in a table of fixed size in which a
 * later one takes the place of an earlier one, and of the joins of the last seconds. */
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

/* ---- joins that were paid for with work: how much of it a puzzle asks for ---- */

/* Little at rest, more while many visitors join. It follows the joins, and not the puzzles handed
 * out: so raising it costs work, too. */
enum {
    TL_EFFORT_BITS_MIN = 12, /* 16 parts of 12 bits are 65,536 hashes on average */
    TL_EFFORT_BITS_MAX = 16, /* sixteen times as much */
    TL_EFFORT_REST = 100     /* joins a second; from there on, each doubling adds a bit */
};

/* A value; all zero at first. now_ms: local monotonic time. */
struct tl_effort {
    int64_t window;         /* its number */
    uint64_t count, before; /* joins in this window and in the one before it */
};

/* Counts a join. */
void tl_effort_count(struct tl_effort *effort, int64_t now_ms);
/* The zero bits that each part of a puzzle needs now. */
unsigned tl_effort_bits(const struct tl_effort *effort, int64_t now_ms);

#endif
