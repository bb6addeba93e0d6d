/* Pending JOINs by visitor: a chained hash table with a secret key, so that clients cannot choose
 * visitors that collide. */
#ifndef TL_PENDING_TABLE_H
#define TL_PENDING_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/feed/pending.h"

struct tl_pending_table;

struct tl_pending_table *tl_pending_table_new(void);         /* NULL when out of memory */
void tl_pending_table_free(struct tl_pending_table **table); /* not the pending commands */
struct tl_pending_command *tl_pending_table_find(const struct tl_pending_table *table,
                                                 const char *visitor);
/* The visitor must not be in the table yet. */
void tl_pending_table_add(struct tl_pending_table *table, struct tl_pending_command *pending);
void tl_pending_table_remove(struct tl_pending_table *table, struct tl_pending_command *pending);

#endif
