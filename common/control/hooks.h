/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of the notifier, as operators see them. */
#ifndef TL_CONTROL_HOOKS_H
#define TL_CONTROL_HOOKS_H

#include <jansson.h>

#include "common/config/settings.h"
#include "common/store/reply.h"

struct tl_control_call;

/* The hooks of a queue as a list of objects, from what hooks_of() of stats.lua returned:
 * those that the notifier keeps, and those of this program's configuration that no notifier knows
 * yet. now_ms: the store's clock. NULL: out of memory. */
json_t *tl_hooks_to_json(const struct tl_config *config, const char *queue,
                         const struct tl_reply *reply, int64_t now_ms);

void tl_handle_hook_list(struct tl_control_call *call);
void tl_handle_queue_hooks(struct tl_control_call *call);
void tl_handle_hook_test(struct tl_control_call *call);

#endif
