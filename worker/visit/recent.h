/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker process remembers: the passes that it gave, so that a visitor who polls gets the
 * same one, not signed again; the tokens of challenge services that came here, each of which counts
 * once; and the joins of the last seconds. */
#ifndef TL_RECENT_H
#define TL_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/puzzle.h"

/* ---- passes and tokens ---- */

/* A table of fixed size, by ids which are hashes in base64url. Where there is no room, what ends
 * first may give way: a pass is signed once more, and a token that comes once more is refused by
 * the provider, and so by the store (tl_token_id). */
struct tl_recent;

struct tl_recent_entry {
    int64_t until; /* of a pass Unix seconds, of a token local monotonic time in ms; 0: none */
    uint64_t generation; /* of a pass */
    char *text;          /* of a pass; of a token NULL: it is not kept */
    char id[TL_PUZZLE_ID_LENGTH + 1];
};

struct tl_recent *tl_recent_new(size_t most);   /* entries; NULL when out of memory */
void tl_recent_free(struct tl_recent **recent); /* NULL behind it is allowed */
void tl_recent_clear(struct tl_recent *recent);
/* What is kept by this id, borrowed until the next call of another function; NULL: nothing. */
struct tl_recent_entry *tl_recent_find(struct tl_recent *recent, const char *id);
/* Keeps a copy, in place of what was kept by this id. Without memory it is not kept. */
void tl_recent_keep(struct tl_recent *recent, const char *id, const struct tl_recent_entry *value);

enum { TL_RECENT_PASSES = 16384, TL_RECENT_TOKENS = 131072 }; /* 600 bytes each when used; 48 */
enum { TL_TOKENS_LIFE_S = 300 }; /* no provider accepts an older token */

/* What names a token: like the id of a solved puzzle, "~" and 22 characters. */
void tl_token_id(const char *token, char id[TL_PUZZLE_ID_LENGTH + 1]);
/* Remembers the token. False when it is known already. */
bool tl_recent_token(struct tl_recent *recent, const char *id, int64_t now_ms);
/* It may come again: it was not judged. */
void tl_recent_forget(struct tl_recent *recent, const char *id);

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
