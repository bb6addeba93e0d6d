/* SPDX-License-Identifier: Apache-2.0 */
/* API keys of trusted callers (a site's back end): they may say who joins, and in which lane. */
#ifndef TL_API_KEYS_H
#define TL_API_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

struct tl_worker_keys;

/* Reads a file with a line each `<name> <key of 32 to 128 printable characters>`, '#' comments;
 * refuses one that others can read. A path of "" and a missing file mean that no caller is trusted.
 */
struct tl_worker_keys *tl_worker_keys_load(const char *path, struct tl_error *err);
void tl_worker_keys_free(struct tl_worker_keys **keys);

/* The name of the caller with this key, or NULL. Takes the same time whatever the key. */
const char *tl_worker_keys_find(const struct tl_worker_keys *keys, const char *key);

#endif
