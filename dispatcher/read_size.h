/* SPDX-License-Identifier: Apache-2.0 */
/* How many ingest entries the dispatcher reads at a time. */
#ifndef TL_READ_SIZE_H
#define TL_READ_SIZE_H

#include <stdint.h>

#include "dispatcher/apply.h"

#define TL_READ_ENTRIES_MIN 64
#define TL_READ_ENTRIES_MAX TL_APPLY_ENTRIES_MAX

/* The size of the next read, after these were applied: about TL_READ_COMMANDS commands in entries
 * as large as the last ones. Between two reads the store waits for us, which small reads would make
 * it do often; a read of large entries must not take long enough to lose a lease. */
#define TL_READ_COMMANDS 20000
uint64_t tl_read_size(const struct tl_apply_counts *counts);

#endif
