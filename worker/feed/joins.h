/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pending JOINs of an outbox by visitor, so that a second request of a visitor shares the first
 * one's command. A hash table with a secret key: clients cannot choose visitors that collide.
 */
#ifndef TL_JOINS_H
#define TL_JOINS_H

#include <stdbool.h>

#include "worker/feed/pending.h"

struct tl_joins;

/* NULL when out of memory. */
struct tl_joins *tl_joins_new(void);
/* The commands stay the caller's. */
void tl_joins_free(struct tl_joins **joins);
/* The pending JOIN of this visitor, borrowed; or NULL. */
struct tl_pending_command *tl_joins_find(const struct tl_joins *joins, const char *visitor);
/* The visitor must not be in the table yet. The command must stay until it is removed. */
void tl_joins_add(struct tl_joins *joins, struct tl_pending_command *pending);
/* The command must be in the table. */
void tl_joins_remove(struct tl_joins *joins, const struct tl_pending_command *pending);

#endif
