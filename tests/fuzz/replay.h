/* SPDX-License-Identifier: Apache-2.0 */
/* The fuzz targets of one executable, by their names; the last one has none. */
#ifndef TL_FUZZ_REPLAY_H
#define TL_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
};

extern const struct fuzz_target fuzz_targets[];

#endif
