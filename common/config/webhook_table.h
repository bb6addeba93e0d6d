/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the settings of a webhook (struct tl_webhook_config). */
#ifndef TL_WEBHOOK_TABLE_H
#define TL_WEBHOOK_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/config/table.h"

/* All rows. Static storage. */
const struct tl_setting *tl_webhook_table(size_t *n);
/* "opened", "store_lost": as in the file, the journal and what webhooks are sent. Static storage.
 */
const char *tl_webhook_event_name(enum tl_webhook_event event);
/* The event of this name; TL_WEBHOOK_EVENTS when there is none. */
enum tl_webhook_event tl_webhook_event_find(const char *name);
/* Is the webhook told of this event? */
bool tl_webhook_wants(const struct tl_webhook_config *webhook, enum tl_webhook_event event);
/* Is the webhook told of this queue? Of a rehearsal only if it says so: what receives it would take
 * the crowd for customers. */
bool tl_webhook_watches(const struct tl_webhook_config *webhook, const char *queue);

#endif
