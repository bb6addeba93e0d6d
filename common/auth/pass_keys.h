/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that sign and verify passes. */
#ifndef TL_PASS_KEYS_H
#define TL_PASS_KEYS_H

#include <stdbool.h>

#include "common/auth/jwt_keys.h"
#include "common/base/error.h"

/* Reads the keys (common/auth/jwt_keys.h). The first key of the algorithm signs, every key
 * verifies, so a key can be listed before it signs and after. With create, a missing file is made
 * with one key of the algorithm, mode 0600, safely against other processes doing the same at once.
 */
struct tl_jwt_keys *tl_pass_keys_load(const char *path, enum tl_jwt_algorithm algorithm,
                                      bool create, struct tl_error *err);

#endif
