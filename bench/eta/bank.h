/* SPDX-License-Identifier: Apache-2.0 */
/* The customers of a bank's counter (tests/data/README.md), for the backtest. */
#ifndef TL_BENCH_BANK_H
#define TL_BENCH_BANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUSTOMERS_MAX = 1000 };

struct customer {
    int64_t arrival_s; /* since the first midnight */
    int64_t service_s;
};

struct bank {
    struct customer customers[CUSTOMERS_MAX]; /* in order of arrival */
    size_t n;
};

/* False if the file cannot be read. */
bool bank_read(struct bank *bank, const char *path);

#endif
