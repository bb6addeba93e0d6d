/* SPDX-License-Identifier: Apache-2.0 */
/* Polling: every visitor asks every three seconds, and every question is a question to Redis. */
#ifndef TL_BENCH_POLLING_H
#define TL_BENCH_POLLING_H

#include <stdint.h>

void polling_about(const char *group);
/* What n waiting visitors cost, beside the same look-ups in our order index; both for some seconds.
 */
void polling_measure(const char *group, uint64_t n, double seconds);

#endif
