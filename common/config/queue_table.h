/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the settings of a queue. */
#ifndef TL_QUEUE_TABLE_H
#define TL_QUEUE_TABLE_H

#include <stddef.h>

#include "common/config/table.h"

/* The words of `policy` and `rate.shape`, in the order of their enums, ended by NULL. */
extern const char *const tl_policy_names[], *const tl_rate_shape_names[];

/* All rows; their fields are those of struct tl_queue_settings. Static storage. */
const struct tl_setting *tl_queue_table(size_t *n);
/* What a queue has in the file beside its settings: the probe of struct tl_queue_config, and the
 * fields of struct tl_event_page. */
const struct tl_setting *tl_probe_table(size_t *n);
const struct tl_setting *tl_page_table(size_t *n);

#endif
