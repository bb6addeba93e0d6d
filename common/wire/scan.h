/* SPDX-License-Identifier: Apache-2.0 */
/* A look over msgpack bytes before they are decoded, so that no declared count can ask for more
 * memory than the bytes at hand could ever fill. */
#ifndef TL_WIRE_SCAN_H
#define TL_WIRE_SCAN_H

#include <stddef.h>

#include "common/base/error.h"

/* True if bytes hold exactly one msgpack value of at most `depth` nested arrays, made only of
 * arrays, non-negative integers and strings, complete, with nothing after it. */
bool tl_wire_scan(const void *bytes, size_t length, unsigned depth, struct tl_error *err);

#endif
