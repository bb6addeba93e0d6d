/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line as a library of functions in the store: every step that changes it, and those that read
 * several keys at one moment. "generated/library.h" has their names, TL_FN_...
 *
 * The names carry the hash of the library's text, so builds, roll-backs and releases live side by
 * side in one store. A store that lacks the library (a new or an emptied one, after FUNCTION FLUSH,
 * a replica that never got it) gets it by the first call that misses it, of a program that may load
 * functions. Who may load them decides what all who call them do, so the workers and the notifier
 * may not (deploy/redis/users.acl): they wait for the others.
 */
#ifndef TL_LIBRARY_H
#define TL_LIBRARY_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/store/args.h"
#include "common/store/keys.h"
#include "common/store/store.h"

#include "generated/library.h"

/* Makes args a call of this function on a queue. The caller adds the arguments. */
void tl_call_begin(struct tl_args *args, const char *function, const struct tl_keys *keys);
/* The same for a function that changes nothing: a user without permission to write may call it. */
void tl_call_begin_read(struct tl_args *args, const char *function, const struct tl_keys *keys);
/* The same for a function on other keys, of which there are n. The caller adds them, too. */
void tl_call_begin_on(struct tl_args *args, const char *function, unsigned n);

/* tl_redis_call for such args. When the store lacks the function, loads the library and tries once
 * more; TL_ERR_LOADING: this program may not load it, and no other one has done so yet. */
struct tl_reply *tl_call(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err);
/* The same for a call that is made once: frees args. */
struct tl_reply *tl_call_once(struct tl_redis *redis, struct tl_args *args, struct tl_error *err);
/* The same for a function without arguments that changes nothing. */
struct tl_reply *tl_call_read(struct tl_redis *redis, const char *function,
                              const struct tl_keys *keys, struct tl_error *err);
/* tl_call_once when the reply does not matter. */
bool tl_call_do(struct tl_redis *redis, struct tl_args *args, struct tl_error *err);

/* Loads the library, for a pipeline, after TL_ERR_NOFUNCTION; true also if another program just has
 * done so. TL_ERR_LOADING: as above. */
bool tl_library_load(struct tl_redis *redis, struct tl_error *err);
/* A program that uses the library says so on each new connection and once an hour, so that nobody
 * deletes it. *due_ms: when it is due, by tl_clock_ms; 0 at first, and for a new connection. */
bool tl_library_note(struct tl_redis *redis, const char *key_prefix, int64_t *due_ms,
                     int64_t now_ms, struct tl_error *err);
/* Deletes the libraries of other releases that no program has named for a day, on all nodes, which
 * must all answer. Returns how many in *n. */
bool tl_library_prune(struct tl_store *store, const char *key_prefix, unsigned *n,
                      struct tl_error *err);

#endif
