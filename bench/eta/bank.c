/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/eta/bank.h"

static int by_arrival(const void *a, const void *b)
{
    const struct customer *left = a, *right = b;
    return (left->arrival_s > right->arrival_s) - (left->arrival_s < right->arrival_s);
}

bool bank_read(struct bank *bank, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[200];
    bank->n = 0;
    if (file == NULL)
        return false;
    while (bank->n < CUSTOMERS_MAX && fgets(line, sizeof(line), file) != NULL) {
        int day, waited, service, came[3], served[3];
        /* NOLINTBEGIN(cert-err34-c): a number out of range would be a fault of the file */
        /* vru+line,date,q_start,q_exit,q_time,ser_start,ser_exit,ser_time,server,caja */
        if (sscanf(line, "%*[^,],%d,%d:%d:%d,%*[^,],%d,%d:%d:%d,%*[^,],%d", &day, &came[0],
                   &came[1], &came[2], &waited, &served[0], &served[1], &served[2], &service) != 9)
            continue;
        /* NOLINTEND(cert-err34-c) */
        const int *at = waited > 0 ? came : served;
        bank->customers[bank->n++] = (struct customer){
            .arrival_s = (int64_t)(day % 100) * 86400 + at[0] * 3600 + at[1] * 60 + at[2],
            .service_s = service > 0 ? service : 1};
    }
    fclose(file);
    qsort(bank->customers, bank->n, sizeof(bank->customers[0]), by_arrival);
    return bank->n > 0;
}
