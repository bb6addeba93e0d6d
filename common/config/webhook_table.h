/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the settings of a hook (struct tl_hook_config). */
#ifndef TL_WEBHOOK_TABLE_H
#define TL_WEBHOOK_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/config/table.h"

/* All rows. Static storage. */
const struct tl_setting *tl_hook_table(size_t *n);
/* "opened", "store_lost": as in the file, the journal and what hooks are sent. Static storage. */
const char *tl_hook_event_name(enum tl_hook_event event);
/* The event of this name; TL_HOOK_EVENTS when there is none. */
enum tl_hook_event tl_hook_event_find(const char *name);
/* Is the hook told of this event? */
bool tl_hook_wants(const struct tl_hook_config *hook, enum tl_hook_event event);
/* Is the hook told of this queue? Of a rehearsal only if it says so: what receives it would take
 * the crowd for customers. */
bool tl_hook_watches(const struct tl_hook_config *hook, const char *queue);

#endif
