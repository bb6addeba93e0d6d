/* SPDX-License-Identifier: Apache-2.0 */
/* Solves puzzles, as a client does: for tests. */
#ifndef PUZZLE_SOLVE_H
#define PUZZLE_SOLVE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <sodium.h>

#include "common/auth/puzzle.h"

/* Writes the solution of the puzzle with so many zero bits for each part. */
static inline void puzzle_solve(const char *puzzle, unsigned bits,
                                char solution[TL_PUZZLE_SOLUTION_MAX])
{
    unsigned char message[39], hash[crypto_hash_sha256_BYTES], numbers[4 * TL_PUZZLE_PARTS];
    if (sodium_base642bin(message, 34, puzzle, 46, NULL, NULL, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
        abort();
    for (unsigned part = 0; part < TL_PUZZLE_PARTS; part++) {
        uint32_t number = 0, first;
        message[34] = (unsigned char)part;
        do {
            number++;
            for (unsigned i = 0; i < 4; i++)
                message[35 + i] = numbers[4 * part + i] = (unsigned char)(number >> (24 - 8 * i));
            crypto_hash_sha256(hash, message, sizeof(message));
            first = (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 |
                    hash[3];
        } while (first >> (32 - bits) != 0);
    }
    int n = snprintf(solution, TL_PUZZLE_SOLUTION_MAX, "%s.", puzzle);
    sodium_bin2base64(solution + n, TL_PUZZLE_SOLUTION_MAX - (size_t)n, numbers, sizeof(numbers),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

#endif
