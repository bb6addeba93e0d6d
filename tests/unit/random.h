/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers for property tests. The seed is printed, and TELLERLINE_SEED sets it, so that
 * every failure can be replayed.
 */
#ifndef TL_TEST_RANDOM_H
#define TL_TEST_RANDOM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The generator's state: the seed from the environment, else from the clock. Prints it. */
static inline uint64_t random_seed(const char *test)
{
    const char *given = getenv("TELLERLINE_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    if (given != NULL)
        seed = strtoull(given, NULL, 10);
    printf("%s: TELLERLINE_SEED=%" PRIu64 "\n", test, seed);
    fflush(stdout);
    return seed;
}

/* splitmix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014)
 */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* A number in [0, n). */
static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
    return random_next(state) % n;
}

#endif
