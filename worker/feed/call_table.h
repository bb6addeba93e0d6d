/* Joins under way by visitor: a chained hash table of calls, keyed so that nobody can choose
 * colliding visitors. */
#ifndef TL_CALL_TABLE_H
#define TL_CALL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/feed/outbox.h"

struct tl_call_table;

struct tl_call_table *tl_call_table_new(void);         /* NULL when out of memory */
void tl_call_table_free(struct tl_call_table **table); /* not the calls */
struct tl_call *tl_call_table_find(const struct tl_call_table *table, const char *visitor);
/* The visitor must not be in the table yet. */
void tl_call_table_add(struct tl_call_table *table, struct tl_call *call);
void tl_call_table_remove(struct tl_call_table *table, struct tl_call *call);

#endif
