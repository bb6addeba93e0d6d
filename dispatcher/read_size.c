/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatcher/read_size.h"

uint64_t tl_read_size(const struct tl_apply_counts *counts)
{
    uint64_t commands = counts->commands > 0 ? counts->commands : 1;
    uint64_t entries = TL_READ_COMMANDS * counts->applied / commands;
    if (entries < TL_READ_ENTRIES_MIN)
        return TL_READ_ENTRIES_MIN;
    return entries < TL_READ_ENTRIES_MAX ? entries : TL_READ_ENTRIES_MAX;
}
