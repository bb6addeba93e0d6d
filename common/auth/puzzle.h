/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puzzles: what a queue with `challenge: work` asks of a client before it gives a place. They are
 * stateless: a puzzle says everything about itself, and its MAC holds it to one queue and one
 * address prefix. That it is used once is for the store to say (tl_puzzle_solved.id).
 *
 * A puzzle is 46 characters of base64url (no padding) of these fields, all big endian:
 *   kind    1 byte: TL_PUZZLE_WORK or TL_PUZZLE_WAIT
 *   key id  4, of the ticket keys
 *   issued  4, Unix seconds
 *   amount  1: WORK: the zero bits that each part needs; WAIT: seconds
 *   nonce   8, random
 *   MAC     16: keyed BLAKE2b over the queue's name, a zero byte, the prefix and everything before
 *           the MAC, with a personalisation of its own, so that no MAC of a ticket serves as one
 *
 * WORK: a client finds for each part i from 0 to TL_PUZZLE_PARTS - 1 a number of 32 bits such that
 * SHA-256(the 34 bytes of the puzzle, i as one byte, the number big endian) begins with `amount`
 * zero bits. Many small parts take an evener time than a large one: with 16 the standard deviation
 * is a quarter of the mean. The solution is the puzzle, a dot and the 64 bytes of the numbers in
 * base64url: 133 characters.
 * WAIT: for browsers without scripts. The puzzle is its own solution, `amount` seconds later.
 */
#ifndef TL_PUZZLE_H
#define TL_PUZZLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/auth/keyring.h"
#include "common/base/net.h"

#define TL_PUZZLE_MAX          48  /* bytes of a puzzle's text, with the terminating zero */
#define TL_PUZZLE_SOLUTION_MAX 136 /* bytes of a solution's text, with the terminating zero */
#define TL_PUZZLE_PARTS        16
#define TL_PUZZLE_LIFETIME_S   300
#define TL_PUZZLE_ID_LENGTH    23 /* characters of a puzzle's id */

enum tl_puzzle_kind { TL_PUZZLE_WORK = 1, TL_PUZZLE_WAIT = 2 };

/* For whom a puzzle is. Borrowed. */
struct tl_puzzle_scope {
    const char *queue;
    const struct tl_prefix *prefix;
};

/* Writes the text of a fresh puzzle. now_s: Unix time of the store's clock, which all workers
 * share. */
void tl_puzzle_make(const struct tl_keyring *keyring, const struct tl_puzzle_scope *scope,
                    enum tl_puzzle_kind kind, unsigned amount, int64_t now_s,
                    char text[TL_PUZZLE_MAX]);

enum tl_puzzle_result {
    TL_PUZZLE_SOLVED,
    TL_PUZZLE_FORGED,  /* no solution of one of our puzzles for this queue and this prefix */
    TL_PUZZLE_EXPIRED, /* issued longer ago than TL_PUZZLE_LIFETIME_S */
    TL_PUZZLE_EARLY,   /* WAIT: before its time */
    TL_PUZZLE_WRONG    /* WORK: a part has too few zero bits */
};

struct tl_puzzle_solved {
    enum tl_puzzle_kind kind;
    char id[TL_PUZZLE_ID_LENGTH + 1]; /* "~" and 22 characters; differs from puzzle to puzzle */
    int64_t kept_until; /* Unix seconds: until then the id must be remembered as spent */
};

/* Checks a solution from outside; `solved` is filled in for TL_PUZZLE_SOLVED. At most one MAC and
 * TL_PUZZLE_PARTS hashes; the first wrong part ends it. */
enum tl_puzzle_result tl_puzzle_check(const struct tl_keyring *keyring,
                                      const struct tl_puzzle_scope *scope, const char *text,
                                      size_t length, int64_t now_s,
                                      struct tl_puzzle_solved *solved);

#endif
